//! Measures renders of Helm charts beside Helm itself.

mod charts;

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use helm::{HelmVersion, Options, functions::Moment};
use tree::{Budget, Disk, Limits, TreePath};

use super::measure::{Measured, head, line, measure, median, print, time};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folder of the program weir
    #[arg(long, env = "WEIR_BIN_DIR", value_name = "DIR")]
    bin: PathBuf,
}

/// A chart to render: the arguments of `template` and their working directory.
pub(crate) struct Render {
    pub(crate) dir: PathBuf,
    pub(crate) arguments: Vec<String>,
}

/// Number of renders of a single chart; the median of a few milliseconds is steady only with many.
const TIMES: usize = 75;
/// Number of renders of each chart in a row.
const TIMES_OF_MANY: usize = 15;

/// The compared programs, and the version of Helm that ours copies.
struct Programs {
    weir: PathBuf,
    helm: PathBuf,
    version: &'static str,
}

pub fn run(args: &Args) -> Result<()> {
    let programs = |version, helm| Programs {
        weir: args.bin.join("weir"),
        helm,
        version,
    };
    measure_all(&programs("3", testkit::oracle::helm()?))?;
    match testkit::oracle::helm_4() {
        Ok(helm) => measure_all(&programs("4", helm)),
        Err(error) => {
            print(&format!("helm 4 can't be built: {error:#}"));
            Ok(())
        }
    }
}

fn measure_all(programs: &Programs) -> Result<()> {
    print(&head("render", &format!("helm {}", programs.version)));
    match charts::redis() {
        Some(dir) => {
            let arguments = ["demo", ".", "--set", "auth.password=made-up"];
            let render = Render {
                dir: dir.clone(),
                arguments: arguments.map(str::to_owned).to_vec(),
            };
            let [ours, theirs] = both(programs, &[render])?;
            print(&line("redis", &ours, &theirs));
            print(&format!(
                "redis, in process: {} (median of 100)",
                time(in_process(&dir, programs.version.parse()?)?)
            ));
        }
        None => print("redis: the examples beside this project are absent"),
    }
    let made = tempfile::tempdir()?;
    charts::umbrella(made.path(), 40, 10)?;
    let umbrella = Render {
        dir: made.path().to_owned(),
        arguments: vec!["demo".to_owned(), ".".to_owned()],
    };
    let [ours, theirs] = both(programs, &[umbrella])?;
    anyhow::ensure!(
        ours.output == theirs.output,
        "weir and helm print different manifests of the umbrella chart"
    );
    print(&line("40 charts of 20 objects in one", &ours, &theirs));
    let recorded = charts::recorded(20);
    if recorded.is_empty() {
        print("charts in a row: the recorded charts beside this project are absent");
    } else {
        let name = format!("{} charts in a row", recorded.len());
        let [ours, theirs] = both(programs, &recorded)?;
        print(&line(&name, &ours, &theirs));
    }
    Ok(())
}

/// Returns the sum of times and the maximum of memory over all renders.
fn both(programs: &Programs, renders: &[Render]) -> Result<[Measured; 2]> {
    let Programs { weir, helm, version } = programs;
    let mut sums = [Measured::default(), Measured::default()];
    let times = if renders.len() == 1 { TIMES } else { TIMES_OF_MANY };
    for render in renders {
        let command = |program: &Path, first: &[&str]| {
            let mut command = Command::new(program);
            command
                .args(first)
                .args(&render.arguments)
                .current_dir(&render.dir)
                .env("TZ", "UTC");
            command
        };
        let commands: [&dyn Fn() -> Command; 2] = [
            &|| command(weir, &["helm", "template", "--helm-version", version]),
            &|| command(helm, &["template"]),
        ];
        let both = measure(commands, times).with_context(|| render.dir.display().to_string())?;
        for (sum, one) in sums.iter_mut().zip(both) {
            sum.time += one.time;
            sum.memory = sum.memory.max(one.memory);
            sum.output.extend(one.output);
        }
    }
    Ok(sums)
}

/// Returns the median time of a render within this process; the files are read each time.
fn in_process(dir: &Path, version: HelmVersion) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..100 {
        let moment = Moment::new(1_700_000_000, 0, [7; 32]);
        let mut options = Options::new("demo", &moment);
        options.helm_version = version;
        let begin = Instant::now();
        let tree = Disk::open(dir, &Limits::default())?;
        let rendered = helm::template(&tree, &TreePath::root(), &options, &Budget::default())?;
        times.push(begin.elapsed());
        anyhow::ensure!(!rendered.to_yaml().is_empty(), "nothing was rendered");
    }
    Ok(median(times))
}
