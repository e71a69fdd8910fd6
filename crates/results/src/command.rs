//! The result of a command.

use std::collections::HashSet;

use apply::{AppliedVersions, Completeness};
use jiff::Timestamp;
use objects::ObjectId;

use crate::{
    ObjectError, Origin, ResultObject,
    message::{failure, message},
};

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

/// Options of the operation, apart from [`CommandResult::dry_run`].
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
    /// Directories of the deployment items that were included; all if empty.
    pub include_dirs: Vec<String>,
    pub exclude_dirs: Vec<String>,
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
    /// right after the deployment need not read them again (`engine::validate_besides`).
    pub ready: HashSet<ObjectId>,
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
    #[must_use]
    pub fn new(command: Command, dry_run: bool, discriminator: Option<&str>) -> Self {
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

    /// Removes duplicates and sorts: objects by group, version and kind, then in the order of rendering.
    #[must_use]
    pub fn finish(mut self) -> Self {
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

    pub fn add(&mut self, other: Self) {
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
