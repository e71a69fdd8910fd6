//! Recorded templates with their results; see [`testkit::conformance`].

use std::{fs, path::Path, sync::Arc};

use jinja::{Environment, Renderer, Vars};
use serde_json::Value as Json;
use testkit::conformance::Recordings;
use tree::{Budget, Disk, Limits, Mem, Overlay, Tree, TreePath};
use yaml::Value;

/// Returns a time after all times of the cases.
fn environment() -> Environment {
    Environment {
        now: Some("2026-01-02T03:04:05Z".parse().unwrap()),
        seed: Some(1),
        ..Environment::default()
    }
}

fn lines(file: &Path) -> Vec<Json> {
    let text = fs::read_to_string(file).unwrap();
    text.lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn variables(json: &Json) -> yaml::Map {
    match Value::from_json(json.clone()) {
        Value::Map(map) => map,
        other => panic!("a context is a map, not {other:?}"),
    }
}

/// Returns a word that the recorded message quotes from the template, such as a variable, and that ours lacks.
fn missing_word<'a>(case: &'a Json, ours: &str) -> Option<&'a str> {
    let message = case["message"].as_str().unwrap_or_default();
    let template = case["template"].as_str().unwrap_or_default();
    let mut quoted = message.split('\'').skip(1).step_by(2);
    quoted.find(|word| template.contains(*word) && !ours.contains(*word))
}

/// Returns the difference of a result from the case, if there is one. Errors are compared by their essential words.
fn difference(case: &Json, result: &Result<String, jinja::Error>) -> Option<String> {
    let fails = case.get("error").and_then(Json::as_bool).unwrap_or_default();
    match (result, case.get("expected").and_then(Json::as_str)) {
        (Err(error), None) if fails => {
            let error = error.to_string();
            missing_word(case, &error).map(|word| format!("the error lacks {word:?}: {error}"))
        }
        (Ok(text), Some(expected)) if text == expected => None,
        (Ok(_), None) if !fails => None,
        (Ok(text), _) => Some(format!("got {text:?}")),
        (Err(error), _) => Some(format!("failed: {error}")),
    }
}

fn run(recordings: &Recordings, kind: &str, render: impl Fn(&Json) -> Result<String, jinja::Error>) {
    let cases = lines(&recordings.dir().join("vectors.jsonl"));
    let mut failures = Vec::new();
    let mut passes = 0;
    for case in &cases {
        match difference(case, &render(case)) {
            None => passes += 1,
            Some(difference) => failures.push(format!(
                "{}\t{}\texpected {}\t{difference}",
                case["name"].as_str().unwrap_or_default(),
                case["template"],
                case.get("expected").unwrap_or(&case["error"]),
            )),
        }
    }
    recordings.conclude(&[(kind, passes, &failures)]);
}

#[test]
fn recorded_jinja_vectors_pass() {
    let Some(recordings) = Recordings::find("jinja") else {
        return;
    };
    let dir = recordings.dir();
    let context = serde_json::from_str(&fs::read_to_string(dir.join("context.json")).unwrap()).unwrap();
    let vars = Vars::new(&variables(&context));
    let files = Arc::new(Disk::open(dir.join("files"), &Limits::default()).unwrap());
    run(&recordings, "jinja", |case| {
        let tree = Overlay::new(Arc::clone(&files) as Arc<dyn Tree>);
        let root = TreePath::parse("vector.txt").unwrap();
        tree.write(root.clone(), case["template"].as_str().unwrap().to_owned())
            .unwrap();
        let renderer = Renderer::new(Arc::new(tree), &[TreePath::root()], &vars);
        let mut renderer = renderer.with_environment(environment());
        let bytes = renderer.render_file(&root, &Budget::default())?;
        Ok(String::from_utf8(bytes.to_vec()).unwrap())
    });
}

#[test]
fn recorded_template_vectors_pass() {
    let Some(recordings) = Recordings::find("kluctl/template") else {
        return;
    };
    run(&recordings, "kluctl-templates", |case| {
        let mut mem = Mem::new();
        let root = TreePath::parse("item/template.txt").unwrap();
        mem.insert(root.clone(), case["template"].as_str().unwrap().to_owned(), false);
        for (path, text) in case["files"].as_object().unwrap() {
            mem.insert(
                TreePath::parse(path).unwrap(),
                text.as_str().unwrap().to_owned(),
                false,
            );
        }
        let vars = Vars::sorted(&variables(&case["context"]));
        let search = [TreePath::parse("item").unwrap(), TreePath::root()];
        let mut renderer = Renderer::new(Arc::new(mem), &search, &vars).with_environment(environment());
        let bytes = renderer.render_file(&root, &Budget::default())?;
        Ok(String::from_utf8(bytes.to_vec()).unwrap())
    });
}
