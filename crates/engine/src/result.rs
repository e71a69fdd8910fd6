//! What came of an operation.

use std::fmt::Write as _;

use jiff::Timestamp;
use objects::{ObjectRef, diff::Change};

use crate::Seen;

/// An operation that changes a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Apply what was rendered.
    Deploy,
    /// Remove what is no longer rendered.
    Prune,
    /// Remove everything.
    Delete,
}

impl Command {
    /// The word in messages and results.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deploy => "deploy",
            Self::Prune => "prune",
            Self::Delete => "delete",
        }
    }
}

/// Something said about an object, or about the operation as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectError {
    /// The object.
    pub reference: Option<ObjectRef>,
    /// What is said.
    pub message: String,
    /// Whether it was refused for want of rights.
    pub denied: bool,
}

impl ObjectError {
    /// About an object.
    #[must_use]
    pub fn of(reference: &ObjectRef, message: impl Into<String>) -> Self {
        Self {
            reference: Some(reference.clone()),
            message: message.into(),
            denied: false,
        }
    }

    /// The same, with whether it was refused for want of rights.
    #[must_use]
    pub(crate) fn denied(self, denied: bool) -> Self {
        Self { denied, ..self }
    }

    /// About the operation.
    #[must_use]
    pub fn general(message: impl Into<String>) -> Self {
        Self {
            reference: None,
            message: message.into(),
            denied: false,
        }
    }
}

impl std::fmt::Display for ObjectError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.reference {
            Some(reference) if !self.message.contains(&reference.to_string()) => {
                write!(f, "{reference}: {}", self.message)
            }
            _ => f.write_str(&self.message),
        }
    }
}

/// What happened to an object.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultObject {
    /// Which one.
    pub reference: ObjectRef,
    /// It was not there before.
    pub new: bool,
    /// It carries the discriminator but is no longer rendered.
    pub orphan: bool,
    /// It was removed.
    pub deleted: bool,
    /// It was there, and is not as it was.
    pub changed: bool,
    /// What changed; values of Secrets are masked. Lists that only have another order show no change here.
    pub changes: Vec<Change>,
}

impl ResultObject {
    pub(crate) fn new(reference: ObjectRef) -> Self {
        Self {
            reference,
            new: false,
            orphan: false,
            deleted: false,
            changed: false,
            changes: Vec::new(),
        }
    }
}

/// What came of a deploy, prune or delete.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandResult {
    /// Which operation.
    pub command: Command,
    /// Whether nothing was really changed.
    pub dry_run: bool,
    /// The discriminator.
    pub discriminator: Option<String>,
    /// When it began.
    pub start: Timestamp,
    /// When it ended.
    pub end: Timestamp,
    /// The objects that were applied or removed, or would be, in a stable order.
    pub objects: Vec<ResultObject>,
    /// What failed.
    pub errors: Vec<ObjectError>,
    /// What the user should know.
    pub warnings: Vec<ObjectError>,
    /// The state of the applied objects, with which a later comparison saves most of its requests.
    pub seen: Seen,
}

/// How many objects had what happen to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Were not there before.
    pub new: usize,
    /// Were there, and changed.
    pub changed: usize,
    /// Were removed.
    pub deleted: usize,
    /// Are no longer rendered, and were not removed.
    pub orphans: usize,
    /// Errors.
    pub errors: usize,
    /// Warnings.
    pub warnings: usize,
}

impl CommandResult {
    pub(crate) fn begin(command: Command, dry_run: bool, discriminator: Option<&str>) -> Self {
        let now = Timestamp::now();
        Self {
            command,
            dry_run,
            discriminator: discriminator.map(str::to_owned),
            start: now,
            end: now,
            objects: Vec::new(),
            errors: Vec::new(),
            warnings: Vec::new(),
            seen: Seen::default(),
        }
    }

    /// Puts everything into a stable order, each said once.
    pub(crate) fn finish(mut self) -> Self {
        self.objects.sort_by(|a, b| a.reference.cmp(&b.reference));
        for list in [&mut self.errors, &mut self.warnings] {
            list.sort();
            list.dedup();
        }
        self.end = Timestamp::now();
        self
    }

    /// Counts what happened.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let count =
            |accept: fn(&ResultObject) -> bool| self.objects.iter().filter(|object| accept(object)).count();
        Counts {
            new: count(|object| object.new),
            changed: count(|object| object.changed),
            deleted: count(|object| object.deleted),
            orphans: count(|object| object.orphan && !object.deleted),
            errors: self.errors.len(),
            warnings: self.warnings.len(),
        }
    }

    /// Whether the cluster is as it was.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        let counts = self.counts();
        counts.new == 0 && counts.changed == 0 && counts.deleted == 0
    }

    /// One sentence for people, as in `deploy succeeded. 2 new objects. 1 changed objects.`
    #[must_use]
    pub fn message(&self) -> String {
        message(self.command, self.counts())
    }

    /// Why the operation failed, if it did: how many errors, and the first of them.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        failure(self.command.as_str(), &self.errors)
    }
}

/// One sentence for people about what happened.
#[must_use]
pub(crate) fn message(command: Command, counts: Counts) -> String {
    let outcome = if counts.errors == 0 { "succeeded" } else { "failed" };
    let mut message = format!("{} {outcome}.", command.as_str());
    for (count, what) in [
        (counts.new, "new objects"),
        (counts.changed, "changed objects"),
        (counts.deleted, "deleted objects"),
        (counts.orphans, "orphan objects"),
        (counts.errors, "errors"),
        (counts.warnings, "warnings"),
    ] {
        if count > 0 {
            let _ = write!(message, " {count} {what}.");
        }
    }
    message
}

/// `<what> failed with N errors: ...`, with as many of the errors as are readable in a condition.
pub(crate) fn failure(what: &str, errors: &[ObjectError]) -> Option<String> {
    const SHOWN: usize = 5;
    const LENGTH: usize = 700;
    if errors.is_empty() {
        return None;
    }
    let shown: Vec<String> = errors
        .iter()
        .take(SHOWN)
        .map(|error| shorten(&error.to_string(), LENGTH))
        .collect();
    let mut text = format!("{what} failed with {} errors: {}", errors.len(), shown.join("; "));
    if errors.len() > SHOWN {
        let _ = write!(text, "; and {} more", errors.len() - SHOWN);
    }
    Some(text)
}

fn shorten(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages() {
        let none = Counts::default();
        assert_eq!(message(Command::Deploy, none), "deploy succeeded.");
        assert_eq!(
            message(
                Command::Deploy,
                Counts {
                    new: 2,
                    changed: 1,
                    orphans: 3,
                    warnings: 4,
                    ..none
                }
            ),
            "deploy succeeded. 2 new objects. 1 changed objects. 3 orphan objects. 4 warnings."
        );
        assert_eq!(
            message(Command::Prune, Counts { deleted: 1, ..none }),
            "prune succeeded. 1 deleted objects."
        );
        assert_eq!(
            message(Command::Delete, Counts { errors: 1, ..none }),
            "delete failed. 1 errors."
        );
    }

    #[test]
    fn failures_name_the_first_errors() {
        assert_eq!(failure("deploy", &[]), None);
        let errors: Vec<_> = (0..7).map(|i| ObjectError::general(format!("e{i}"))).collect();
        let text = failure("deploy", &errors).unwrap();
        assert_eq!(
            text,
            "deploy failed with 7 errors: e0; e1; e2; e3; e4; and 2 more"
        );
        let long = failure("deploy", &[ObjectError::general("ä".repeat(5000))]).unwrap();
        assert!(long.chars().count() < 800);
    }
}
