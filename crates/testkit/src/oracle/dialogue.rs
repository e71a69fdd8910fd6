//! A program that answers each line of JSON with a line of JSON.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use anyhow::{Context as _, Result};
use serde_json::Value;

#[derive(Debug)]
pub struct Dialogue {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Dialogue {
    /// Starts a program, in the time zone UTC.
    pub fn start(command: &mut Command) -> Result<Self> {
        let mut child = command
            .env("TZ", "UTC")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("can't run {command:?}"))?;
        let input = child.stdin.take().context("it has no input")?;
        let output = BufReader::new(child.stdout.take().context("it has no output")?);
        Ok(Self { child, input, output })
    }

    /// Its answer, unless it ended.
    pub fn ask(&mut self, request: &Value) -> Option<Value> {
        let mut line = String::new();
        let asked = writeln!(self.input, "{request}").and_then(|()| self.input.flush());
        let answered = asked.and_then(|()| self.output.read_line(&mut line));
        answered.is_ok().then_some(())?;
        serde_json::from_str(&line).ok()
    }
}

impl Drop for Dialogue {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
