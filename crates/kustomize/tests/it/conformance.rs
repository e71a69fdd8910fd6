//! Recorded builds. They are no part of this repository: the test looks for them in `$CONFORMANCE_DIR` (by default
//! `../shared/conformance` beside the workspace), and says so when they are absent.

use std::{
    fs,
    path::{Path, PathBuf},
};

use kustomize::{Error, build};
use tree::{Budget, Disk, Limits, TreePath};
use yaml::Value;

/// How many cases pass today; it may only grow.
const PASSES: usize = 23;

enum Outcome {
    Pass,
    Fail(String),
    /// It needs what is refused by name.
    Refused,
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn run(case: &Path) -> Outcome {
    let description = yaml::read::goyaml(fs::read(case.join("case.yaml")).unwrap(), &Budget::default())
        .unwrap()
        .value;
    let text = |path: &[&str]| {
        description
            .pointer(path)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    // Only the order of accumulation is there, and the confinement to the whole tree.
    if text(&["options", "reorder"]) != "none"
        || text(&["expect"]) == "error" && text(&["errorKind"]).contains("restrict")
    {
        return Outcome::Refused;
    }
    let tree = Disk::open(case.join("input"), &Limits::default()).unwrap();
    let Ok(dir) = TreePath::parse(text(&["path"])) else {
        return Outcome::Refused;
    };
    let fails = text(&["expect"]) == "error";
    match build(&tree, &dir, &Budget::default()) {
        Err(Error::Unsupported { .. } | Error::Remote { .. }) => Outcome::Refused,
        Err(_) if fails => Outcome::Pass,
        Err(error) => Outcome::Fail(format!("failed: {error}")),
        Ok(_) if fails => Outcome::Fail(format!("must fail: {}", text(&["errorKind"]))),
        Ok(objects) => {
            let expected = fs::read(case.join("expected.yaml")).unwrap();
            let expected = yaml::read::kustomize_all(expected, &Budget::default()).unwrap();
            let expected: Vec<_> = expected
                .into_iter()
                .map(|document| document.value.to_json())
                .collect();
            let got: Vec<_> = objects.iter().map(Value::to_json).collect();
            if got == expected {
                return Outcome::Pass;
            }
            let different = got.iter().zip(&expected).find(|(got, expected)| got != expected);
            Outcome::Fail(match different {
                Some((got, expected)) => format!("got {got} expected {expected}"),
                None => format!("got {} objects, expected {}", got.len(), expected.len()),
            })
        }
    }
}

#[test]
fn recorded_builds() {
    let base = std::env::var_os("CONFORMANCE_DIR")
        .map_or_else(|| workspace().join("../shared/conformance"), PathBuf::from);
    let dir = base.join("kustomize/cases");
    let Ok(entries) = fs::read_dir(&dir) else {
        println!("{} is absent: its cases are not run", dir.display());
        return;
    };
    let mut cases: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    let (mut passes, mut refused, mut failures) = (0, 0, Vec::new());
    for case in &cases {
        let name = case.file_name().unwrap().to_string_lossy();
        match run(case) {
            Outcome::Pass => passes += 1,
            Outcome::Refused => refused += 1,
            Outcome::Fail(why) => failures.push(format!("{name}\t{why}").replace('\n', " | ")),
        }
    }
    let report = workspace().join("target/conformance");
    fs::create_dir_all(&report).unwrap();
    fs::write(report.join("kustomize-failures.txt"), failures.join("\n")).unwrap();
    println!(
        "kustomize: {passes} pass, {} fail, {refused} refused by name",
        failures.len()
    );
    assert!(passes >= PASSES, "{passes} cases pass, it was {PASSES} before");
}
