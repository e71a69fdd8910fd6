//! Runs one suite.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Seek as _},
    path::Path,
    process::{Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::{Options, build::Suite};

/// The result of a run of a suite.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) suite: String,
    /// Number of the run, from 1.
    pub(super) round: u32,
    pub(super) time: Duration,
    pub(super) passed: bool,
    pub(super) tests: Vec<Test>,
    /// Output that belongs to no test.
    pub(super) output: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Test {
    pub(super) name: String,
    pub(super) time: Duration,
    pub(super) passed: bool,
    /// Standard output of a test that failed or is to be shown.
    pub(super) output: String,
}

/// Runs a suite on a lane, which has ports and a control plane of its own. A suite that can't be run has failed.
pub(super) fn suite(suite: &Suite, round: u32, lane: u16, programs: &Path, options: &Options) -> Outcome {
    let start = Instant::now();
    let mut outcome = Outcome {
        suite: suite.name.clone(),
        round,
        time: Duration::ZERO,
        passed: false,
        tests: Vec::new(),
        output: String::new(),
    };
    match run(suite, lane, programs, options, &mut outcome) {
        Ok(status) => {
            outcome.passed = status.success();
            if !status.success() && outcome.tests.iter().all(|test| test.passed) {
                outcome.output += &format!("the suite ended with {status}\n");
            }
        }
        Err(error) => outcome.output += &format!("{error:#}\n"),
    }
    outcome.time = start.elapsed();
    outcome
}

fn run(
    suite: &Suite,
    lane: u16,
    programs: &Path,
    options: &Options,
    outcome: &mut Outcome,
) -> Result<ExitStatus> {
    let mut errors = tempfile()?;
    let mut child = command(suite, lane, programs, options)
        .stderr(errors.try_clone()?)
        .spawn()
        .with_context(|| format!("cannot run {}", suite.program.display()))?;
    let output = child.stdout.take().context("the suite has no output")?;
    for line in BufReader::new(output).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        match serde_json::from_str::<Value>(&line) {
            Ok(event) if event.get("type").is_some() => {
                outcome.tests.extend(test(&event, options.show.as_deref()));
            }
            _ => outcome.output += &format!("{line}\n"),
        }
    }
    let status = child.wait()?;
    errors.rewind()?;
    let mut text = Vec::new();
    errors.read_to_end(&mut text)?;
    outcome.output += &String::from_utf8_lossy(&text);
    Ok(status)
}

/// Returns an open file without a name.
fn tempfile() -> Result<fs::File> {
    let path = std::env::temp_dir().join(format!(
        "weir-suite-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    let file = fs::File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path);
    let file = file.with_context(|| format!("cannot create {}", path.display()))?;
    fs::remove_file(&path)?;
    Ok(file)
}

fn command(suite: &Suite, lane: u16, programs: &Path, options: &Options) -> Command {
    let mut command = Command::new(&suite.program);
    command
        .args(["-Z", "unstable-options", "--format=json", "--report-time"])
        .arg(format!("--test-threads={}", options.threads))
        .args(options.skip.iter().flat_map(|part| ["--skip", part]))
        .args(options.show.is_some().then_some("--show-output"))
        .args(&options.filters)
        .current_dir(&suite.dir)
        .env("CARGO_MANIFEST_DIR", &suite.dir)
        // The test harness of a stable toolchain tells times only with this.
        .env("RUSTC_BOOTSTRAP", "1")
        // Every API server collects its garbage less often: it takes a fifth less of the processors, within a bound of its memory.
        .envs([("GOGC", "400"), ("GOMEMLIMIT", "1500MiB")])
        .env("WEIR_BIN_DIR", programs)
        .env("WEIR_TEST_LANE", lane.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command
}

/// Reads the end of a test from an event of the test harness. A passing test keeps its output if its name contains `show`.
fn test(event: &Value, show: Option<&str>) -> Option<Test> {
    let text = |key: &str| event.get(key).and_then(Value::as_str);
    let passed = match (text("type")?, text("event")?) {
        ("test", "ok") => true,
        ("test", "failed") => false,
        _ => return None,
    };
    let seconds = event.get("exec_time").and_then(Value::as_f64).unwrap_or_default();
    let name = text("name")?;
    let shows_output = !passed || show.is_some_and(|part| name.contains(part));
    Some(Test {
        name: name.to_owned(),
        time: Duration::try_from_secs_f64(seconds).unwrap_or_default(),
        passed,
        output: text("stdout")
            .filter(|_| shows_output)
            .unwrap_or_default()
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ends_of_tests_are_read_and_other_events_are_not() {
        let end = |event: &str| json!({"type": "test", "event": event, "name": "a::b", "exec_time": 1.5, "stdout": "no"});
        let expected = Test {
            name: "a::b".to_owned(),
            time: Duration::from_millis(1500),
            passed: false,
            output: "no".to_owned(),
        };
        assert_eq!(test(&end("failed"), None), Some(expected.clone()));
        let passed = Test {
            passed: true,
            ..expected
        };
        assert_eq!(test(&end("ok"), Some("a:")), Some(passed.clone()));
        let output = String::new();
        assert_eq!(test(&end("ok"), Some("c")), Some(Test { output, ..passed }));
        assert_eq!(test(&end("started"), None), None);
        assert_eq!(test(&end("timeout"), None), None);
        assert_eq!(
            test(&json!({"type": "suite", "event": "ok", "passed": 3}), None),
            None
        );
    }
}
