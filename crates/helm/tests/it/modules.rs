//! Charts in Go modules (`hack/charts.txt`), rendered by this crate and by Helm with three sets of values each.
//! `make conformance` runs it; `make test` fetches nothing.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

use helm::{HelmVersion, Options, functions::Moment};
use tree::{Budget, Disk, Limits, TreePath};
use yaml::Value;

use crate::conformance::at_once;

/// Returns the directories of the charts; missing modules are fetched.
pub(crate) fn charts() -> Vec<PathBuf> {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hack/charts.txt");
    let text = fs::read_to_string(list).unwrap();
    let mut charts = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        let [module, version, sum] = [(); 3].map(|()| words.next().unwrap());
        let fetched = Command::new("go")
            .args(["mod", "download", "-json", &format!("{module}@{version}")])
            .current_dir(std::env::temp_dir())
            .env("GOFLAGS", "-mod=mod")
            .output()
            .unwrap();
        let fetched_module: serde_json::Value = serde_json::from_slice(&fetched.stdout).unwrap();
        assert_eq!(fetched_module["Sum"], sum, "{fetched_module}");
        let dir = Path::new(fetched_module["Dir"].as_str().unwrap());
        charts.extend(words.map(|path| dir.join(path)));
    }
    charts
}

#[derive(Debug, Clone, Copy)]
enum Set {
    Default,
    /// Enables everything.
    On,
    /// Empty strings and maps are filled, integers are incremented, and booleans are inverted.
    Filled,
}

fn changed(value: &Value, set: Set) -> Value {
    match (value, set) {
        (Value::Bool(_), Set::On) => true.into(),
        (Value::Bool(on), Set::Filled) => (!on).into(),
        (Value::Int(number), Set::Filled) => (number + 1).into(),
        (Value::String(text), Set::Filled) if text.is_empty() => "filled".into(),
        (Value::Map(map), Set::Filled) if map.iter().next().is_none() => {
            Value::Map(yaml::Map::from_iter([("filled".to_owned(), Value::from("yes"))]))
        }
        (Value::Map(map), _) => Value::Map(
            map.iter()
                .map(|(key, value)| (key.to_owned(), changed(value, set)))
                .collect(),
        ),
        (Value::Seq(items), _) => items.iter().map(|item| changed(item, set)).collect(),
        _ => value.clone(),
    }
}

fn values(chart: &Path, set: Set) -> String {
    if matches!(set, Set::Default) {
        return "{}\n".to_owned();
    }
    let text = fs::read(chart.join("values.yaml")).unwrap_or_default();
    let own = yaml::read::goyaml_lenient(text, &Budget::default())
        .unwrap()
        .value;
    yaml::print::goyaml(&changed(&own, set))
}

pub(crate) fn theirs(helm: &Path, chart: &Path, values: &Path) -> Result<String, String> {
    let mut command = Command::new(helm);
    outcome(
        command
            .args(["template", "demo", "--values"])
            .args([values, chart]),
    )
}

/// Runs a Helm command with an empty environment, and returns its output or its error.
pub(crate) fn outcome(command: &mut Command) -> Result<String, String> {
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .env_clear()
        .env("HOME", "/nowhere")
        .env("TZ", "UTC")
        .output()
        .unwrap();
    if status.success() {
        return Ok(String::from_utf8(stdout).unwrap());
    }
    let said = String::from_utf8_lossy(&stderr).into_owned();
    let words = said.split("\n\nUse --debug flag").next().unwrap_or_default();
    let (_, error) = words.split_once("Error: ").unwrap_or(("", words));
    Err(error.trim().to_owned())
}

pub(crate) fn ours(chart: &Path, values: &str) -> Result<String, String> {
    let moment = Moment::new(1_760_000_000, 0, [7; 32]);
    let mut options = Options::new("demo", &moment);
    options.helm_version = HelmVersion::V3;
    options
        .values
        .files
        .push(("values.yaml".to_owned(), values.to_owned().into()));
    let tree = Disk::open(chart, &Limits::default()).map_err(|error| error.to_string())?;
    let budget = Budget::default().with_timeout(Duration::from_secs(60));
    let rendered = helm::template(&tree, &TreePath::root(), &options, &budget);
    rendered
        .map(|rendered| rendered.to_yaml().to_owned())
        .map_err(|error| error.to_string().trim().to_owned())
}

/// Describes the difference of a render from two renders of the original. Parts in which these two differ are ignored.
pub(crate) fn difference(
    ours: &Result<String, String>,
    theirs: &[Result<String, String>; 2],
) -> Option<String> {
    let (Ok(made), [Ok(one), Ok(other)]) = (ours, theirs) else {
        let [one, _] = theirs;
        return (ours != one).then(|| match (ours, one) {
            (Err(ours), Err(one)) => format!("fails with {ours:?}, the original with {one:?}"),
            (Err(ours), Ok(_)) => format!("fails with {ours:?}"),
            _ => "does not fail as the original does".to_owned(),
        });
    };
    if made.lines().count() != one.lines().count() {
        return Some(format!(
            "has {} lines, not {}",
            made.lines().count(),
            one.lines().count()
        ));
    }
    let lines = made.lines().zip(one.lines()).zip(other.lines()).enumerate();
    let mut wrong = lines.filter(|(_, ((made, one), other))| one == other && made != one);
    wrong
        .next()
        .map(|(at, ((made, one), _))| format!("line {}: {made:?}, the original has {one:?}", at + 1))
}

#[test]
fn recorded_nowhere_charts_of_modules() {
    if std::env::var_os("WEIR_CHARTS").is_none() {
        testkit::skipped::note(
            "charts of Go modules",
            "WEIR_CHARTS is not set, so they are not fetched",
        );
        return;
    }
    let helm = testkit::oracle::helm().unwrap();
    let charts = charts();
    let jobs: Vec<(&PathBuf, Set)> = charts
        .iter()
        .flat_map(|chart| [Set::Default, Set::On, Set::Filled].map(|set| (chart, set)))
        .collect();
    let differences = at_once(&jobs, |(chart, set)| {
        let values = values(chart, *set);
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("values.yaml");
        fs::write(&file, &values).unwrap();
        let original = [(); 2].map(|()| theirs(&helm, chart, &file));
        let failed = original[0].is_err();
        let difference = difference(&ours(chart, &values), &original);
        (
            failed,
            difference.map(|what| format!("{} with {set:?} values {what}", chart.display())),
        )
    });
    let failed = differences.iter().filter(|(failed, _)| *failed).count();
    let wrong: Vec<String> = differences.into_iter().filter_map(|(_, what)| what).collect();
    println!(
        "\nhelm-modules: {} charts: {} passed ({failed} of all fail with helm, too), {} failed",
        charts.len(),
        jobs.len() - wrong.len(),
        wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
