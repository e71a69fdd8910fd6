//! Random trees of charts with random options, rendered by this crate and by Helm: both must print the same bytes, or fail
//! with the same message.
//!
//! `make test` tries a small fixed set; `WEIR_FUZZ_CHARTS` asks for more, with new ones, and `WEIR_FUZZ_DIFFERENCES` for more
//! than the first difference. Each is reduced to a minimal case. `WEIR_FUZZ_HELM=4` compares with Helm 4.

mod chart;
mod line;
mod maker;
mod metadata;
mod template;
mod values;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use helm::HelmVersion;
use testkit::{
    archive::tar_gz,
    fuzz::{Comparison, Tally},
};
use tree::{Budget, Disk, Limits, TreePath};

use crate::{
    modules::outcome,
    options::{Fixed, parse},
};
use chart::Files;
use maker::Maker;

/// Number of charts by default.
const FEW: u64 = 60;
/// Timeout of a render.
const LONGEST: Duration = Duration::from_secs(20);
/// Maximum runs of the original for one chart: its results can depend on the random order of maps.
const TURNS: usize = 20;

/// Parts of errors that differ, see docs/differences.md, or that a library prints.
const DOCUMENTED: &[&str] = &[
    "is not valid against metaschema",
    "the archive can't be read",
    "no files in chart archive",
];

type Outcome = Result<String, String>;

struct Case {
    files: Files,
    /// Files that options name.
    beside: Files,
    arguments: Vec<String>,
}

impl Case {
    fn make(maker: &mut Maker<'_>) -> Self {
        let files = chart::whole(maker);
        let (mut arguments, beside) = line::arguments(maker, &files);
        let packed = maker.rare(8);
        let chart = if packed { "top.tgz" } else { "top" };
        arguments.insert(0, chart.to_owned());
        if !arguments.iter().any(|argument| argument == "--name-template") {
            arguments.insert(0, line::name(maker));
        }
        Self {
            files,
            beside,
            arguments,
        }
    }

    fn write(&self, dir: &Path) {
        let _ = fs::remove_dir_all(dir);
        for (name, data) in &self.beside {
            put(&dir.join(name), data);
        }
        fs::create_dir_all(dir.join("top")).unwrap();
        for (name, data) in &self.files {
            put(&dir.join("top").join(name), data);
        }
        let named: Vec<(String, &[u8])> = self
            .files
            .iter()
            .map(|(name, data)| (format!("top/{name}"), data.as_slice()))
            .collect();
        let named: Vec<(&str, &[u8])> = named.iter().map(|(name, data)| (name.as_str(), *data)).collect();
        fs::write(dir.join("top.tgz"), tar_gz(&named)).unwrap();
    }

    fn ours(&self, dir: &Path) -> Outcome {
        let environment = Fixed::default();
        let read = |name: &str| {
            let missing = |_| format!("open {name}: no such file or directory").into();
            fs::read(dir.join(name)).map(Into::into).map_err(missing)
        };
        let mut line = parse(&self.arguments, dir, &environment, &read)?;
        line.options.helm_version = compared();
        let tree = Disk::open(dir, &Limits::default()).unwrap();
        let path = TreePath::parse(&line.chart).unwrap();
        let budget = Budget::default().with_timeout(LONGEST);
        helm::template(&tree, &path, &line.options, &budget)
            .map(|rendered| rendered.to_yaml().to_owned())
            .map_err(|error| error.to_string().trim().to_owned())
    }

    fn theirs(&self, helm: &Path, dir: &Path) -> Outcome {
        let mut command = Command::new(helm);
        outcome(command.arg("template").args(&self.arguments).current_dir(dir))
    }
}

fn put(path: &Path, data: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, data).unwrap();
}

/// The version of Helm to compare with: `WEIR_FUZZ_HELM`, by default 3.
pub(crate) fn compared() -> HelmVersion {
    let given = std::env::var("WEIR_FUZZ_HELM").ok();
    given.map_or(HelmVersion::V3, |given| given.parse().unwrap())
}

pub(crate) fn original_program() -> PathBuf {
    match compared() {
        HelmVersion::V3 => testkit::oracle::helm().unwrap(),
        HelmVersion::V4 => testkit::oracle::helm_4().unwrap(),
    }
}

/// Sorts the words of an error: the original reports some problems in the random order of its maps.
fn sorted(error: &str) -> Vec<&str> {
    let mut words: Vec<&str> = error.split([' ', '\n', ',']).collect();
    words.retain(|word| !word.is_empty());
    words.sort_unstable();
    words
}

fn same(ours: &Outcome, theirs: &Outcome) -> bool {
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => ours == theirs,
        (Err(ours), Err(theirs)) => sorted(ours) == sorted(theirs),
        _ => false,
    }
}

/// Returns true if both fail, and our message may differ.
fn is_documented(ours: &Outcome, theirs: &Outcome) -> bool {
    match (ours, theirs) {
        (Err(ours), Err(_)) => DOCUMENTED.iter().any(|words| ours.contains(words)),
        _ => false,
    }
}

/// Renders a chart with the original until the result is ours, at most `TURNS` times. Otherwise returns the first result.
fn original(case: &Case, ours: &Outcome, helm: &Path, dir: &Path) -> Outcome {
    let mut turns = (0..TURNS).map(|_| case.theirs(helm, dir));
    let first = turns.next().unwrap();
    if same(ours, &first) || is_documented(ours, &first) {
        return first;
    }
    turns.find(|one| same(ours, one)).unwrap_or(first)
}

#[test]
fn random_chart_trees_render_as_in_the_original() {
    let comparison = Comparison::from_environment("WEIR_FUZZ_CHARTS", FEW);
    let helm = original_program();
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("case");
    let mut tally = Tally::default();
    let differences = comparison.differences("charts", |random| {
        let case = Case::make(&mut Maker::new(random));
        random.note("arguments", &case.arguments.join(" "));
        for (name, data) in case.beside.iter().chain(&case.files) {
            random.note(name, &String::from_utf8_lossy(data));
        }
        case.write(&dir);
        let ours = case.ours(&dir);
        let theirs = original(&case, &ours, &helm, &dir);
        tally.compare(Some(&ours), Some(&theirs), is_documented, same);
    });
    comparison.conclude("helm-charts", &tally, &differences);
    // Many must succeed.
    let (count, compared) = (comparison.count, tally.made + tally.failed);
    assert!(
        count < FEW || tally.made * 3 >= count && compared * 10 >= count * 9,
        "too few charts can be rendered: {tally}"
    );
}
