//! The workflows of GitHub Actions, which are linted here and run there.

use std::{collections::BTreeMap, fs, process::Command};

use tree::Budget;
use yaml::{Map, Value};

use crate::support::root;

/// The rights that only the job which publishes has.
const WRITES: &[&str] = &["attestations", "contents", "id-token", "packages"];

fn workflows() -> BTreeMap<String, Value> {
    let entries = fs::read_dir(root().join(".github/workflows")).unwrap();
    let read = |path: std::path::PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let mut documents = yaml::read::goyaml_all(&text, &Budget::default()).unwrap();
        assert_eq!(documents.len(), 1, "{}", path.display());
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, documents.remove(0).value)
    };
    entries.map(|entry| read(entry.unwrap().path())).collect()
}

fn map<'a>(value: &'a Value, path: &[&str]) -> &'a Map {
    let found = value.pointer(path).and_then(Value::as_map);
    found.unwrap_or_else(|| panic!("{path:?} is missing"))
}

fn jobs(workflow: &Value) -> impl Iterator<Item = (&str, &Value)> {
    map(workflow, &["jobs"]).iter()
}

fn steps(job: &Value) -> &[Value] {
    job.get("steps").and_then(Value::as_seq).unwrap_or_default()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[test]
fn permissions_are_to_read_except_of_the_job_that_publishes() {
    let workflows = workflows();
    assert_eq!(workflows.keys().collect::<Vec<_>>(), ["ci.yaml", "release.yaml"]);
    for (name, workflow) in &workflows {
        let default = map(workflow, &["permissions"]);
        assert_eq!(default.iter().count(), 1, "{name}");
        assert_eq!(default.get_str("contents"), Some("read"), "{name}");
        for (job, value) in jobs(workflow) {
            let Some(own) = value.get("permissions").and_then(Value::as_map) else {
                continue;
            };
            assert_eq!((name.as_str(), job), ("release.yaml", "publish"));
            let mut rights: Vec<_> = own.keys().collect();
            rights.sort_unstable();
            assert_eq!(rights, WRITES);
        }
    }
}

#[test]
fn actions_have_exact_versions_and_jobs_end() {
    for (name, workflow) in &workflows() {
        for (job, value) in jobs(workflow) {
            if let Some(called) = value.get("uses").and_then(Value::as_str) {
                assert!(called.starts_with("./.github/workflows/"), "{name} {job}");
                continue;
            }
            assert!(
                value.get("timeout-minutes").and_then(Value::as_i64).is_some(),
                "{name} {job}"
            );
            for step in steps(value) {
                let Some(action) = step.get("uses").and_then(Value::as_str) else {
                    assert!(!text(step, "run").is_empty(), "{name} {job}");
                    continue;
                };
                let version = action.rsplit_once("@v").unwrap().1;
                let parts: Vec<_> = version.split('.').map(str::parse::<u32>).collect();
                assert!(parts.len() == 3 && parts.iter().all(Result::is_ok), "{action}");
                if action.starts_with("actions/checkout@") {
                    let stays = step.pointer(&["with", "persist-credentials"]);
                    assert_eq!(stays.and_then(Value::as_bool), Some(false), "{name} {job}");
                }
            }
        }
    }
}

#[test]
fn scripts_take_no_expressions_and_are_valid() {
    for (name, workflow) in &workflows() {
        for (job, value) in jobs(workflow) {
            for script in steps(value).iter().map(|step| text(step, "run")) {
                // An expression would be pasted into the script, whatever it is.
                assert!(!script.contains("${{"), "{name} {job}: {script}");
                let status = Command::new("bash").args(["-n", "-c", script]).status().unwrap();
                assert!(status.success(), "{name} {job}: {script}");
            }
        }
    }
}

#[test]
fn releases_wait_for_the_tests_and_a_tag_of_the_version() {
    let workflows = workflows();
    let release = &workflows["release.yaml"];
    let jobs: BTreeMap<_, _> = jobs(release).collect();
    assert_eq!(text(jobs["ci"], "uses"), "./.github/workflows/ci.yaml");
    let needs = jobs["publish"].get("needs").and_then(Value::as_seq).unwrap();
    assert_eq!(needs, ["ci", "dist"].map(Value::from));
    for job in ["ci", "dist"] {
        assert_eq!(text(jobs[job], "needs"), "tag");
    }
    let ci: Vec<_> = steps(map(&workflows["ci.yaml"], &["jobs"]).get("ci").unwrap())
        .iter()
        .map(|step| text(step, "run"))
        .collect();
    assert!(ci.contains(&".ci/run"));
    let check = |tag: &[&str]| {
        let script = root().join(".github/check-tag.sh");
        Command::new(script).args(tag).output().unwrap()
    };
    assert!(check(&[install::VERSION]).status.success());
    for tag in [&["v99.0.0"][..], &[install::VERSION.trim_start_matches('v')], &[]] {
        let output = check(tag);
        assert!(!output.status.success(), "{tag:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("Cargo.toml has the version"));
    }
}
