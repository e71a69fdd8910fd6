//! The causes of objects that are not ready: a walk along references to the objects where the problem begins.

mod page;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use api::condition_type::STALLED;
use jiff::Timestamp;

use crate::{Health, Kind, Object, Reference, Suspension};

pub use page::{Counts, Group, Page};

/// Time after which a generation that no controller has observed is a problem, in seconds.
const UNSEEN: i64 = 120;
/// Maximum number of objects between one and its cause.
const DEPTH: usize = 50;

/// The name of an object of a known kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    pub group: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.kind_word(), self.namespace, self.name)
    }
}

impl Name {
    /// Returns the kind, with its group if several kinds have the name: `KluctlDeployment.gitops.kluctl.io`.
    #[must_use]
    pub fn kind_word(&self) -> String {
        match Kind::named(&self.kind).len() {
            0 | 1 => self.kind.clone(),
            _ => format!("{}.{}", self.kind, self.group),
        }
    }
}

/// An object of an index.
#[derive(Debug, Clone)]
pub struct Entry {
    pub kind: &'static Kind,
    pub object: Object,
    pub health: Health,
}

/// All objects of a cluster, to look up references.
#[derive(Debug, Clone)]
pub struct Index {
    entries: BTreeMap<Name, Entry>,
    now: Timestamp,
}

/// The reason for which an object holds up itself and others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Problem {
    /// It is referred to, but does not exist.
    Missing,
    /// It depends on itself.
    Cycle,
    /// It is not tried again until it changes.
    Stalled,
    Failed,
    /// No controller has looked at it.
    Unseen,
    /// It is suspended, and not ready or behind.
    Suspended,
    Deleting,
    /// It has no artifact yet.
    NoArtifact,
    /// It is not ready, and does not say why.
    Unknown,
}

/// An object where a problem begins.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Root {
    pub name: Name,
    pub problem: Problem,
    pub reason: String,
    pub message: String,
    pub since: Option<Timestamp>,
    /// The note on it, if it is suspended.
    pub suspension: Option<Suspension>,
}

#[derive(Debug, Default)]
struct Walk {
    /// The objects from the first one to the present one.
    path: Vec<Name>,
    /// The objects that were walked to their ends, true if they have roots.
    visited: BTreeMap<Name, bool>,
    found: BTreeSet<Root>,
}

impl Walk {
    fn add(&mut self, root: Option<Root>) -> bool {
        let has_root = root.is_some();
        self.found.extend(root);
        has_root
    }
}

impl Index {
    #[must_use]
    pub const fn new(now: Timestamp) -> Self {
        Self {
            entries: BTreeMap::new(),
            now,
        }
    }

    pub fn add(&mut self, kind: &'static Kind, object: Object) {
        let name = Name {
            group: kind.group.to_owned(),
            kind: kind.kind.to_owned(),
            namespace: object.metadata.namespace.clone(),
            name: object.metadata.name.clone(),
        };
        let health = Health::of(kind, &object);
        self.entries.insert(name, Entry { kind, object, health });
    }

    #[must_use]
    pub fn get(&self, name: &Name) -> Option<&Entry> {
        self.entries.get(name)
    }

    #[must_use]
    pub const fn now(&self) -> Timestamp {
        self.now
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Name, &Entry)> {
        self.entries.iter()
    }

    /// Returns true for objects that somebody has to look after.
    #[must_use]
    pub fn is_problem(&self, entry: &Entry) -> bool {
        entry.health.is_problem() || self.is_unseen(entry)
    }

    /// Returns the objects where the problem of an object begins; empty if it has none.
    #[must_use]
    pub fn roots(&self, name: &Name) -> Vec<Root> {
        let mut walk = Walk::default();
        self.walk(name, &mut walk);
        walk.found.into_iter().collect()
    }

    /// Adds the roots of an object, each object once. Returns true if it has any.
    fn walk(&self, name: &Name, walk: &mut Walk) -> bool {
        if let Some(start) = walk.path.iter().position(|above| above == name) {
            let cycle = self.cycle(walk.path.get(start..).unwrap_or_default());
            return walk.add(cycle);
        }
        if let Some(&has_roots) = walk.visited.get(name) {
            return has_roots;
        }
        let Some(entry) = self.entries.get(name) else {
            let missing = self.root(name, Problem::Missing, "");
            return walk.add(Some(missing));
        };
        if walk.path.len() >= DEPTH {
            return false;
        }
        walk.path.push(name.clone());
        let is_first = walk.path.len() == 1;
        let has_roots = if is_first && suspended_when_ready(entry) {
            false
        } else if let Some(root) = self.final_root(name, entry) {
            walk.add(Some(root))
        } else {
            let mut has_roots = false;
            for upstream in self.upstream(name, entry) {
                has_roots |= self.walk(&upstream, walk);
            }
            has_roots || walk.add(self.own_root(name, entry))
        };
        walk.path.pop();
        walk.visited.insert(name.clone(), has_roots);
        has_roots
    }

    /// Returns the root of a cycle, which is the same for all its members.
    fn cycle(&self, members: &[Name]) -> Option<Root> {
        let first = members.iter().min()?;
        let start = members.iter().position(|member| member == first)?;
        let (before, from) = members.split_at_checked(start)?;
        let path = from.iter().chain(before).chain([first]);
        let path = path.map(Name::to_string).collect::<Vec<_>>().join(" -> ");
        Some(self.root(first, Problem::Cycle, &path))
    }

    /// Returns the root if the problem begins here, whatever the object refers to.
    fn final_root(&self, name: &Name, entry: &Entry) -> Option<Root> {
        let problem = if entry.object.metadata.deletion_timestamp.is_some() {
            Problem::Deleting
        } else if entry.health == Health::Suspended {
            Problem::Suspended
        } else if entry.health == Health::Stalled {
            Problem::Stalled
        } else if self.is_unseen(entry) {
            Problem::Unseen
        } else {
            return None;
        };
        Some(self.root(name, problem, ""))
    }

    /// Returns the objects that this one waits for.
    fn upstream(&self, name: &Name, entry: &Entry) -> Vec<Name> {
        let object = &entry.object;
        let ready = object.ready();
        let reason = ready
            .filter(|ready| ready.status == "False")
            .map(|ready| ready.reason.as_str());
        let waits_for_source =
            reason.is_none_or(|reason| reason.contains("Source") || reason.contains("Artifact"));
        let waits_for_others = reason.is_none_or(|reason| reason == "DependencyNotReady");
        let mut upstream = Vec::new();
        if waits_for_source && let Some(source) = object.source() {
            upstream.extend(self.blocking_source(source_name(&source)));
        }
        if waits_for_others {
            let others = object.spec.depends_on.iter();
            let others = others.map(|other| dependency_name(name, other));
            // A suspended one is ready in its last revision, but the object may wait for a newer one.
            let is_named = |other: &Name| {
                let quoted = format!("'{}/{}'", other.namespace, other.name);
                ready.is_some_and(|ready| ready.message.contains(&quoted))
            };
            upstream.extend(others.filter(|other| !self.is_ready(other) || is_named(other)));
        }
        let failed = ready.filter(|ready| ready.status == "False");
        let named = failed
            .into_iter()
            .flat_map(|ready| named_objects(&object.failure(ready)));
        let named = named.filter_map(|named| self.known(&named));
        upstream.extend(named.filter(|named| named != name && !self.is_ready(named)));
        upstream
    }

    /// Returns the source if nothing can be deployed from it.
    fn blocking_source(&self, source: Option<Name>) -> Option<Name> {
        let source = source?;
        let blocks = match self.entries.get(&source) {
            None => true,
            Some(entry) => {
                let has_artifact = entry.object.status.artifact.is_some();
                self.is_problem(entry) || !has_artifact && source.kind != "HelmRepository"
            }
        };
        blocks.then_some(source)
    }

    fn is_ready(&self, name: &Name) -> bool {
        self.entries
            .get(name)
            .is_some_and(|entry| entry.health == Health::Ready || suspended_when_ready(entry))
    }

    /// Finds an object of the index by kind, namespace and name.
    fn known(&self, named: &NamedObject) -> Option<Name> {
        Kind::named(&named.kind).into_iter().find_map(|kind| {
            let name = Name {
                group: kind.group.to_owned(),
                kind: kind.kind.to_owned(),
                namespace: named.namespace.clone(),
                name: named.name.clone(),
            };
            self.entries.contains_key(&name).then_some(name)
        })
    }

    fn own_root(&self, name: &Name, entry: &Entry) -> Option<Root> {
        let problem = match entry.health {
            Health::Ready => return None,
            Health::Failed => Problem::Failed,
            _ if entry.kind.is_source() && entry.object.status.artifact.is_none() => Problem::NoArtifact,
            _ => Problem::Unknown,
        };
        Some(self.root(name, problem, ""))
    }

    /// Makes a root with the words of the object's conditions.
    fn root(&self, name: &Name, problem: Problem, message: &str) -> Root {
        let object = self.entries.get(name).map(|entry| &entry.object);
        let stalled = object.and_then(|object| object.condition(STALLED));
        let stalled = stalled.filter(|_| problem == Problem::Stalled);
        let condition = stalled.or_else(|| object.and_then(Object::ready));
        let condition = condition
            .filter(|condition| condition.status != "True" || problem == Problem::Stalled)
            .or_else(|| object.and_then(Object::undelivered));
        let time = |text: &str| text.parse::<Timestamp>().ok();
        let note = object.and_then(Suspension::of).unwrap_or_default();
        let since = match (problem, object) {
            (Problem::Suspended, _) if note.at.is_some() => note.at,
            (Problem::Deleting, Some(object)) => object.metadata.deletion_timestamp.as_deref().and_then(time),
            _ => condition.and_then(|condition| time(&condition.last_transition_time)),
        };
        let created = object.and_then(|object| time(&object.metadata.creation_timestamp));
        Root {
            name: name.clone(),
            problem,
            reason: condition
                .map(|condition| condition.reason.clone())
                .unwrap_or_default(),
            message: match (condition, object) {
                (Some(condition), Some(object)) if message.is_empty() => object.failure(condition),
                _ => message.to_owned(),
            },
            since: since.or(created),
            suspension: (problem == Problem::Suspended).then_some(note),
        }
    }

    /// Returns true if no controller has observed the newest generation, although it had time to.
    fn is_unseen(&self, entry: &Entry) -> bool {
        let (metadata, status) = (&entry.object.metadata, &entry.object.status);
        let observed = status.observed_generation.unwrap_or_default();
        let age = metadata.creation_timestamp.parse::<Timestamp>().ok();
        let age = age.map(|created| self.now.as_second().saturating_sub(created.as_second()));
        // Later generations have no time of their own.
        !entry.object.is_static(entry.kind)
            && entry.health != Health::Suspended
            && observed <= 0
            && status.conditions.is_empty()
            && status.artifact.is_none()
            && age.is_some_and(|age| age > UNSEEN)
    }
}

/// Returns true for a suspended object whose last reconciliation succeeded.
fn suspended_when_ready(entry: &Entry) -> bool {
    let is_ready = entry.object.ready().is_some_and(|ready| ready.status == "True");
    entry.health == Health::Suspended && (is_ready || entry.object.is_static(entry.kind))
}

fn source_name(source: &Reference) -> Option<Name> {
    Kind::find(api::group::SOURCE, &source.kind).map(|kind| Name {
        group: kind.group.to_owned(),
        kind: kind.kind.to_owned(),
        namespace: source.namespace.clone(),
        name: source.name.clone(),
    })
}

/// Returns the name of a dependency, which has the kind of the object.
fn dependency_name(of: &Name, other: &Reference) -> Name {
    let namespace = match other.namespace.as_str() {
        "" => &of.namespace,
        namespace => namespace,
    };
    Name {
        namespace: namespace.to_owned(),
        name: other.name.clone(),
        ..of.clone()
    }
}

/// An object that a message names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedObject {
    pub kind: String,
    pub namespace: String,
    pub name: String,
}

/// Returns the objects that a message names as `Kind/namespace/name`, each once.
#[must_use]
pub fn named_objects(message: &str) -> Vec<NamedObject> {
    // An underscore is not a part of these names, but of other words.
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '.' | '_');
    let is_label = |text: &str| {
        let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
        let is_inner = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        text.chars().all(is_allowed) && is_inner(text.chars().next()) && is_inner(text.chars().last())
    };
    let mut found = Vec::new();
    for word in message.split(|c| !is_part(c)) {
        let mut parts = word.trim_end_matches('.').split('/');
        let (Some(kind), Some(namespace), Some(name), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let is_kind = kind.starts_with(|c: char| c.is_ascii_uppercase()) && !kind.contains(['.', '-', '_']);
        let object = NamedObject {
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        if is_kind && is_label(namespace) && is_label(name) && !found.contains(&object) {
            found.push(object);
        }
    }
    found
}
