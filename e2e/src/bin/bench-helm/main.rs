//! `make bench-helm`: renders of Helm charts, measured beside the original.

mod charts;

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use clap::Parser;
use e2e::measure::{Measured, head, line, measure, median, say, time};
use helm::{Options, functions::Moment};
use tree::{Budget, Disk, Limits, TreePath};

/// Measures time and memory of `weir helm template`, beside the original.
#[derive(Debug, Parser)]
#[command(name = "bench-helm")]
struct Args {
    /// The program weir
    #[arg(long, env = "WEIR_BIN_DIR", value_name = "DIR")]
    bin: PathBuf,
}

/// A chart to render: arguments behind `template`, and the directory that they are relative to.
pub(crate) struct Job {
    pub(crate) dir: PathBuf,
    pub(crate) arguments: Vec<String>,
}

/// How often a chart is rendered that stands for itself: one that takes milliseconds has a steady median only then.
const TIMES: usize = 75;
/// How often each of several charts is.
const TIMES_OF_MANY: usize = 15;

fn main() -> Result<()> {
    let args = Args::parse();
    let programs = [args.bin.join("weir"), testkit::oracle::helm()?];
    say(&head("render", "helm"));
    match charts::redis() {
        Some(dir) => {
            let arguments = ["demo", ".", "--set", "auth.password=made-up"];
            let job = Job {
                dir: dir.clone(),
                arguments: arguments.map(str::to_owned).to_vec(),
            };
            let [ours, theirs] = both(&programs, &[job])?;
            say(&line("redis", &ours, &theirs));
            say(&format!(
                "redis, in process: {} (median of 100)",
                time(in_process(&dir)?)
            ));
        }
        None => say("redis: the examples beside this project are absent"),
    }
    let made = tempfile::tempdir()?;
    charts::umbrella(made.path(), 40, 10)?;
    let umbrella = Job {
        dir: made.path().to_owned(),
        arguments: vec!["demo".to_owned(), ".".to_owned()],
    };
    let [ours, theirs] = both(&programs, &[umbrella])?;
    anyhow::ensure!(
        ours.output == theirs.output,
        "weir and helm print different manifests of the umbrella chart"
    );
    say(&line("40 charts of 20 objects in one", &ours, &theirs));
    let recorded = charts::recorded(20);
    if recorded.is_empty() {
        say("charts in a row: the recorded charts beside this project are absent");
    } else {
        let name = format!("{} charts in a row", recorded.len());
        let [ours, theirs] = both(&programs, &recorded)?;
        say(&line(&name, &ours, &theirs));
    }
    Ok(())
}

/// What all jobs take together, and the most memory that one of them takes.
fn both(programs: &[PathBuf; 2], jobs: &[Job]) -> Result<[Measured; 2]> {
    let [weir, helm] = programs;
    let mut sums = [Measured::default(), Measured::default()];
    let times = if jobs.len() == 1 { TIMES } else { TIMES_OF_MANY };
    for job in jobs {
        let render = |program: &Path, first: &[&str]| {
            let mut command = Command::new(program);
            command
                .args(first)
                .args(&job.arguments)
                .current_dir(&job.dir)
                .env("TZ", "UTC");
            command
        };
        let commands: [&dyn Fn() -> Command; 2] = [&|| render(weir, &["helm", "template"]), &|| {
            render(helm, &["template"])
        }];
        let both = measure(commands, times).with_context(|| job.dir.display().to_string())?;
        for (sum, one) in sums.iter_mut().zip(both) {
            sum.time += one.time;
            sum.memory = sum.memory.max(one.memory);
            sum.output.extend(one.output);
        }
    }
    Ok(sums)
}

/// How long a render takes where nothing has to be started; the files are read each time.
fn in_process(dir: &Path) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..100 {
        let moment = Moment::new(1_700_000_000, 0, [7; 32]);
        let options = Options::new("demo", &moment);
        let begin = Instant::now();
        let tree = Disk::open(dir, &Limits::default())?;
        let rendered = helm::template(&tree, &TreePath::root(), &options, &Budget::default())?;
        times.push(begin.elapsed());
        anyhow::ensure!(!rendered.to_yaml().is_empty(), "nothing was rendered");
    }
    Ok(median(times))
}
