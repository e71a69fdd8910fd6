//! Compiles the workspace once, runs its test suites side by side, and reports times.

mod build;
mod report;
mod run;

use std::{
    path::Path,
    process::{Command, ExitCode},
    sync::{
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use build::Suite;
use report::{Part, say};
use run::Outcome;

#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// Run the tests whose names contain one of these only
    filters: Vec<String>,
    /// Run the suites of this crate only; may be repeated
    #[arg(long = "crate", value_name = "NAME")]
    crates: Vec<String>,
    /// Leave out the tests whose names contain this; may be repeated
    #[arg(long, value_name = "PART")]
    skip: Vec<String>,
    /// Number of suites that run at the same time, each lane with a control plane of its own
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=8))]
    lanes: u16,
    /// Number of tests of a suite that run at the same time
    #[arg(long, default_value_t = 3)]
    threads: u16,
    /// Number of runs of each suite
    #[arg(long, default_value_t = 1)]
    times: u32,
    /// Number of busy loops beside the tests
    #[arg(long, default_value_t = 0)]
    busy: usize,
    /// Print the output of the tests whose names contain this, even if they pass
    #[arg(long, value_name = "PART")]
    show: Option<String>,
}

/// Runs the selected tests. The exit code is a failure if one of them fails, or a suite ends otherwise.
pub(crate) fn run(root: &Path, options: &Options) -> Result<ExitCode> {
    let mut parts = Vec::new();
    let built = Part::measure("compilation", &mut parts, || build::all(root))?;
    Part::measure("control plane", &mut parts, || prepare(&built.programs))?;
    let suites = selected(built.suites, &options.crates)?;
    let usage = report::CpuTimes::now();
    let outcomes = Part::measure("tests", &mut parts, || {
        Ok(run_all(root, &built.programs, suites, options))
    })?;
    let idle = usage.idle_share();
    let mut failed = outcomes.iter().any(|outcome| !outcome.passed);
    if options.filters.is_empty() && options.crates.is_empty() && options.times == 1 {
        failed |= !Part::measure("documentation tests", &mut parts, || documentation(root))?;
    }
    report::save_times(root, &outcomes)?;
    report::print(&outcomes, &parts, idle, options.times);
    Ok(ExitCode::from(u8::from(failed)))
}

/// Builds the programs that are no part of the workspace into the cache.
fn prepare(programs: &Path) -> Result<()> {
    let status = Command::new(programs.join("testkit"))
        .args(["build", "--tests"])
        .status();
    let status = status.context("cannot run testkit")?;
    ensure!(status.success(), "testkit build failed ({status})");
    Ok(())
}

fn selected(suites: Vec<Suite>, crates: &[String]) -> Result<Vec<Suite>> {
    for name in crates {
        let known = suites.iter().any(|suite| suite.package == *name);
        ensure!(known, "the crate {name} has no tests");
    }
    let is_selected = |suite: &Suite| crates.is_empty() || crates.contains(&suite.package);
    Ok(suites.into_iter().filter(is_selected).collect())
}

/// Runs each suite as often as asked for; the slowest of the last run come first, so that none is left alone at the end.
fn run_all(root: &Path, programs: &Path, mut suites: Vec<Suite>, options: &Options) -> Vec<Outcome> {
    let times = report::saved_times(root);
    suites.sort_by_key(|suite| std::cmp::Reverse(times.get(&suite.name).copied().unwrap_or(suite.guess)));
    let runs: Vec<(&Suite, u32)> = suites
        .iter()
        .flat_map(|suite| (1..=options.times).map(move |round| (suite, round)))
        .collect();
    let (next, ended) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..options.busy {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let (done, results) = mpsc::channel();
        for lane in 0..options.lanes {
            let (done, runs, next) = (done.clone(), &runs, &next);
            scope.spawn(move || {
                while let Some((suite, round)) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = run::suite(suite, *round, lane, programs, options);
                    if done.send(outcome).is_err() {
                        return;
                    }
                }
            });
        }
        drop(done);
        let outcomes = results.iter().inspect(report::progress).collect();
        ended.store(true, Ordering::Relaxed);
        outcomes
    })
}

/// Runs the examples in doc comments; returns false if one fails.
fn documentation(root: &Path) -> Result<bool> {
    let start = Instant::now();
    let output = Command::new(build::cargo())
        .args(["test", "--locked", "--workspace", "--doc", "--quiet"])
        .current_dir(root)
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        say(&String::from_utf8_lossy(&output.stdout));
        say(&String::from_utf8_lossy(&output.stderr));
    }
    report::progress_line("documentation", start.elapsed(), output.status.success());
    Ok(output.status.success())
}
