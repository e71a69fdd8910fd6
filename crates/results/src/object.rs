//! The outcome for one object.

use std::sync::Arc;

use objects::{ObjectRef, diff::Change};
use yaml::Value;

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectError {
    pub reference: Option<ObjectRef>,
    pub message: String,
    pub denied: bool,
    /// True for the warning about a field that is left to another manager, though the object has another value for it.
    pub lost_field: bool,
}

impl ObjectError {
    #[must_use]
    pub fn of(reference: &ObjectRef, message: impl Into<String>) -> Self {
        Self {
            reference: Some(reference.clone()),
            message: message.into(),
            denied: false,
            lost_field: false,
        }
    }

    #[must_use]
    pub fn denied(self, denied: bool) -> Self {
        Self { denied, ..self }
    }

    #[must_use]
    pub fn general(message: impl Into<String>) -> Self {
        Self {
            reference: None,
            message: message.into(),
            denied: false,
            lost_field: false,
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

#[derive(Debug, Clone, PartialEq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "they are independent of each other, and results have them so"
)]
pub struct ResultObject {
    pub reference: ObjectRef,
    pub new: bool,
    pub orphan: bool,
    pub deleted: bool,
    pub hook: bool,
    pub is_applied: bool,
    /// Position of the object among all rendered ones; `None` if it was not rendered.
    pub listed: Option<usize>,
    pub changed: bool,
    /// The changes; values of Secrets are masked.
    pub changes: Vec<Change>,
    pub rendered: Option<Value>,
    /// The live object before the operation, if results include contents.
    pub remote: Option<Arc<Value>>,
    /// The live object after the operation, if results include contents; the same pointer as `remote` if nothing changed.
    pub applied: Option<Arc<Value>>,
}

impl ResultObject {
    #[must_use]
    pub fn new(reference: ObjectRef) -> Self {
        Self {
            reference,
            new: false,
            orphan: false,
            deleted: false,
            hook: false,
            is_applied: false,
            listed: None,
            changed: false,
            changes: Vec::new(),
            rendered: None,
            remote: None,
            applied: None,
        }
    }

    /// Returns true if the entry is worth listing. An orphan that was deleted together with its namespace is not.
    #[must_use]
    pub fn is_telling(&self) -> bool {
        self.orphan || self.listed.is_some() || self.deleted
    }

    pub(crate) fn absorb(&mut self, other: Self) {
        // Of an object of two items, the last applied state is compared with the first live one.
        if self.is_applied && other.is_applied {
            self.changed = other.changed;
            self.changes = other.changes;
            self.applied = other.applied;
        } else {
            self.changed |= other.changed;
            if self.changes.is_empty() {
                self.changes = other.changes;
            }
            self.applied = self.applied.take().or(other.applied);
        }
        self.new |= other.new;
        self.deleted |= other.deleted;
        self.hook |= other.hook;
        self.is_applied |= other.is_applied;
        self.listed = match (self.listed, other.listed) {
            (Some(first), Some(second)) => Some(first.min(second)),
            (first, second) => first.or(second),
        };
        self.orphan = (self.orphan || other.orphan) && !self.deleted;
        self.rendered = self.rendered.take().or(other.rendered);
        self.remote = self.remote.take().or(other.remote);
    }
}
