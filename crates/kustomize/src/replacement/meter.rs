//! Limits of replacements: steps, memory, nesting, and the documents in strings.

use tree::{Exceeded, TreePath};
use yaml::Node;

use crate::{Error, error::Step, run::Run};

pub(super) struct Meter<'a> {
    pub(super) run: &'a Run<'a>,
    pub(super) dir: &'a TreePath,
}

impl Meter<'_> {
    pub(super) fn work(&self, steps: usize) -> Result<(), Error> {
        self.run.step(steps as u64, self.dir)
    }

    /// Counts bytes that are added to objects.
    pub(super) fn grow(&self, bytes: usize) -> Result<(), Error> {
        let counted = self.run.budget.output(bytes as u64);
        counted.map_err(|source| self.exceeded(source))
    }

    /// Fails if a node is nested too deeply.
    pub(super) fn nest(&self, depth: usize) -> Result<(), Error> {
        let limit = u64::from(self.run.budget.limits().yaml_depth);
        if depth as u64 <= limit {
            return Ok(());
        }
        let what = "levels of nesting";
        Err(self.exceeded(Exceeded::Limit { what, limit }))
    }

    fn exceeded(&self, source: Exceeded) -> Error {
        Error::Budget {
            dir: self.dir.clone(),
            source,
        }
    }
}

/// Parses YAML; `None` if it is blank.
pub(super) fn parse(text: &str, meter: &Meter<'_>) -> Result<Option<Node>, Error> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    match yaml::read::node(text, meter.run.budget) {
        Ok(node) => Ok(Some(node.unwrap_or_else(Node::null))),
        Err(error) => match error.exceeded() {
            Some(exceeded) => Err(Error::Budget {
                dir: meter.dir.clone(),
                source: exceeded.clone(),
            }),
            None => Err(Error::new(
                Step::Replacement,
                format!("yaml: {}", error.message()),
            )),
        },
    }
}
