//! Measures builds of kustomizations beside kustomize itself.

mod trees;

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::Result;
use kustomize::{Options, build};
use tree::{Budget, Mem, TreePath};

use super::measure::{Measured, head, line, measure, median, print, time};
use trees::{Layer, Shape};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folder of the program weir
    #[arg(long, env = "WEIR_BIN_DIR", value_name = "DIR")]
    bin: PathBuf,
    /// Leave out the builds of 8,000 objects
    #[arg(long)]
    quick: bool,
}

/// The measured builds: number of objects, changes to them, number of runs.
const ROWS: &[(usize, Layer, usize)] = &[
    (2, Layer::Plain, 5),
    (2, Layer::Patch, 5),
    (100, Layer::Plain, 5),
    (100, Layer::All, 5),
    (500, Layer::Plain, 5),
    (500, Layer::All, 5),
    (2000, Layer::Plain, 5),
    (2000, Layer::All, 5),
    (8000, Layer::Plain, 1),
    (8000, Layer::All, 1),
];

struct Row {
    shape: Shape,
    ours: Measured,
    theirs: Measured,
}

pub fn run(args: &Args) -> Result<()> {
    let weir = args.bin.join("weir");
    let original = testkit::oracle::kustomize()?;
    let mut rows: Vec<Row> = Vec::new();
    print(&head("build", "kustomize"));
    for &(objects, layer, times) in ROWS {
        if args.quick && times == 1 {
            continue;
        }
        let row = measure_both(&weir, &original, Shape { objects, layer }, times)?;
        print(&line(&row.shape.name(), &row.ours, &row.theirs));
        rows.push(row);
    }
    for (from, to) in [(500, 2000), (2000, 8000)] {
        for layer in [Layer::Plain, Layer::All] {
            print_growth(&rows, layer, from, to);
        }
    }
    let patch = in_process()?;
    print(&format!(
        "2 objects, one strategic merge patch, in process: {} (median of 200)",
        time(patch)
    ));
    Ok(())
}

fn measure_both(weir: &Path, original: &Path, shape: Shape, times: usize) -> Result<Row> {
    let dir = tempfile::tempdir()?;
    let top = trees::write(dir.path(), shape)?;
    let build = |program: &Path, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).arg(&top);
        command
    };
    let commands: [&dyn Fn() -> Command; 2] = [&|| build(weir, &["kustomize", "build"]), &|| {
        build(original, &["build"])
    }];
    let [ours, theirs] = measure(commands, times)?;
    anyhow::ensure!(
        ours.output == theirs.output,
        "{} and kustomize print different objects of {}",
        weir.display(),
        shape.name()
    );
    Ok(Row { shape, ours, theirs })
}

fn print_growth(rows: &[Row], layer: Layer, from: usize, to: usize) {
    let row = |objects| {
        let same = |row: &&Row| row.shape.objects == objects && row.shape.layer == layer;
        rows.iter().find(same)
    };
    let (Some(small), Some(large)) = (row(from), row(to)) else {
        return;
    };
    let growth = |of: fn(&Row) -> Duration| of(large).as_secs_f64() / of(small).as_secs_f64();
    print(&format!(
        "{to} objects take {:.1} times as long as {from}, {:.1} times with kustomize ({})",
        growth(|row| row.ours.time),
        growth(|row| row.theirs.time),
        layer.name()
    ));
}

/// Returns the median time of a build with one strategic merge patch within this process.
fn in_process() -> Result<Duration> {
    let shape = Shape {
        objects: 2,
        layer: Layer::Patch,
    };
    let tree = Mem::from_files(trees::files(shape))?;
    let top = TreePath::parse(trees::TOP)?;
    let mut times = Vec::new();
    for _ in 0..200 {
        let begin = Instant::now();
        let built = build(&tree, &top, &Options::default(), &Budget::default())?;
        let text = built.to_yaml();
        times.push(begin.elapsed());
        anyhow::ensure!(!text.is_empty(), "nothing was built");
    }
    Ok(median(times))
}
