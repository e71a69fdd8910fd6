//! The result of an operation.

mod bound;
mod contents;
mod delta;
mod early;
mod entry;
mod inventory;
mod origin;
mod status;
mod store;
mod summary;
pub mod text;
mod value;

use std::{collections::HashSet, fmt::Write as _, sync::Arc};

use apply::LiveObjects;
use jiff::Timestamp;
use kluctl::{Inclusion, Rendered};
use objects::{ObjectId, ObjectRef, diff::Change};
use yaml::Value;

pub use bound::{bounded, left_out};
pub use contents::Contents;
pub use inventory::{Inventory, status_objects, with_inventory};
pub use origin::{GitInfo, Initiator, KluctlDeployment, Origin, ProjectKey};
pub use store::{ResultStore, Retention, StoredResult};

use crate::{AppliedVersions, Completeness, DeployOptions, deploy::live::display_reference};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    Deploy,
    Diff,
    Prune,
    Delete,
    PokeImages,
}

impl Command {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deploy => "deploy",
            Self::Diff => "diff",
            Self::Prune => "prune",
            Self::Delete => "delete",
            Self::PokeImages => "poke-images",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectError {
    pub reference: Option<ObjectRef>,
    pub message: String,
    pub denied: bool,
}

impl ObjectError {
    #[must_use]
    pub fn of(reference: &ObjectRef, message: impl Into<String>) -> Self {
        Self {
            reference: Some(reference.clone()),
            message: message.into(),
            denied: false,
        }
    }

    #[must_use]
    pub(crate) fn denied(self, denied: bool) -> Self {
        Self { denied, ..self }
    }

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
    pub(crate) listed: Option<usize>,
    pub changed: bool,
    /// The changes; values of Secrets are masked.
    pub changes: Vec<Change>,
    /// The rendered manifest, if results include contents.
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
    pub(crate) fn is_telling(&self) -> bool {
        self.orphan || self.listed.is_some() || self.deleted
    }

    fn absorb(&mut self, other: Self) {
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

/// Options of the operation, apart from [`DeployOptions::dry_run`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "they are independent of each other, and results have them so"
)]
pub struct CommandOptions {
    pub no_wait: bool,
    pub force_apply: bool,
    pub replace_on_error: bool,
    pub force_replace_on_error: bool,
    pub abort_on_error: bool,
    pub inclusion: Inclusion,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CommandResult {
    pub command: Command,
    pub dry_run: bool,
    pub discriminator: Option<String>,
    pub start: Timestamp,
    pub end: Timestamp,
    pub origin: Origin,
    pub options: CommandOptions,
    /// The objects that were rendered, applied or removed, or would be, in a stable order.
    pub objects: Vec<ResultObject>,
    pub errors: Vec<ObjectError>,
    pub warnings: Vec<ObjectError>,
    /// The state of the applied objects, with which a later comparison saves most of its requests.
    pub versions: AppliedVersions,
    /// The applied objects of kinds without a status that were ready at once, as the answer of the API server says: a validation
    /// right after the deployment need not read them again ([`crate::validate_besides`]).
    pub ready: HashSet<ObjectId>,
    /// The completeness of the search for objects that are no longer rendered.
    pub completeness: Completeness,
    /// True if a deployment ended early because its waits were interrupted; it has an error about that.
    pub interrupted: bool,
    /// True if nothing was pruned because nothing was rendered; it has an error about that.
    pub is_empty_render: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub new: usize,
    pub changed: usize,
    pub deleted: usize,
    pub orphans: usize,
    pub errors: usize,
    pub warnings: usize,
}

impl CommandResult {
    pub(crate) fn new(command: Command, dry_run: bool, discriminator: Option<&str>) -> Self {
        let now = Timestamp::now();
        Self {
            command,
            dry_run,
            discriminator: discriminator.map(str::to_owned),
            start: now,
            end: now,
            origin: Origin::default(),
            options: CommandOptions::default(),
            objects: Vec::new(),
            errors: Vec::new(),
            warnings: Vec::new(),
            versions: AppliedVersions::default(),
            ready: HashSet::new(),
            completeness: Completeness::default(),
            interrupted: false,
            is_empty_render: false,
        }
    }

    /// Lists all rendered objects, with their content if the result should have it.
    pub(crate) fn list_rendered(&mut self, rendered: &Rendered, live: &LiveObjects, options: &DeployOptions) {
        for (place, manifest) in rendered.objects().enumerate() {
            let Ok(reference) = ObjectRef::of(manifest) else {
                continue;
            };
            let mut object = ResultObject::new(display_reference(manifest, &reference));
            object.listed = Some(place);
            if options.contents {
                object.rendered = Some(manifest.clone());
                object.remote = live.before(manifest, &reference).map(Arc::clone);
            }
            self.objects.push(object);
        }
    }

    pub(crate) fn list_orphans(&mut self, live: &LiveObjects) {
        let orphans = live.orphans.iter().map(|reference| ResultObject {
            orphan: true,
            ..ResultObject::new(reference.clone())
        });
        self.objects.extend(orphans);
    }

    /// Removes duplicates and sorts: objects by group, version and kind, then in the order of rendering.
    pub(crate) fn finish(mut self) -> Self {
        self.objects.sort_by(|a, b| a.reference.cmp(&b.reference));
        self.objects.dedup_by(|later, first| {
            let same = later.reference == first.reference;
            if same {
                first.absorb(std::mem::replace(
                    later,
                    ResultObject::new(first.reference.clone()),
                ));
            }
            same
        });
        let position = |object: &ResultObject| object.listed.unwrap_or(usize::MAX);
        self.objects.sort_by(|a, b| {
            let (of, other) = (&a.reference, &b.reference);
            let by_kind =
                (&of.group, &of.version, &of.kind).cmp(&(&other.group, &other.version, &other.kind));
            by_kind
                .then(position(a).cmp(&position(b)))
                .then_with(|| of.cmp(other))
        });
        for list in [&mut self.errors, &mut self.warnings] {
            list.sort();
            list.dedup();
        }
        self.end = Timestamp::now();
        self
    }

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

    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        let counts = self.counts();
        counts.new == 0 && counts.changed == 0 && counts.deleted == 0
    }

    #[must_use]
    pub fn message(&self) -> String {
        let message = message(self.command, self.counts());
        // Objects may be left, so a removal did not succeed.
        match (self.command, self.completeness.is_complete()) {
            (Command::Prune | Command::Delete, false) => message.replacen("succeeded", "incomplete", 1),
            _ => message,
        }
    }

    /// Adds the origin of an operation without a project. A random id is added if it has none.
    #[must_use]
    pub fn described(mut self, origin: Origin) -> Self {
        self.origin = origin;
        if self.origin.id.is_empty() {
            self.origin.id = uuid::Uuid::new_v4().to_string();
        }
        self
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.objects.extend(other.objects);
        self.errors.extend(other.errors);
        self.warnings.extend(other.warnings);
        self.completeness = other.completeness;
    }

    /// Returns a summary of the errors, the number and the first of them; `None` without errors.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        failure(self.command.as_str(), &self.errors)
    }
}

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

/// Returns `... failed with N errors: ...`, with as many errors as are readable in a condition.
pub(crate) fn failure(what: &str, errors: &[ObjectError]) -> Option<String> {
    const MAX_LISTED: usize = 5;
    const LENGTH: usize = 700;
    if errors.is_empty() {
        return None;
    }
    let first: Vec<String> = errors
        .iter()
        .take(MAX_LISTED)
        .map(|error| shorten(&error.to_string(), LENGTH))
        .collect();
    let mut text = format!("{what} failed with {} errors: {}", errors.len(), first.join("; "));
    if errors.len() > MAX_LISTED {
        let _ = write!(text, "; and {} more", errors.len() - MAX_LISTED);
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
    fn message_lists_counts_above_zero() {
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
