//! Programs measured beside their originals: time, peak memory, and the lines that tell them.

use std::{
    io::{Read as _, Write as _},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use testkit::process::Usage;

/// What a program took.
#[derive(Debug, Default)]
pub struct Measured {
    /// The median.
    pub time: Duration,
    /// The most that was resident, in bytes.
    pub memory: u64,
    /// What it printed.
    pub output: Vec<u8>,
}

/// The time in the middle.
#[must_use]
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Measures a program that prints: its time by some runs, its memory by one more. Where it runs once only, that gives both.
///
/// # Errors
/// When it can't be run, fails, or prints nothing.
pub fn measure(command: impl Fn() -> Command, times: usize) -> Result<Measured> {
    if times == 1 {
        return held_up(command());
    }
    let mut taken = Vec::new();
    for _ in 0..times {
        let mut command = command();
        let begin = Instant::now();
        let done = command.stdin(Stdio::null()).output()?;
        taken.push(begin.elapsed());
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(done.status.success(), "{command:?}: {said}");
    }
    Ok(Measured {
        time: median(taken),
        ..held_up(command())?
    })
}

/// What a pipe holds before its writer has to wait.
const PIPE: usize = 65_536;

/// Time and peak memory of one run. The program is held up where it prints, to a pipe that is full: by then it has made all
/// that it will print, and its figures can still be read. The time that it waits is not counted.
fn held_up(mut command: Command) -> Result<Measured> {
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
        "{what} failed behind its output, or printed nothing"
    );
    Ok(Measured { time, memory, output })
}

/// Waits until a process uses no more time, and says how much it had in memory at most, and since when it waits.
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

/// Prints a line.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// The line above those of [`line`]: what is done, and by which other program.
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

/// What both programs took.
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

/// A short time in words.
#[must_use]
pub fn time(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

/// Bytes in the unit of tables.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "for people")]
pub fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
