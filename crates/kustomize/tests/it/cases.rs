//! Builds of a small web shop, which together use each field of a kustomization and each quirk.
//!
//! A case is a directory of `tests/cases`. It is the tree, and `top` in it is built, or all of it without a `top`.
//! `flags.txt` has flags of kustomize. `expected.yaml` has the output, byte for byte; or each line of `error.txt` must be in
//! the error. Kustomize itself is compared, too: after a change of the cases, `WEIR_RECORD=1 cargo test -p kustomize --test
//! it cases` writes its output into `expected.yaml`.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use kustomize::{LoadRestriction, Options, SortOrder, build};
use tree::{Budget, Disk, Limits, TreePath};

const LIMIT: Duration = Duration::from_secs(20);

struct Case {
    dir: PathBuf,
    flags: Vec<String>,
}

impl Case {
    fn all() -> Vec<Self> {
        let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
        let mut dirs: Vec<PathBuf> = fs::read_dir(cases)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        dirs.sort();
        assert!(dirs.len() > 80, "only {} cases were found", dirs.len());
        dirs.into_iter().map(Self::read).collect()
    }

    fn read(dir: PathBuf) -> Self {
        let flags = fs::read_to_string(dir.join("flags.txt")).unwrap_or_default();
        let mut flags: Vec<String> = flags.lines().map(str::to_owned).collect();
        if !flags.iter().any(|flag| flag.starts_with("--reorder=")) {
            flags.push("--reorder=none".to_owned());
        }
        Self { dir, flags }
    }

    fn top(&self) -> &'static str {
        if self.dir.join("top").is_dir() { "top" } else { "" }
    }

    fn ours(&self) -> Result<String, String> {
        let mut options = Options::default();
        for flag in &self.flags {
            match flag.as_str() {
                "--reorder=none" => options.order = SortOrder::Accumulated,
                "--reorder=legacy" => options.order = SortOrder::Legacy,
                "--load-restrictor=LoadRestrictionsNone" => options.load_restriction = LoadRestriction::None,
                other => return Err(format!("the flag {other} is not known to the test")),
            }
        }
        let tree = Disk::open(&self.dir, &Limits::default()).unwrap();
        let top = TreePath::parse(self.top()).unwrap();
        let budget = Budget::default().with_timeout(LIMIT);
        let built = build(&tree, &top, &options, &budget).map_err(|error| error.to_string())?;
        Ok(built.to_yaml())
    }

    fn theirs(&self, original: &Path) -> Result<String, String> {
        let output = Command::new(original)
            .arg("build")
            .arg(self.dir.join(self.top()))
            .args(&self.flags)
            .env_clear()
            .output()
            .unwrap();
        if output.status.success() {
            Ok(String::from_utf8(output.stdout).unwrap())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    /// Returns the problem of an outcome, if there is one.
    fn judge(&self, outcome: Result<String, String>) -> Option<String> {
        let name = self.dir.file_name().unwrap().to_string_lossy();
        let read = |file| fs::read_to_string(self.dir.join(file));
        let why = match (outcome, read("expected.yaml"), read("error.txt")) {
            (Ok(got), Ok(expected), Err(_)) if got == expected => return None,
            (Ok(got), Ok(expected), Err(_)) => first_difference(&got, &expected),
            (Err(error), Err(_), Ok(words)) => {
                let missing = words.lines().find(|words| !error.contains(words))?;
                format!("{missing:?} is not in the error: {error}")
            }
            (Ok(_), Err(_), Ok(words)) => format!("must fail with {words:?}"),
            (Err(error), Ok(_), Err(_)) => format!("failed: {error}"),
            _ => "has not one of expected.yaml and error.txt".to_owned(),
        };
        Some(format!("{name}: {why}"))
    }
}

fn first_difference(got: &str, expected: &str) -> String {
    let mut both = got.lines().zip(expected.lines()).enumerate();
    match both.find(|(_, (got, expected))| got != expected) {
        Some((line, (got, expected))) => format!("line {}: got {got:?} expected {expected:?}", line + 1),
        None => format!("got {} bytes, expected {}", got.len(), expected.len()),
    }
}

fn assert_all(outcome: impl Fn(&Case) -> Result<String, String>) {
    let cases = Case::all();
    let failures: Vec<String> = cases
        .iter()
        .filter_map(|case| case.judge(outcome(case)))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn builds_are_as_recorded() {
    assert_all(Case::ours);
}

#[test]
fn original_agrees_with_the_recorded_cases() {
    let original = testkit::oracle::kustomize().unwrap();
    let record = env::var_os("WEIR_RECORD").is_some();
    assert_all(|case| {
        let outcome = case.theirs(&original);
        if let (true, Ok(text)) = (record, &outcome) {
            fs::write(case.dir.join("expected.yaml"), text).unwrap();
        }
        outcome
    });
}
