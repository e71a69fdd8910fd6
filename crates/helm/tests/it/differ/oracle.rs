//! The program that renders single templates as Helm does.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value as Json, json};

use super::Outcome;

/// A running one.
pub(super) struct Oracle {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Oracle {
    pub(super) fn start() -> Self {
        let program = testkit::oracle::helm_templates().unwrap();
        let mut child = Command::new(program)
            .env_clear()
            .env("TZ", "UTC")
            .env("GOMEMLIMIT", "1GiB")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output }
    }

    /// Its answer, unless it ended.
    fn ask(&mut self, request: &Json) -> Option<Json> {
        let mut line = String::new();
        let asked = writeln!(self.input, "{request}").and_then(|()| self.input.flush());
        let answered = asked.and_then(|()| self.output.read_line(&mut line));
        answered.is_ok().then_some(())?;
        serde_json::from_str(&line).ok()
    }

    /// What comes of a template; nothing if that took too long or too much memory, or ended the whole program.
    pub(super) fn render(&mut self, template: &str, values: &Json) -> Option<Outcome> {
        let answer = self
            .ask(&json!({"template": template, "values": values}))
            .unwrap_or_default();
        match (&answer["output"], &answer["error"]) {
            (Json::String(output), _) => Some(Ok(output.clone())),
            (_, Json::String(error)) => Some(Err(error.clone())),
            _ => {
                *self = Self::start();
                None
            }
        }
    }

    /// The names of the functions of sprig.
    pub(super) fn names(&mut self) -> Vec<String> {
        let answer = self.ask(&json!({"names": true})).unwrap();
        let names = answer["names"].as_array().unwrap().iter();
        names.map(|name| name.as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
