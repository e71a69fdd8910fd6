//! Prints the results of suites and the time that each part took.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};

use super::run::Outcome;

/// Number of tests in the list of the slowest.
const SLOWEST: usize = 30;
/// Number of lines of a failure that are repeated at the end.
const EXCERPT: usize = 24;

/// A part of a run with its duration.
#[derive(Debug)]
pub(super) struct Part {
    name: &'static str,
    time: Duration,
}

impl Part {
    pub(super) fn measure<T>(
        name: &'static str,
        parts: &mut Vec<Self>,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let start = Instant::now();
        let result = work();
        let time = start.elapsed();
        parts.push(Self { name, time });
        result
    }
}

#[expect(clippy::print_stdout, reason = "the result of a command for people")]
pub(super) fn say(line: &str) {
    println!("{line}");
}

/// Prints the result of a suite, and why tests of it failed: a run of many suites may take an hour.
pub(super) fn progress(outcome: &Outcome) {
    let failed = outcome.tests.iter().filter(|test| !test.passed).count();
    let result = match (outcome.passed, failed) {
        (true, _) => format!("{} passed", outcome.tests.len()),
        (false, failed) => format!("{failed} of {} FAILED", outcome.tests.len()),
    };
    let round = if outcome.round > 1 {
        format!(", run {}", outcome.round)
    } else {
        String::new()
    };
    say(&format!(
        "{:>7.1} s  {}{round}: {result}",
        outcome.time.as_secs_f64(),
        outcome.suite
    ));
    for (name, failure) in failures(std::slice::from_ref(outcome)) {
        say_failure(&name, &failure);
    }
    for test in outcome
        .tests
        .iter()
        .filter(|test| test.passed && !test.output.is_empty())
    {
        say(test.output.trim_end());
    }
}

pub(super) fn progress_line(name: &str, time: Duration, passed: bool) {
    let result = if passed { "passed" } else { "FAILED" };
    say(&format!("{:>7.1} s  {name}: {result}", time.as_secs_f64()));
}

/// Prints failures with their output, the slowest tests, and the parts.
pub(super) fn print(outcomes: &[Outcome], parts: &[Part], idle: Option<f64>, times: u32) {
    for outcome in outcomes.iter().filter(|outcome| !outcome.passed) {
        for test in outcome.tests.iter().filter(|test| !test.passed) {
            say(&format!(
                "\n---- {}: {}\n{}",
                outcome.suite,
                test.name,
                test.output.trim_end()
            ));
        }
        if outcome.tests.iter().all(|test| test.passed) {
            say(&format!(
                "\n---- {}\n{}",
                outcome.suite,
                outcome.output.trim_end()
            ));
        }
    }
    say(&format!("\nthe {SLOWEST} slowest tests:"));
    for (time, suite, name) in slowest(outcomes) {
        say(&format!("{:>7.1} s  {suite}: {name}", time.as_secs_f64()));
    }
    say("\nparts:");
    for part in parts {
        say(&format!("{:>7.1} s  {}", part.time.as_secs_f64(), part.name));
    }
    if let Some(idle) = idle {
        say(&format!(
            "processors were idle for {:.0}% of the tests' time",
            idle * 100.0
        ));
    }
    let failures = failures(outcomes);
    let count: usize = outcomes.iter().map(|outcome| outcome.tests.len()).sum();
    if !failures.is_empty() {
        say("failed:");
    }
    for (name, failure) in &failures {
        say_failure(&format!("{name}: {} of {times}", failure.count), failure);
    }
    let failed: usize = outcomes
        .iter()
        .flat_map(|outcome| &outcome.tests)
        .filter(|test| !test.passed)
        .count();
    say(&format!("{} passed, {failed} failed", count - failed));
}

fn say_failure(title: &str, failure: &Failure<'_>) {
    say(&format!("  {title}"));
    for line in &failure.excerpt {
        say(&format!("    {line}"));
    }
}

/// Returns the longest times, each test once.
fn slowest(outcomes: &[Outcome]) -> Vec<(Duration, &str, &str)> {
    let mut longest: BTreeMap<(&str, &str), Duration> = BTreeMap::new();
    for outcome in outcomes {
        for test in &outcome.tests {
            let time = longest.entry((&outcome.suite, &test.name)).or_default();
            *time = test.time.max(*time);
        }
    }
    let mut sorted: Vec<_> = longest
        .into_iter()
        .map(|((suite, name), time)| (time, suite, name))
        .collect();
    sorted.sort_by_key(|(time, ..)| std::cmp::Reverse(*time));
    sorted.truncate(SLOWEST);
    sorted
}

/// Failures of a test in all runs.
#[derive(Debug, PartialEq)]
struct Failure<'a> {
    count: usize,
    /// Lines of the message of the first one.
    excerpt: Vec<&'a str>,
}

/// Returns the failures of each test; a suite that ended early counts by its own name.
fn failures(outcomes: &[Outcome]) -> BTreeMap<String, Failure<'_>> {
    let mut failures = BTreeMap::new();
    for outcome in outcomes.iter().filter(|outcome| !outcome.passed) {
        let failed = outcome.tests.iter().filter(|test| !test.passed);
        let mut tests: Vec<_> = failed
            .map(|test| (format!("{}: {}", outcome.suite, test.name), &test.output))
            .collect();
        if tests.is_empty() {
            tests.push((outcome.suite.clone(), &outcome.output));
        }
        for (name, output) in tests {
            let failure = failures.entry(name).or_insert_with(|| Failure {
                count: 0,
                excerpt: excerpt(output),
            });
            failure.count += 1;
        }
    }
    failures
}

/// Returns the first lines of the last panic or error of a test, without its backtrace.
fn excerpt(output: &str) -> Vec<&str> {
    let ends = ["\nstack backtrace:", "\nStack backtrace:"].iter();
    let end = ends.filter_map(|marker| output.find(marker)).min();
    let message = end.and_then(|end| output.get(..end)).unwrap_or(output);
    let start = ["\nthread '", "\nError: "]
        .iter()
        .filter_map(|marker| message.rfind(marker));
    let message = message.split_at(start.max().unwrap_or_default()).1;
    let lines = message.lines().filter(|line| !line.trim().is_empty());
    lines.take(EXCERPT).collect()
}

fn times_file(root: &Path) -> PathBuf {
    root.join("target/suite-times.json")
}

/// Keeps the durations of suites for the order of the next run.
pub(super) fn save_times(root: &Path, outcomes: &[Outcome]) -> Result<()> {
    let mut times = saved_times(root);
    times.extend(
        outcomes
            .iter()
            .map(|outcome| (outcome.suite.clone(), outcome.time)),
    );
    let seconds: BTreeMap<&str, u64> = times
        .iter()
        .map(|(name, time)| (name.as_str(), time.as_secs()))
        .collect();
    let path = times_file(root);
    fs::create_dir_all(path.parent().unwrap_or(root))?;
    fs::write(&path, serde_json::to_vec_pretty(&seconds)?)
        .with_context(|| format!("cannot write {}", path.display()))
}

pub(super) fn saved_times(root: &Path) -> BTreeMap<String, Duration> {
    let saved = fs::read(times_file(root)).unwrap_or_default();
    let seconds: BTreeMap<String, u64> = serde_json::from_slice(&saved).unwrap_or_default();
    seconds
        .into_iter()
        .map(|(name, seconds)| (name, Duration::from_secs(seconds)))
        .collect()
}

/// The times of all processors since boot: idle, and in all.
pub(super) struct CpuTimes(Option<[u64; 2]>);

impl CpuTimes {
    pub(super) fn now() -> Self {
        Self(
            fs::read_to_string("/proc/stat")
                .ok()
                .and_then(|text| cpu_times(&text)),
        )
    }

    /// Returns the share of idle time since then, from 0 to 1; `None` without `/proc`.
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    pub(super) fn idle_share(&self) -> Option<f64> {
        let ([idle, all], [idle_now, all_now]) = (self.0?, Self::now().0?);
        let all = all_now.checked_sub(all).filter(|all| *all > 0)?;
        Some(idle_now.saturating_sub(idle) as f64 / all as f64)
    }
}

/// Reads the first line of `/proc/stat`: user, nice, system, idle, waiting for disks, interrupts and so on. Waiting is idle, too.
fn cpu_times(stat: &str) -> Option<[u64; 2]> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let times: Vec<u64> = line
        .split_ascii_whitespace()
        .take(8)
        .filter_map(|time| time.parse().ok())
        .collect();
    let idle = times.iter().skip(3).take(2).sum();
    Some([idle, times.iter().sum()])
}

#[cfg(test)]
mod tests {
    use super::{super::run::Test, *};

    fn outcome(suite: &str, passed: bool, tests: &[(&str, u64, bool)]) -> Outcome {
        let tests = tests.iter().map(|(name, seconds, passed)| Test {
            name: (*name).to_owned(),
            time: Duration::from_secs(*seconds),
            passed: *passed,
            output: String::new(),
        });
        Outcome {
            suite: suite.to_owned(),
            round: 1,
            time: Duration::ZERO,
            passed,
            tests: tests.collect(),
            output: String::new(),
        }
    }

    #[test]
    fn excerpt_is_the_message_of_the_failure_without_its_backtrace() {
        let output = "a log line\n\nthread 'a' (1) panicked at b.rs:1:2:\nleft: 1\n\nright: 2\nstack backtrace:\n  0: a\n";
        assert_eq!(
            excerpt(output),
            ["thread 'a' (1) panicked at b.rs:1:2:", "left: 1", "right: 2"]
        );
        let error = "log\nError: no\n\nCaused by:\n    x\n\nStack backtrace:\n   0: a\n";
        assert_eq!(excerpt(error).len(), 3);
        let long = "line\n".repeat(100);
        assert_eq!(excerpt(&long).len(), EXCERPT);
    }

    #[test]
    fn failures_are_counted_over_all_runs() {
        let outcomes = [
            outcome("a it", false, &[("one", 1, false), ("two", 2, true)]),
            outcome("a it", true, &[("one", 1, true), ("two", 2, true)]),
            outcome("a it", false, &[("one", 3, false), ("two", 2, true)]),
            outcome("b lib", false, &[("one", 1, true)]),
        ];
        let counts: Vec<_> = failures(&outcomes)
            .into_iter()
            .map(|(name, failure)| (name, failure.count))
            .collect();
        assert_eq!(counts, [("a it: one".to_owned(), 2), ("b lib".to_owned(), 1)]);
        let order: Vec<_> = slowest(&outcomes)
            .into_iter()
            .map(|(time, suite, name)| (time.as_secs(), suite, name))
            .collect();
        assert_eq!(
            order,
            [(3, "a it", "one"), (2, "a it", "two"), (1, "b lib", "one")]
        );
    }

    #[test]
    fn cpu_times_are_idle_and_all() {
        assert_eq!(cpu_times("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1\n"), Some([9, 36]));
        assert_eq!(cpu_times("intr 1"), None);
    }
}
