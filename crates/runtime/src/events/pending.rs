//! The events that the notification-controller has not acknowledged yet. Pure.

#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use api::Event;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::ApiResource;
use limits::{FairQueue, NextItem};

use super::{
    bounds::{CAPACITY, cost},
    mark::content,
};

/// Number of failures of one event, each right after another event of its namespace was accepted, after which it is given up.
const STRIKES: u8 = 10;
/// Backoff after the first and later failures in a row, as in the original; the last one repeats.
const PAUSES: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(30),
];

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Waiting {
    pub(super) id: u64,
    pub(super) event: Arc<Event>,
    pub(super) resource: ApiResource,
    strikes: u8,
}

/// Mark of an object: the annotation `event.weir.io/pending`, which outlives this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Missing,
    Set,
    /// It cannot be set: the object is gone, or the API server refuses it.
    Impossible,
}

#[derive(Debug)]
struct Object {
    events: usize,
    mark: Mark,
}

/// A change of the mark of an object.
#[derive(Debug, Clone)]
pub(super) struct MarkChange {
    pub(super) object: ObjectReference,
    pub(super) resource: ApiResource,
    /// Value of the annotation; `None` removes it.
    pub(super) text: Option<String>,
}

/// The notification-controller as the last attempts found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Answers,
    Outage,
    /// Its name doesn't exist, so that nobody misses an event.
    Nobody,
}

/// The consequence of a failure for the events of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BackOff {
    First,
    Again,
    /// The event failed too often while others of its namespace were accepted.
    GivenUp,
}

/// The waiting events. Namespaces take turns; events of one object stay in order.
#[derive(Debug)]
pub(super) struct Pending {
    queue: FairQueue<Waiting>,
    objects: HashMap<String, Object>,
    /// Number of failures in a row of the namespaces that are paused.
    failures: HashMap<String, usize>,
    /// Removals of the marks of objects without waiting events.
    removals: HashMap<String, MarkChange>,
    reach: Reach,
    last: u64,
}

impl Waiting {
    pub(super) fn namespace(&self) -> &str {
        namespace(&self.event.involved_object)
    }

    fn change(&self, text: Option<String>) -> MarkChange {
        MarkChange {
            object: self.event.involved_object.clone(),
            resource: self.resource.clone(),
            text,
        }
    }
}

/// Returns the backoff after a failure that follows `failures` others.
pub(super) fn backoff(failures: usize) -> Duration {
    let pause = PAUSES.get(failures).or(PAUSES.last());
    pause.copied().unwrap_or_default()
}

impl Pending {
    pub(super) fn new() -> Self {
        Self {
            queue: FairQueue::new(CAPACITY),
            objects: HashMap::new(),
            failures: HashMap::new(),
            removals: HashMap::new(),
            reach: Reach::Answers,
            last: 0,
        }
    }

    /// Adds an event; `is_marked` is true if its object has a mark. Beyond the capacity, events of the namespace with the most are evicted,
    /// first those that a later one of their object follows, and then the oldest. Returns the number of evicted events that no mark
    /// announces later.
    pub(super) fn push(&mut self, event: Event, resource: ApiResource, is_marked: bool) -> usize {
        self.last += 1;
        let key = key(&event.involved_object);
        let was_marked = self.removals.remove(&key).is_some();
        let object = self.objects.entry(key).or_insert(Object {
            events: 0,
            mark: Mark::Missing,
        });
        object.events += 1;
        if is_marked || was_marked {
            object.mark = Mark::Set;
        }
        let cost = cost(&event);
        let waiting = Waiting {
            id: self.last,
            event: Arc::new(event),
            resource,
            strikes: 0,
        };
        let namespace = waiting.namespace().to_owned();
        self.queue.push(&namespace, waiting, cost);
        self.evict()
    }

    fn evict(&mut self) -> usize {
        let mut lost = 0;
        while let Some(namespace) = self.queue.overfull() {
            let is_followed = |each: &Waiting| {
                let object = self.objects.get(&key(&each.event.involved_object));
                object.is_some_and(|object| object.events > 1)
            };
            let followed = self.queue.items(&namespace).find(|each| is_followed(each));
            let id = followed.map(|each| each.id);
            let is_wanted = |each: &Waiting| id.is_none_or(|id| each.id == id);
            let Some(gone) = self.queue.remove(&namespace, is_wanted) else {
                break;
            };
            lost += usize::from(self.removed(&gone) != Some(Mark::Set));
        }
        lost
    }

    /// Counts a removed event; returns the mark of its object if it was the last one of it.
    fn removed(&mut self, gone: &Waiting) -> Option<Mark> {
        if !self.queue.has(gone.namespace()) {
            self.failures.remove(gone.namespace());
        }
        let key = key(&gone.event.involved_object);
        let object = self.objects.get_mut(&key)?;
        object.events = object.events.saturating_sub(1);
        if object.events > 0 {
            return None;
        }
        self.objects.remove(&key).map(|object| object.mark)
    }

    pub(super) fn next(&self, now: Instant) -> NextItem<&Waiting> {
        self.queue.next(now)
    }

    /// Removes an event that was acknowledged or given up.
    pub(super) fn finish(&mut self, waiting: &Waiting) {
        self.failures.remove(waiting.namespace());
        self.queue.end_turn(waiting.namespace());
        let gone = self
            .queue
            .remove(waiting.namespace(), |each| each.id == waiting.id);
        if gone.is_some_and(|gone| self.removed(&gone) == Some(Mark::Set)) {
            let object = key(&waiting.event.involved_object);
            self.removals.insert(object, waiting.change(None));
        }
    }

    /// Ends the turn of an event that failed, and moves the events of its object behind the others of its namespace.
    pub(super) fn postpone(&mut self, waiting: &Waiting) {
        let object = key(&waiting.event.involved_object);
        let namespace = waiting.namespace();
        self.queue
            .move_back(namespace, |each| key(&each.event.involved_object) == object);
        self.queue.end_turn(namespace);
    }

    /// Pauses the namespace of an event that failed, for as long as `answer` says at least; it is `None` if the receiver did not answer.
    pub(super) fn back_off(&mut self, waiting: &Waiting, answer: Option<Duration>, now: Instant) -> BackOff {
        let namespace = waiting.namespace();
        let before = self.failures.get(namespace).copied().unwrap_or_default();
        if let Some(failed) = self.queue.find_mut(namespace, |each| each.id == waiting.id) {
            let is_strike = before == 0 && answer.is_some();
            failed.strikes = failed.strikes.saturating_add(u8::from(is_strike));
            if failed.strikes >= STRIKES {
                return BackOff::GivenUp;
            }
        }
        if self.queue.has(namespace) {
            let pause = backoff(before).max(answer.unwrap_or_default());
            self.queue.pause(namespace, now + pause);
            self.failures.insert(namespace.to_owned(), before + 1);
        }
        self.postpone(waiting);
        match before {
            0 => BackOff::First,
            _ => BackOff::Again,
        }
    }

    pub(super) fn has(&self, object: &ObjectReference) -> bool {
        self.objects.contains_key(&key(object))
    }

    pub(super) fn set_reach(&mut self, reach: Reach) {
        self.reach = reach;
    }

    /// Takes the marks to remove, and returns those to set: of all objects with waiting events while there is an outage or at the end of
    /// the process, otherwise of objects in paused namespaces; of none if there is no receiver.
    pub(super) fn mark_changes(&mut self, is_end: bool) -> Vec<MarkChange> {
        let mut changes: Vec<_> = std::mem::take(&mut self.removals).into_values().collect();
        let is_all = is_end || self.reach == Reach::Outage;
        if self.reach == Reach::Nobody || !is_all && self.failures.is_empty() {
            return changes;
        }
        let mut missing = Vec::new();
        for namespace in self.queue.keys() {
            if is_all || self.failures.contains_key(namespace) {
                missing.extend(self.missing_marks(namespace).into_iter().enumerate());
            }
        }
        // The first ones of each namespace come before the others.
        missing.sort_by_key(|(rank, _)| *rank);
        changes.extend(missing.into_iter().map(|(_, change)| change));
        changes
    }

    /// Returns the marks that objects of a namespace lack, one for each, with the text of its last event.
    fn missing_marks(&self, namespace: &str) -> Vec<MarkChange> {
        let mut last = HashMap::new();
        for each in self.queue.items(namespace) {
            let key = key(&each.event.involved_object);
            if (self.objects.get(&key)).is_some_and(|object| object.mark == Mark::Missing) {
                last.insert(key, each);
            }
        }
        let change = |each: &Waiting| each.change(Some(content(&each.event).to_string()));
        last.into_values().map(change).collect()
    }

    /// Records the mark of an object after a change. Removes it again if the events of the object were acknowledged meanwhile.
    pub(super) fn changed_mark(&mut self, change: MarkChange, mark: Mark) {
        let key = key(&change.object);
        match self.objects.get_mut(&key) {
            Some(object) => object.mark = mark,
            None if mark == Mark::Set => {
                self.removals.insert(key, MarkChange { text: None, ..change });
            }
            None => {}
        }
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns the number of events that are lost if the process ends now: all events of objects
    /// without a mark, and all but one of others.
    pub(super) fn lost_at_end(&self) -> usize {
        let marked = self.objects.values().filter(|object| object.mark == Mark::Set);
        self.queue.len().saturating_sub(marked.count())
    }
}

fn namespace(object: &ObjectReference) -> &str {
    object.namespace.as_deref().unwrap_or_default()
}

fn key(object: &ObjectReference) -> String {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    match &object.uid {
        Some(uid) if !uid.is_empty() => uid.clone(),
        _ => [&object.kind, &object.namespace, &object.name]
            .map(text)
            .join("/"),
    }
}
