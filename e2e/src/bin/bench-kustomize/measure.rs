//! Time and memory of a program that builds a directory.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use testkit::process::Usage;

/// What a build took.
pub(crate) struct Measured {
    /// The median.
    pub(crate) time: Duration,
    /// The most that was resident, in bytes.
    pub(crate) memory: u64,
    pub(crate) output: Vec<u8>,
}

pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Measures a program.
pub(crate) fn measure(program: &Path, arguments: &[&str], dir: &Path, times: usize) -> Result<Measured> {
    let command = || {
        let mut command = Command::new(program);
        command.args(arguments).arg(dir).stdin(Stdio::null());
        command
    };
    if times == 1 {
        return held_up(command(), dir);
    }
    let mut taken = Vec::new();
    let mut output = Vec::new();
    for _ in 0..times {
        let begin = Instant::now();
        let done = command().output()?;
        taken.push(begin.elapsed());
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(done.status.success(), "{}: {said}", program.display());
        output = done.stdout;
    }
    Ok(Measured {
        time: median(taken),
        memory: held_up(command(), dir)?.memory,
        output,
    })
}

/// Time and peak memory of one run. The program is held up where it opens its output, a pipe that nobody reads yet: by then
/// it has made all that it will print, and its figures can still be read. The time that it waits is not counted.
fn held_up(mut command: Command, dir: &Path) -> Result<Measured> {
    let pipe = dir.with_extension("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status()?;
    ensure!(made.success(), "mkfifo {} failed", pipe.display());
    let begin = Instant::now();
    let mut child = command.arg("-o").arg(&pipe).stderr(Stdio::null()).spawn()?;
    let (memory, idle_since) = when_idle(&mut child)?;
    let go_on = Instant::now();
    let output = fs::read(&pipe)?;
    let status = child.wait()?;
    let time = idle_since.duration_since(begin) + go_on.elapsed();
    fs::remove_file(&pipe)?;
    ensure!(
        status.success() && !output.is_empty(),
        "{command:?} printed nothing"
    );
    Ok(Measured { time, memory, output })
}

/// Waits until a process uses no more time, and says how much it had in memory at most, and since when it waits.
fn when_idle(child: &mut Child) -> Result<(u64, Instant)> {
    let (mut used, mut since) = (None, Instant::now());
    loop {
        if let Some(status) = child.try_wait()? {
            bail!("it ended before it opened its output: {status}");
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
