//! Measures programs beside their originals: time, peak memory, and the lines of their tables.

use std::{
    io::{Read as _, Write as _},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use testkit::process::Usage;

#[derive(Debug, Default)]
pub struct Measured {
    /// Median time of the runs.
    pub time: Duration,
    /// Peak resident memory, in bytes.
    pub memory: u64,
    pub output: Vec<u8>,
}

#[must_use]
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Number of runs of a program before it is the other one's turn.
const TURN: usize = 5;

/// Measures two programs that print: their time by `times` runs, their memory by one more. They take turns, since the speed
/// of a machine varies; but not after each run, which would measure how much each displaces of the other in the CPU caches.
/// If `times` is 1, one run gives both figures.
pub fn measure(commands: [&dyn Fn() -> Command; 2], times: usize) -> Result<[Measured; 2]> {
    let [ours, theirs] = commands;
    if times == 1 {
        return Ok([run_paused(ours())?, run_paused(theirs())?]);
    }
    let (mut of_ours, mut of_theirs) = (Vec::new(), Vec::new());
    while of_ours.len() < times {
        let turn = TURN.min(times - of_ours.len());
        for (command, taken) in [(ours, &mut of_ours), (theirs, &mut of_theirs)] {
            for _ in 0..turn {
                taken.push(run(command())?);
            }
        }
    }
    let measured = |times, command| {
        anyhow::Ok(Measured {
            time: median(times),
            ..run_paused(command)?
        })
    };
    Ok([measured(of_ours, ours())?, measured(of_theirs, theirs())?])
}

fn run(mut command: Command) -> Result<Duration> {
    let begin = Instant::now();
    let done = command.stdin(Stdio::null()).output()?;
    let taken = begin.elapsed();
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "{command:?}: {said}");
    Ok(taken)
}

/// Capacity of a pipe in bytes: writing more blocks.
const PIPE: usize = 65_536;

/// Runs a program and returns its time and peak memory. The program blocks where it prints, on a pipe that is full: by then
/// it has rendered everything, and its figures can still be read. The time that it is blocked does not count.
fn run_paused(mut command: Command) -> Result<Measured> {
    let (mut reader, mut writer) = std::io::pipe()?;
    writer.write_all(&[0; PIPE])?;
    let begin = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(Stdio::null())
        .spawn()?;
    let what = format!("{command:?}");
    // Its end of the pipe is the only one then.
    drop(command);
    let (memory, idle_since) = when_idle(&mut child)?;
    let go_on = Instant::now();
    let mut output = Vec::new();
    reader.read_to_end(&mut output)?;
    let status = child.wait()?;
    let time = idle_since.duration_since(begin) + go_on.elapsed();
    let output = output.split_off(PIPE.min(output.len()));
    ensure!(
        status.success() && !output.is_empty(),
        "{what} failed after its output, or printed nothing"
    );
    Ok(Measured { time, memory, output })
}

/// Waits until a process uses no more CPU time; returns its peak memory and the time since which it has been idle.
fn when_idle(child: &mut Child) -> Result<(u64, Instant)> {
    let (mut used, mut since) = (None, Instant::now());
    loop {
        if let Some(status) = child.try_wait()? {
            bail!("it ended before it printed: {status}");
        }
        let now = Usage::of(child.id())?;
        if used != Some(now.cpu) {
            (used, since) = (Some(now.cpu), Instant::now());
        } else if since.elapsed() > Duration::from_millis(500) {
            return Ok((now.peak, since));
        }
        sleep(Duration::from_millis(10));
    }
}

pub fn print(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

#[must_use]
pub fn head(what: &str, original: &str) -> String {
    format!(
        "{what:<34} {:>21} {:>8} {:>23} {:>7}",
        format!("weir / {original}"),
        "faster",
        "peak memory",
        "part"
    )
}

#[must_use]
pub fn line(name: &str, ours: &Measured, theirs: &Measured) -> String {
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

#[must_use]
pub fn time(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

#[must_use]
#[allow(clippy::cast_precision_loss, reason = "for people")]
pub fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
