//! Time and memory of a program that prints.

use std::{
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use testkit::process::Usage;

/// What a run took.
#[derive(Default)]
pub(crate) struct Measured {
    /// The median.
    pub(crate) time: Duration,
    /// The most that was resident, in bytes.
    pub(crate) memory: u64,
    pub(crate) output: Vec<u8>,
}

/// A chart to render: arguments behind `template`, and the directory that they are relative to.
pub(crate) struct Job {
    pub(crate) dir: PathBuf,
    pub(crate) arguments: Vec<String>,
}

pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Measures a program; what it prints only some of is seen by the bytes that it had to wait with.
pub(crate) fn measure(program: &Path, first: &[&str], job: &Job, times: usize) -> Result<Measured> {
    let command = || {
        let mut command = Command::new(program);
        command
            .args(first)
            .args(&job.arguments)
            .current_dir(&job.dir)
            .env("TZ", "UTC")
            .stdin(Stdio::null());
        command
    };
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
        memory: peak(command())?,
        output,
    })
}

/// What a pipe holds before its writer has to wait.
const PIPE: usize = 65_536;

/// The most that a program had in memory. It is held up where it prints, to a pipe that is full: by then it has made all that
/// it will print, and its figures can still be read.
fn peak(mut command: Command) -> Result<u64> {
    let (mut reader, mut writer) = std::io::pipe()?;
    writer.write_all(&[0; PIPE])?;
    let mut child = command.stdout(writer).stderr(Stdio::null()).spawn()?;
    // Its end of the pipe is the only one then.
    drop(command);
    let memory = when_idle(&mut child)?;
    std::io::copy(&mut reader.by_ref(), &mut std::io::sink())?;
    ensure!(child.wait()?.success(), "it failed behind its output");
    Ok(memory)
}

/// Waits until a process uses no more time, and says how much it had in memory at most.
fn when_idle(child: &mut Child) -> Result<u64> {
    let (mut used, mut since) = (None, Instant::now());
    loop {
        if let Some(status) = child.try_wait()? {
            bail!("it ended before it printed: {status}");
        }
        let now = Usage::of(child.id())?;
        if used != Some(now.cpu) {
            (used, since) = (Some(now.cpu), Instant::now());
        } else if since.elapsed() > Duration::from_millis(300) {
            return Ok(now.peak);
        }
        sleep(Duration::from_millis(10));
    }
}
