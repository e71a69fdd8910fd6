//! `make bench-helm`: renders of Helm charts, measured beside the original.

mod charts;
mod measure;

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use clap::Parser;
use helm::{Options, functions::Moment};
use tree::{Budget, Disk, Limits, TreePath};

use measure::{Job, Measured, measure};

/// Measures time and memory of `weir helm template`, beside the original.
#[derive(Debug, Parser)]
#[command(name = "bench-helm")]
struct Args {
    /// The program weir
    #[arg(long, env = "WEIR_BIN_DIR", value_name = "DIR")]
    bin: PathBuf,
}

/// How often each chart is rendered.
const TIMES: usize = 7;

fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

fn main() -> Result<()> {
    let args = Args::parse();
    let programs = [args.bin.join("weir"), testkit::oracle::helm()?];
    say(&format!(
        "{:<34} {:>21} {:>8} {:>23} {:>7}",
        "render", "weir / helm", "faster", "peak memory", "part"
    ));
    match charts::redis() {
        Some(dir) => {
            let arguments = ["demo", ".", "--set", "auth.password=made-up"];
            let job = Job {
                dir: dir.clone(),
                arguments: arguments.map(str::to_owned).to_vec(),
            };
            say(&line("redis", &both(&programs, &[job])?));
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
    let measured = both(&programs, &[umbrella])?;
    anyhow::ensure!(
        measured[0].output == measured[1].output,
        "weir and helm print different manifests of the umbrella chart"
    );
    say(&line("40 charts of 20 objects in one", &measured));
    let recorded = charts::recorded(20);
    if recorded.is_empty() {
        say("charts in a row: the recorded charts beside this project are absent");
    } else {
        let name = format!("{} charts in a row", recorded.len());
        say(&line(&name, &both(&programs, &recorded)?));
    }
    Ok(())
}

/// What all jobs take together, and the most memory that one of them takes.
fn both(programs: &[PathBuf; 2], jobs: &[Job]) -> Result<[Measured; 2]> {
    let [weir, helm] = programs;
    let sum = |program: &Path, first: &[&str]| {
        let mut sum = Measured::default();
        for job in jobs {
            let one = measure(program, first, job, TIMES).with_context(|| job.dir.display().to_string())?;
            sum.time += one.time;
            sum.memory = sum.memory.max(one.memory);
            sum.output.extend(one.output);
        }
        anyhow::Ok(sum)
    };
    Ok([sum(weir, &["helm", "template"])?, sum(helm, &["template"])?])
}

fn time(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

#[allow(clippy::cast_precision_loss, reason = "for people")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn line(name: &str, [ours, theirs]: &[Measured; 2]) -> String {
    format!(
        "{name:<34} {:>10} {:>10} {:>7.1}x {:>9.1} {:>9.1} MiB {:>7.2}",
        time(ours.time),
        time(theirs.time),
        theirs.time.as_secs_f64() / ours.time.as_secs_f64(),
        mebibytes(ours.memory),
        mebibytes(theirs.memory),
        mebibytes(ours.memory) / mebibytes(theirs.memory),
    )
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
    Ok(measure::median(times))
}
