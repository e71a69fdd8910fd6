//! Measures the commands of `weir` with kluctl projects on a real control plane.

mod project;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use testkit::{ControlPlane, process::Usage};

use super::measure::{mebibytes, print};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folder of the program weir
    #[arg(long, env = "WEIR_BIN_DIR", value_name = "DIR")]
    bin: PathBuf,
    /// Numbers of items, which are measured one after another
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1000])]
    items: Vec<usize>,
}

/// The measured commands: their titles and arguments.
const COMMANDS: &[(&str, &[&str])] = &[
    ("render", &["render", "--offline-kubernetes", "--print-all"]),
    ("first deploy", &["deploy", "--yes"]),
    ("deploy without changes", &["deploy", "--yes"]),
    ("diff", &["diff"]),
    ("validate", &["validate"]),
    ("delete", &["delete", "--yes"]),
];
/// Number of runs of a command that needs no cluster.
const TIMES: usize = 5;

struct Measured {
    time: Duration,
    memory: u64,
}

pub async fn run(args: &Args) -> Result<()> {
    let weir = args.bin.join("weir");
    let plane = ControlPlane::start(testkit::Options::default()).await?;
    for &items in &args.items {
        let dir = tempfile::tempdir()?;
        project::write(dir.path(), items)?;
        print(&format!("\n{items} items, {} objects", project::objects(items)));
        print(&format!(
            "  {:<24} {:>10} {:>12} {:>10} {:>18}",
            "", "time", "peak memory", "requests", "API server's CPU"
        ));
        for (name, arguments) in COMMANDS {
            let offline = arguments.contains(&"--offline-kubernetes");
            let (cpu, mark) = (plane.usage("kube-apiserver")?.cpu, plane.audit_mark());
            let times = if offline { TIMES } else { 1 };
            let mut taken = Vec::new();
            for _ in 0..times {
                taken.push(measure(&weir, arguments, dir.path(), plane.kubeconfig())?);
            }
            taken.sort_by_key(|taken| taken.time);
            let median = taken.get(times / 2).context("nothing was measured")?;
            let peak = taken.iter().map(|taken| taken.memory).max().unwrap_or_default();
            let asked = requests(&plane, mark)?;
            let server = plane.usage("kube-apiserver")?.cpu.saturating_sub(cpu);
            print(&line(
                name,
                median.time,
                peak,
                (!offline).then_some((asked, server)),
            ));
        }
    }
    plane.stop()
}

fn requests(plane: &ControlPlane, mark: testkit::audit::Mark) -> Result<usize> {
    let all = plane.audit_since(mark)?;
    Ok(all
        .iter()
        .filter(|entry| entry.user_agent.starts_with("weir/"))
        .count())
}

fn line(name: &str, time: Duration, peak: u64, server: Option<(usize, Duration)>) -> String {
    let time = format!("{:.0} ms", time.as_secs_f64() * 1000.0);
    let peak = format!("{:.1} MiB", mebibytes(peak));
    let (asked, server) = match server {
        Some((asked, server)) => (asked.to_string(), format!("{:.2} s", server.as_secs_f64())),
        None => Default::default(),
    };
    format!("  {name:<24} {time:>10} {peak:>12} {asked:>10} {server:>18}")
}

/// Runs a command once. Its memory is read again and again, since it can't be read after the end of a process.
fn measure(weir: &Path, arguments: &[&str], dir: &Path, kubeconfig: &Path) -> Result<Measured> {
    let (out, err) = (dir.with_extension("out"), dir.with_extension("err"));
    let begin = Instant::now();
    let mut child = Command::new(weir)
        .args(arguments)
        .args(["--target", "test", "--project-dir"])
        .arg(dir)
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::null())
        .stdout(fs::File::create(&out)?)
        .stderr(fs::File::create(&err)?)
        .spawn()?;
    let mut memory = 0;
    let status = loop {
        if let Ok(now) = Usage::of(child.id()) {
            memory = memory.max(now.peak);
        }
        if let Some(status) = child.try_wait()? {
            break status;
        }
        sleep(Duration::from_millis(1));
    };
    let time = begin.elapsed();
    ensure!(
        status.success(),
        "weir {}: {}",
        arguments.join(" "),
        fs::read_to_string(&err)?
    );
    Ok(Measured { time, memory })
}
