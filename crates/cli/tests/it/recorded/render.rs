//! Recorded commands that need no cluster.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use tree::Budget;
use yaml::Value;

use super::{
    expect::{self, strings},
    read_yaml,
    sandbox::{Finished, Sandbox},
};

pub(crate) async fn run(folder: &Path) -> Result<()> {
    let case = read_yaml(&folder.join("case.yaml"))?;
    let sandbox = Sandbox::new(folder, &case)?;
    let mut args = sandbox.args(case.get("command").context("no command")?);
    let expected = case.get("expect").context("nothing expected")?;
    let files: Vec<&str> = strings(expected.get("render_files")).collect();
    let rendered = sandbox.beside("rendered");
    if !files.is_empty() {
        args.extend(["--render-output-dir".to_owned(), rendered.display().to_string()]);
    }
    let finished = sandbox.run(&args).await?;
    let stderr = finished.stderr.to_lowercase();
    let has = |fragment: &str| stderr.contains(&fragment.to_lowercase());
    if expected.get("exit").and_then(Value::as_str) == Some("error") {
        ensure!(!finished.success, "it succeeded, and must fail");
        for fragment in strings(expected.get("error_fragments")) {
            ensure!(has(fragment), "{fragment:?} is not in {stderr}");
        }
        return Ok(());
    }
    ensure!(finished.success, "it failed: {}", finished.stderr);
    for fragment in strings(expected.get("warnings")) {
        ensure!(has(fragment), "{fragment:?} is not in {stderr}");
    }
    for name in files {
        let recorded = fs::read(folder.join("expected/render-dir").join(name))?;
        let found = fs::read(rendered.join("0").join(name)).with_context(|| name.to_owned())?;
        ensure!(found == recorded, "{name}: {}", String::from_utf8_lossy(&found));
    }
    printed(&folder.join("expected"), expected, &finished)
}

/// Compares the documents on stdout.
fn printed(folder: &Path, expected: &Value, finished: &Finished) -> Result<()> {
    let (objects, stdout) = (folder.join("objects.yaml"), folder.join("stdout.txt"));
    let file = if objects.is_file() { objects } else { stdout };
    let recorded = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    if recorded == finished.stdout {
        return Ok(());
    }
    let (recorded, found) = (documents(recorded)?, documents(finished.stdout.clone())?);
    if let Some(count) = expected.get("objects").and_then(Value::as_u64) {
        ensure!(
            u64::try_from(found.len())? == count,
            "{} objects, recorded {count}",
            found.len()
        );
    }
    expect::same("documents on stdout", &Value::Seq(recorded), &Value::Seq(found))
}

/// Reads documents as they are in JSON, so that the style and the types that only YAML has don't count.
fn documents(text: String) -> Result<Vec<Value>> {
    let documents = yaml::read::kustomize_all(text, &Budget::default())?;
    let documents = documents
        .into_iter()
        .map(|document| Value::from_json(document.value.to_json()));
    Ok(documents.filter(|document| *document != Value::Null).collect())
}
