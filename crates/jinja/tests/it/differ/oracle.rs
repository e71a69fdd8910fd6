//! The program that renders templates with Jinja2.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value as Json, json};
use testkit::oracle::Python;

use super::{Failed, Outcome, template::Case};

/// A running one.
pub(super) struct Oracle {
    python: Python,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Oracle {
    pub(super) fn start(python: Python) -> Self {
        let mut child = Command::new(&python.interpreter)
            .arg("-I")
            .arg(&python.program)
            .env_clear()
            .env("TZ", "UTC")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self {
            python,
            child,
            input,
            output,
        }
    }

    fn ask(&mut self, request: &Json) -> Option<Json> {
        let mut line = String::new();
        let asked = writeln!(self.input, "{request}").and_then(|()| self.input.flush());
        let answered = asked.and_then(|()| self.output.read_line(&mut line));
        answered.is_ok().then_some(())?;
        serde_json::from_str(&line).ok()
    }

    /// What comes of a case; nothing if that took too long or too much memory, or ended the whole program.
    pub(super) fn render(&mut self, case: &Case, vars: &Json) -> Option<Outcome> {
        let request = json!({"template": case.template, "files": case.files, "vars": vars});
        let Some(answer) = self.ask(&request) else {
            *self = Self::start(self.python.clone());
            return None;
        };
        let error = &answer["error"];
        let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
        match answer["output"].as_str() {
            Some(output) => Some(Ok(output.to_owned())),
            None if error.is_null() => None,
            None => Some(Err(Failed {
                class: text("class"),
                message: text("message"),
                file: text("file"),
                line: error["line"].as_u64().unwrap_or_default(),
            })),
        }
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
