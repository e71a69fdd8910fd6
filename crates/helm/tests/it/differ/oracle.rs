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

    fn ask(&mut self, request: &Json) -> Json {
        let mut line = String::new();
        let asked = writeln!(self.input, "{request}").and_then(|()| self.input.flush());
        let answered = asked.and_then(|()| self.output.read_line(&mut line));
        if answered.is_err() || line.is_empty() {
            // Some mistakes end the whole program.
            *self = Self::start();
            panic!("the original ends at {request}");
        }
        serde_json::from_str(&line).unwrap()
    }

    /// What comes of a template.
    pub(super) fn render(&mut self, template: &str, values: &Json) -> Outcome {
        let answer = self.ask(&json!({"template": template, "values": values}));
        match (&answer["output"], &answer["error"]) {
            (Json::String(output), _) => Ok(output.clone()),
            (_, error) => Err(error.as_str().unwrap().to_owned()),
        }
    }

    /// The names of the functions of sprig.
    pub(super) fn names(&mut self) -> Vec<String> {
        let answer = self.ask(&json!({"names": true}));
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
