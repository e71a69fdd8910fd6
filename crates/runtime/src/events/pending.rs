//! The events that the notification-controller has not acknowledged yet. Pure.

use std::collections::{HashMap, VecDeque};

use api::Event;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::ApiResource;

/// Maximum number of waiting events; an object with a mark is announced without one.
pub(super) const CAPACITY: usize = 512;
/// Number of failures of one event, each right after another event was accepted, after which it is given up.
const STRIKES: u8 = 10;

#[derive(Debug, Clone)]
pub(super) struct Waiting {
    pub(super) id: u64,
    pub(super) event: Event,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Added {
    Queued,
    /// Another event was evicted, and its object announces itself later: it has a mark.
    Deferred,
    Dropped,
}

/// The waiting events, the next one first. Events of one object stay in order.
#[derive(Debug, Default)]
pub(super) struct Pending {
    waiting: VecDeque<Waiting>,
    objects: HashMap<String, Object>,
    last: u64,
}

impl Pending {
    /// Adds an event; `is_marked` is true if its object has a mark. If the queue is full, the oldest event that a later one of its object
    /// follows is evicted, or else the oldest one.
    pub(super) fn push(&mut self, event: Event, resource: ApiResource, is_marked: bool) -> Added {
        let added = match self.waiting.len() < CAPACITY {
            true => Added::Queued,
            false => self.evict_one(),
        };
        self.last += 1;
        let found = if is_marked { Mark::Set } else { Mark::Missing };
        let object = self.objects.entry(key(&event.involved_object)).or_insert(Object {
            events: 0,
            mark: found,
        });
        object.events += 1;
        if is_marked {
            object.mark = Mark::Set;
        }
        self.waiting.push_back(Waiting {
            id: self.last,
            event,
            resource,
            strikes: 0,
        });
        added
    }

    fn evict_one(&mut self) -> Added {
        let is_followed = |each: &Waiting| {
            let object = self.objects.get(&key(&each.event.involved_object));
            object.is_some_and(|object| object.events > 1)
        };
        let position = self.waiting.iter().position(is_followed).unwrap_or_default();
        let Some(gone) = self.waiting.remove(position) else {
            return Added::Queued;
        };
        match self.removed(&gone) {
            Some(Mark::Set) => Added::Deferred,
            _ => Added::Dropped,
        }
    }

    /// Counts a removed event; returns the mark of its object if it was the last one of it.
    fn removed(&mut self, gone: &Waiting) -> Option<Mark> {
        let key = key(&gone.event.involved_object);
        let object = self.objects.get_mut(&key)?;
        object.events = object.events.saturating_sub(1);
        if object.events > 0 {
            return None;
        }
        self.objects.remove(&key).map(|object| object.mark)
    }

    pub(super) fn first(&self) -> Option<&Waiting> {
        self.waiting.front()
    }

    /// Removes an event that was acknowledged or given up; returns it if the mark of its object has to go, too.
    pub(super) fn remove(&mut self, id: u64) -> Option<Waiting> {
        let position = self.waiting.iter().position(|each| each.id == id)?;
        let gone = self.waiting.remove(position)?;
        (self.removed(&gone) == Some(Mark::Set)).then_some(gone)
    }

    /// Moves the events of an object behind all others, after a failure of the first one. `is_strike` is true if the receiver had accepted
    /// another event just before. Returns false if the event has failed too often like that.
    pub(super) fn defer(&mut self, id: u64, is_strike: bool) -> bool {
        let Some(failed) = self.waiting.iter_mut().find(|each| each.id == id) else {
            return true;
        };
        failed.strikes = failed.strikes.saturating_add(u8::from(is_strike));
        if failed.strikes >= STRIKES {
            return false;
        }
        let object = key(&failed.event.involved_object);
        let (own, others) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition::<VecDeque<_>, _>(|each| key(&each.event.involved_object) == object);
        self.waiting = others;
        self.waiting.extend(own);
        true
    }

    pub(super) fn has(&self, object: &ObjectReference) -> bool {
        self.objects.contains_key(&key(object))
    }

    pub(super) fn unmarked(&self) -> Vec<Waiting> {
        let mut last = HashMap::new();
        for each in &self.waiting {
            let key = key(&each.event.involved_object);
            if (self.objects.get(&key)).is_some_and(|object| object.mark == Mark::Missing) {
                last.insert(key, each);
            }
        }
        last.into_values().cloned().collect()
    }

    pub(super) fn set_mark(&mut self, object: &ObjectReference, mark: Mark) {
        if let Some(object) = self.objects.get_mut(&key(object)) {
            object.mark = mark;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the number of events that are lost if the process ends now: all events of objects
    /// without a mark, and all but one of others.
    pub(super) fn lost_at_end(&self) -> usize {
        let marked = self.objects.values().filter(|object| object.mark == Mark::Set);
        self.waiting.len().saturating_sub(marked.count())
    }
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

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn event(object: &str, message: &str) -> Event {
        serde_json::from_value(serde_json::json!({
            "involvedObject": {"kind": "ConfigMap", "name": object, "namespace": "b", "uid": object},
            "severity": "info", "message": message, "reason": "r", "reportingController": "c",
        }))
        .unwrap()
    }

    fn push(pending: &mut Pending, object: &str, message: &str) -> Added {
        let resource = ApiResource::erase::<ConfigMap>(&());
        pending.push(event(object, message), resource, false)
    }

    fn messages(pending: &Pending) -> Vec<&str> {
        pending
            .waiting
            .iter()
            .map(|each| each.event.message.as_str())
            .collect()
    }

    #[test]
    fn events_of_a_failed_object_go_behind_those_of_others_in_their_order() {
        let mut pending = Pending::default();
        for (object, message) in [("a", "a1"), ("b", "b1"), ("a", "a2"), ("c", "c1")] {
            assert_eq!(push(&mut pending, object, message), Added::Queued);
        }
        let first = pending.first().unwrap().id;
        assert!(pending.defer(first, false));
        assert_eq!(messages(&pending), ["b1", "c1", "a1", "a2"]);
    }

    #[test]
    fn event_that_fails_while_others_are_accepted_is_given_up() {
        let mut pending = Pending::default();
        push(&mut pending, "a", "a1");
        let id = pending.first().unwrap().id;
        for _ in 0..1000 {
            assert!(
                pending.defer(id, false),
                "the receiver is down: nobody is given up"
            );
        }
        let failures = (1..).find(|_| !pending.defer(id, true));
        assert_eq!(failures, Some(usize::from(STRIKES)));
    }

    #[test]
    fn mark_goes_with_the_last_event_of_its_object() {
        let mut pending = Pending::default();
        push(&mut pending, "a", "a1");
        push(&mut pending, "a", "a2");
        push(&mut pending, "b", "b1");
        let mut unmarked: Vec<String> = pending
            .unmarked()
            .into_iter()
            .map(|each| each.event.message)
            .collect();
        unmarked.sort();
        assert_eq!(unmarked, ["a2", "b1"], "one mark an object, for its last event");
        assert_eq!(pending.lost_at_end(), 3);
        pending.set_mark(&event("a", "").involved_object, Mark::Set);
        pending.set_mark(&event("b", "").involved_object, Mark::Impossible);
        assert!(pending.unmarked().is_empty());
        assert_eq!(
            pending.lost_at_end(),
            2,
            "the mark of a stands for its last event"
        );
        let ids: Vec<u64> = pending.waiting.iter().map(|each| each.id).collect();
        assert!(pending.remove(ids[0]).is_none(), "another event of a waits");
        assert!(pending.has(&event("a", "").involved_object));
        assert!(pending.remove(ids[1]).is_some());
        assert!(!pending.has(&event("a", "").involved_object));
        assert!(pending.remove(ids[2]).is_none(), "b has no mark");
        assert_eq!((pending.len(), pending.objects.len()), (0, 0));
    }

    #[test]
    fn events_that_others_of_their_object_follow_are_evicted_first() {
        let mut pending = Pending::default();
        push(&mut pending, "first", "1");
        push(&mut pending, "twice", "2");
        push(&mut pending, "twice", "3");
        for number in 3..CAPACITY {
            assert_eq!(push(&mut pending, &number.to_string(), ""), Added::Queued);
        }
        assert_eq!(push(&mut pending, "new", "4"), Added::Dropped);
        assert_eq!(messages(&pending)[..2], ["1", "3"]);
        pending.set_mark(&event("first", "").involved_object, Mark::Set);
        assert_eq!(
            push(&mut pending, "newer", "5"),
            Added::Deferred,
            "its mark announces it"
        );
        assert_eq!(push(&mut pending, "newest", "6"), Added::Dropped);
        assert_eq!((pending.len(), pending.objects.len()), (CAPACITY, CAPACITY));
    }

    #[test]
    fn event_of_a_marked_object_keeps_the_mark_until_it_is_acknowledged() {
        let mut pending = Pending::default();
        let resource = ApiResource::erase::<ConfigMap>(&());
        pending.push(event("a", "a1"), resource, true);
        assert!(pending.unmarked().is_empty());
        let id = pending.first().unwrap().id;
        assert_eq!(pending.remove(id).unwrap().event.message, "a1");
    }
}
