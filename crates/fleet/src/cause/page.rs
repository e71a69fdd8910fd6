//! One page about a whole cluster.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt,
};

use super::{Index, Name, Problem, Root};
use crate::{Health, Kind, Suspension, age, kind, shorten_hashes};

/// Objects that are named before a count.
const NAMED: usize = 3;
/// Causes and suspended objects that are printed.
const GROUPS: usize = 25;
/// Maximum length of a message, in characters.
const MESSAGE: usize = 300;

/// The state of a cluster: the objects of each kind by health, and the causes of problems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub counts: Vec<Counts>,
    /// The causes: those that hold up most objects first.
    pub groups: Vec<Group>,
    pub progressing: Vec<Name>,
    pub suspended: Vec<(Name, Suspension)>,
    now: jiff::Timestamp,
}

/// The number of objects of a kind in each state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    pub kind: &'static Kind,
    pub by_health: BTreeMap<Health, usize>,
}

/// A cause, and the objects that it holds up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    pub root: Root,
    /// Other objects of the kind with the same problem and message.
    pub alike: Vec<Name>,
    /// The objects that wait for any of them.
    pub held_up: Vec<Name>,
}

impl Index {
    /// Returns the page about all objects of the index.
    #[must_use]
    pub fn page(&self) -> Page {
        let mut groups: BTreeMap<Root, Vec<Name>> = BTreeMap::new();
        let (mut progressing, mut suspended) = (Vec::new(), Vec::new());
        for (name, entry) in self.iter() {
            if self.is_problem(entry) {
                for root in self.roots(name) {
                    let held_up = groups.entry(root.clone()).or_default();
                    if root.name != *name {
                        held_up.push(name.clone());
                    }
                }
            } else if entry.health == Health::Suspended {
                suspended.push((name.clone(), Suspension::of(&entry.object).unwrap_or_default()));
            } else if entry.health != Health::Ready {
                progressing.push(name.clone());
            }
        }
        let mut groups = merged(groups);
        groups.sort_by(|a, b| {
            let number = |group: &Group| group.held_up.len() + group.alike.len();
            let by_number = number(b).cmp(&number(a));
            by_number.then_with(|| a.root.since.cmp(&b.root.since))
        });
        Page {
            counts: self.counts(),
            groups,
            progressing,
            suspended,
            now: self.now(),
        }
    }

    fn counts(&self) -> Vec<Counts> {
        let mut all = Vec::new();
        for kind in kind::ALL {
            let mut by_health = BTreeMap::new();
            for (_, entry) in self.iter().filter(|(_, entry)| entry.kind == kind) {
                *by_health.entry(entry.health).or_default() += 1;
            }
            if !by_health.is_empty() {
                all.push(Counts { kind, by_health });
            }
        }
        all
    }
}

/// Makes one group of the roots of a kind that have the same problem and message. The longest lasting one is its root.
fn merged(groups: BTreeMap<Root, Vec<Name>>) -> Vec<Group> {
    let mut merged: BTreeMap<(String, String, Problem, String, String), Group> = BTreeMap::new();
    for (root, held_up) in groups {
        let Name { group, kind, .. } = root.name.clone();
        let key = (
            group,
            kind,
            root.problem,
            root.reason.clone(),
            root.message.clone(),
        );
        match merged.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(Group {
                    root,
                    alike: Vec::new(),
                    held_up,
                });
            }
            Entry::Occupied(mut entry) => {
                let known = entry.get_mut();
                let lasts_longer = root
                    .since
                    .is_some_and(|since| known.root.since.is_none_or(|first| since < first));
                let other = match lasts_longer {
                    true => std::mem::replace(&mut known.root, root),
                    false => root,
                };
                known.alike.push(other.name);
                known.held_up.extend(held_up);
            }
        }
    }
    let mut groups: Vec<Group> = merged.into_values().collect();
    for group in &mut groups {
        group.alike.sort();
        group.held_up.sort();
        group.held_up.dedup();
    }
    groups
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.counts.iter().map(|counts| counts.kind.kind.len()).max();
        for Counts { kind, by_health } in &self.counts {
            let states = by_health
                .iter()
                .map(|(health, count)| format!("{count} {health}"));
            let states = states.collect::<Vec<_>>().join(", ");
            let width = width.unwrap_or_default();
            writeln!(f, "{:<width$}  {states}", kind.kind)?;
        }
        if self.counts.is_empty() {
            writeln!(f, "There are no objects of Flux or kluctl.")?;
        } else if self.groups.is_empty() {
            writeln!(f, "\nNothing has failed.")?;
        }
        for group in self.groups.iter().take(GROUPS) {
            write!(f, "\n{}", group.text(self.now))?;
        }
        let more = self.groups.len().saturating_sub(GROUPS);
        if more > 0 {
            writeln!(
                f,
                "\n{more} more causes: weir get all -A --status-selector ready!=true"
            )?;
        }
        if !self.progressing.is_empty() {
            writeln!(f, "\nIn progress: {}", some(&self.progressing))?;
        }
        if !self.suspended.is_empty() {
            writeln!(f, "\nSuspended:")?;
        }
        for (name, suspension) in self.suspended.iter().take(GROUPS) {
            let line = format!("{name} {}", suspension.since(self.now));
            writeln!(f, "    {}", line.trim_end())?;
        }
        let more = self.suspended.len().saturating_sub(GROUPS);
        if more > 0 {
            writeln!(f, "    and {more} more: weir get all -A --suspended -o wide")?;
        }
        Ok(())
    }
}

impl Group {
    /// Returns the cause, the objects that it holds up, and a remedy.
    #[must_use]
    pub fn text(&self, now: jiff::Timestamp) -> String {
        self.text_with(now, &self.root.advice())
    }

    /// Returns the cause of an object whose explanation follows.
    #[must_use]
    pub fn explanation(&self, now: jiff::Timestamp) -> String {
        self.text_with(now, &self.root.remedy())
    }

    fn text_with(&self, now: jiff::Timestamp, advice: &str) -> String {
        let root = &self.root;
        let mut text = format!("✗ {} {}", root.name, root.problem.words());
        if let Some(since) = root.since {
            let seconds = now.as_second().saturating_sub(since.as_second());
            text.push_str(&format!(" for {}", age(seconds)));
        }
        text.push('\n');
        if !self.alike.is_empty() {
            text.push_str(&format!(
                "    likewise {} more: {}\n",
                self.alike.len(),
                some(&self.alike)
            ));
        }
        let message = message(root);
        if let Some(note) = root.suspension.as_ref().map(|note| note.since(now))
            && !note.is_empty()
        {
            text.push_str(&format!("    suspended {note}\n"));
        }
        if !message.is_empty() {
            text.push_str(&format!("    why: {message}\n"));
        }
        if !self.held_up.is_empty() {
            text.push_str(&format!(
                "    holds up {}: {}\n",
                self.held_up.len(),
                some(&self.held_up)
            ));
        }
        text.push_str(&format!("    to do: {advice}\n"));
        text
    }
}

/// Returns the first objects, then a count.
fn some(names: &[Name]) -> String {
    let first: Vec<String> = names.iter().take(NAMED).map(Name::to_string).collect();
    match names.len().saturating_sub(NAMED) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// Returns the reason and the message in one line.
fn message(root: &Root) -> String {
    let line = shorten_hashes(&root.message).replace(['\n', '\r', '\t'], " ");
    let short: String = line.chars().filter(|c| !c.is_control()).take(MESSAGE).collect();
    let cut = if short.len() < line.len() && line.chars().count() > MESSAGE {
        "..."
    } else {
        ""
    };
    match (root.reason.as_str(), short.as_str()) {
        ("", short) => format!("{short}{cut}"),
        (reason, "") => reason.to_owned(),
        (reason, short) => format!("{reason}: {short}{cut}"),
    }
}

impl Problem {
    /// Returns its name in data.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Cycle => "cycle",
            Self::Stalled => "stalled",
            Self::Failed => "failed",
            Self::Unseen => "unseen",
            Self::Suspended => "suspended",
            Self::Deleting => "deleting",
            Self::NoArtifact => "no-artifact",
            Self::Unknown => "unknown",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Missing => "does not exist",
            Self::Cycle => "depends on itself",
            Self::Stalled => "has been stalled",
            Self::Failed => "has been failing",
            Self::Unseen => "has been seen by no controller",
            Self::Suspended => "has been suspended",
            Self::Deleting => "has been about to be deleted",
            Self::NoArtifact => "has had no artifact",
            Self::Unknown => "has not been ready",
        }
    }
}

impl Root {
    /// Returns the next step: a command, or a change that a person can make.
    #[must_use]
    pub fn advice(&self) -> String {
        match self.problem {
            Problem::Failed | Problem::NoArtifact | Problem::Unknown => {
                let Name { namespace, name, .. } = &self.name;
                let explain = format!("weir explain {}/{name} -n {namespace}", self.name.kind_word());
                match self.is_reconciled() {
                    true => format!("{explain}; {}", self.remedy()),
                    false => explain,
                }
            }
            _ => self.remedy(),
        }
    }

    fn is_reconciled(&self) -> bool {
        let known = Kind::find(&self.name.group, &self.name.kind);
        known.is_some_and(|kind| kind.features.reconciles)
    }

    /// Returns the remedy, after the cause was looked at.
    #[must_use]
    pub fn remedy(&self) -> String {
        let Name {
            group,
            kind,
            namespace,
            name,
        } = &self.name;
        let known = Kind::find(group, kind);
        let word = known.map(|kind| kind.command()).unwrap_or_default();
        let object = format!("{word} {name} -n {namespace}");
        match self.problem {
            Problem::Missing => "create it, or correct the reference to it".to_owned(),
            Problem::Cycle => "remove one of the references in spec.dependsOn".to_owned(),
            Problem::Stalled => "correct the object: it is not tried again until it changes".to_owned(),
            Problem::Suspended => format!("weir resume {object}"),
            Problem::Deleting => format!(
                "see why its controller can't finish: weir logs --kind {kind} --name {name} -n {namespace}"
            ),
            Problem::Unseen => "see if its controller is installed and runs: weir check".to_owned(),
            Problem::Failed | Problem::NoArtifact | Problem::Unknown => {
                if !self.is_reconciled() {
                    return "correct it, or what it refers to".to_owned();
                }
                // Its controller takes requests of another form.
                let request = match known == Some(&kind::GITOPS_KLUCTL_DEPLOYMENT) {
                    true => format!("weir gitops reconcile --name {name} -n {namespace}"),
                    false => format!("weir reconcile {object}"),
                };
                format!("when it is corrected: {request}")
            }
        }
    }
}
