//! The program that renders templates with Jinja2.

use std::process::Command;

use serde_json::{Value as Json, json};
use testkit::oracle::{Dialogue, Python};

use super::{Failed, Outcome, template::Case};

pub(super) struct Oracle {
    python: Python,
    running: Dialogue,
}

impl Oracle {
    pub(super) fn start(python: Python) -> Self {
        let mut command = Command::new(&python.interpreter);
        let running = Dialogue::start(command.arg("-I").arg(&python.program).env_clear()).unwrap();
        Self { python, running }
    }

    /// Renders a case with the original; `None` if that took too long, took too much memory, or ended the program.
    pub(super) fn render(&mut self, case: &Case, vars: &Json) -> Option<Outcome> {
        let request = json!({"template": case.template, "files": case.files, "vars": vars});
        let Some(answer) = self.running.ask(&request) else {
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
