//! The program that renders single templates with Helm.

use std::process::Command;

use serde_json::{Value as Json, json};
use testkit::oracle::Dialogue;

use super::Outcome;

pub(super) struct Oracle(Dialogue);

impl Oracle {
    pub(super) fn start() -> Self {
        let mut command = Command::new(testkit::oracle::helm_templates().unwrap());
        Self(Dialogue::start(command.env_clear().env("GOMEMLIMIT", "1GiB")).unwrap())
    }

    /// Renders a template with the original. Returns `None` if that took too long, took too much memory, or ended the program.
    pub(super) fn render(&mut self, template: &str, values: &Json) -> Option<Outcome> {
        let answer = self
            .0
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

    /// Returns the names of sprig's functions.
    pub(super) fn names(&mut self) -> Vec<String> {
        let answer = self.0.ask(&json!({"names": true})).unwrap();
        let names = answer["names"].as_array().unwrap().iter();
        names.map(|name| name.as_str().unwrap().to_owned()).collect()
    }
}
