//! Recorded builds; see [`testkit::conformance`]. Each case is judged twice: by its objects, and by the printed bytes. A
//! case that must fail is judged by the words of the error, both times.

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    time::Duration,
};

use kustomize::{Build, LoadRestriction, Options, SortOrder, build};
use testkit::conformance::Recordings;
use tree::{Budget, Disk, Limits, TreePath};
use yaml::Value;

const LIMIT: Duration = Duration::from_secs(20);

/// Removes the directory of the tree from the paths of a recorded error.
fn below_root(words: &str) -> String {
    words.replace("<ROOT>/", "").replace("<ROOT>", ".")
}

struct Case {
    path: String,
    load_restriction: LoadRestriction,
    order: SortOrder,
    managed_by_label: bool,
    fails: bool,
    words: Vec<String>,
}

impl Case {
    fn read(dir: &Path) -> Result<Self, String> {
        let text = fs::read(dir.join("case.yaml")).map_err(|error| error.to_string())?;
        let document = yaml::read::goyaml(text, &Budget::default()).map_err(|error| error.to_string())?;
        let at = |path: &[&str]| document.value.pointer(path);
        let text = |path: &[&str]| at(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let words = at(&["errorContains"]).and_then(Value::as_seq).unwrap_or_default();
        Ok(Self {
            path: text(&["path"]),
            load_restriction: match text(&["options", "loadRestrictor"]).as_str() {
                "none" => LoadRestriction::None,
                "rootOnly" | "" => LoadRestriction::RootOnly,
                other => return Err(format!("loadRestrictor {other} is not known")),
            },
            order: match text(&["options", "reorder"]).as_str() {
                "legacy" => SortOrder::Legacy,
                "none" | "" => SortOrder::Accumulated,
                other => return Err(format!("reorder {other} is not known")),
            },
            managed_by_label: at(&["options", "enableManagedByLabel"]) == Some(&Value::Bool(true)),
            fails: match text(&["expect"]).as_str() {
                "error" => true,
                "output" => false,
                other => return Err(format!("expect {other} is not known")),
            },
            words: words.iter().filter_map(Value::as_str).map(below_root).collect(),
        })
    }

    fn build(&self, dir: &Path) -> Result<Build, String> {
        let tree = Disk::open(dir.join("input"), &Limits::default()).map_err(|error| error.to_string())?;
        let path = TreePath::parse(&self.path).map_err(|error| error.to_string())?;
        let options = Options {
            load_restriction: self.load_restriction,
            order: self.order,
            managed_by_label: self.managed_by_label,
            ..Options::default()
        };
        let budget = Budget::default().with_timeout(LIMIT);
        match catch_unwind(AssertUnwindSafe(|| build(&tree, &path, &options, &budget))) {
            Ok(Ok(built)) => Ok(built),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("PANIC".to_owned()),
        }
    }
}

/// Returns the problem of an error, if there is one.
fn judge_error(case: &Case, error: &str) -> Option<String> {
    if error == "PANIC" || !case.fails {
        return Some(format!("failed: {error}"));
    }
    let missing = case.words.iter().find(|words| !error.contains(words.as_str()))?;
    Some(format!("{missing:?} is not in the error: {error}"))
}

fn judge_objects(built: &Build, expected: &str) -> Option<String> {
    let expected = match yaml::read::kustomize_all(expected, &Budget::default()) {
        Ok(expected) => expected,
        Err(error) => return Some(format!("expected.yaml: {error}")),
    };
    let expected: Vec<_> = expected
        .into_iter()
        .map(|document| document.value.to_json())
        .collect();
    let got: Vec<_> = built.objects.iter().map(|one| one.object.to_json()).collect();
    if got == expected {
        return None;
    }
    let mut both = got.iter().zip(&expected);
    Some(match both.find(|(got, expected)| got != expected) {
        Some((got, expected)) => format!("got {got} expected {expected}"),
        None => format!("got {} objects, expected {}", got.len(), expected.len()),
    })
}

fn judge_bytes(built: &Build, expected: &str) -> Option<String> {
    let got = built.to_yaml();
    if got == expected {
        return None;
    }
    let mut both = got.lines().zip(expected.lines()).enumerate();
    Some(match both.find(|(_, (got, expected))| got != expected) {
        Some((line, (got, expected))) => format!("line {}: got {got:?} expected {expected:?}", line + 1),
        None => format!("got {} bytes, expected {}", got.len(), expected.len()),
    })
}

/// Returns the problems of the objects and of the bytes of a case, if there are any.
fn judge(dir: &Path) -> [Option<String>; 2] {
    let both = |why: Option<String>| [why.clone(), why];
    let case = match Case::read(dir) {
        Ok(case) => case,
        Err(error) => return both(Some(format!("case.yaml: {error}"))),
    };
    match case.build(dir) {
        Err(error) => both(judge_error(&case, &error)),
        Ok(_) if case.fails => both(Some(format!("must fail with {:?}", case.words))),
        Ok(built) => match fs::read_to_string(dir.join("expected.yaml")) {
            Ok(expected) => [judge_objects(&built, &expected), judge_bytes(&built, &expected)],
            Err(error) => both(Some(format!("expected.yaml: {error}"))),
        },
    }
}

#[test]
fn recorded_builds_pass() {
    let Some(recordings) = Recordings::find("kustomize/cases") else {
        return;
    };
    let mut cases = recordings.entries().unwrap();
    cases.retain(|case| case.join("case.yaml").is_file());
    let mut failures = [Vec::new(), Vec::new()];
    let mut passes = [0; 2];
    for case in &cases {
        let name = case.file_name().unwrap().to_string_lossy();
        for (n, why) in judge(case).into_iter().enumerate() {
            match why {
                None => passes[n] += 1,
                Some(why) => failures[n].push(format!("{name}\t{why}")),
            }
        }
    }
    recordings.conclude(&[
        ("kustomize", passes[0], &failures[0]),
        ("kustomize-bytes", passes[1], &failures[1]),
    ]);
}
