//! Kubernetes Events: a repeated event within the window increments the count of the existing Event.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher as _, RandomState},
    sync::{Arc, LazyLock},
    time::{Duration, Instant, SystemTime},
};

use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use limits::TenantCache;
use tokio_util::sync::CancellationToken;

use super::{draft::Severity, inbox::Inbox};
use crate::metrics::Metrics;

const WINDOW: Duration = Duration::from_secs(600);
/// Maximum number of events that are cached.
const MAX_EVENTS: usize = 1024;
/// Maximum length of the object's name in the name of an Event, which has 253 characters and a suffix of 17.
const LONGEST_NAME: usize = 236;
/// Maximum length of a message; the API server refuses longer ones.
const LONGEST_MESSAGE: usize = 1024;

#[derive(Debug, Clone)]
pub(super) struct RecordedEvent {
    pub(super) severity: Severity,
    pub(super) event: api::Event,
}

impl RecordedEvent {
    /// Joins the events of a pass: the severity and the reason are of the first of the most severe ones, the messages are all.
    pub(super) fn joined(events: Vec<Self>) -> Option<Self> {
        let (mut messages, mut metadata) = (Vec::new(), BTreeMap::new());
        let mut joined: Option<Self> = None;
        for mut recorded in events {
            messages.push(std::mem::take(&mut recorded.event.message));
            metadata.append(&mut recorded.event.metadata);
            let is_worse = joined.as_ref().is_none_or(|first| {
                recorded.severity == Severity::Error && first.severity != Severity::Error
            });
            if is_worse {
                joined = Some(recorded);
            }
        }
        let mut joined = joined?;
        joined.event.message = messages.join("; ");
        joined.event.metadata = metadata;
        Some(joined)
    }
}

/// Identifies an event within this process: events of the same object, severity, reason, message and metadata are repeats. It is keyed, so
/// that nobody else can find a collision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint(u64);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Write {
    Create,
    /// Increments the count of the Event with this suffix.
    Repeat {
        suffix: u64,
        count: i32,
    },
}

/// An Event that was written.
#[derive(Debug, Clone, Copy)]
struct Written {
    suffix: u64,
    count: i32,
    last: Instant,
}

#[derive(Debug)]
pub(crate) struct Aggregator {
    known: TenantCache<Fingerprint, Written>,
    last_suffix: u64,
}

impl Aggregator {
    pub(crate) fn new() -> Self {
        Self {
            known: TenantCache::new(MAX_EVENTS),
            last_suffix: 0,
        }
    }

    pub(crate) fn record(&mut self, namespace: &str, event: Fingerprint, suffix: u64, now: Instant) -> Write {
        let known = self.known.get(&event).copied();
        let known = known.filter(|known| now.saturating_duration_since(known.last) < WINDOW);
        let (suffix, count) = match known {
            Some(known) => (known.suffix, known.count.saturating_add(1)),
            None => (suffix, 1),
        };
        let written = Written {
            suffix,
            count,
            last: now,
        };
        self.known.insert(namespace, event, written, 1);
        match known {
            Some(_) => Write::Repeat { suffix, count },
            None => Write::Create,
        }
    }

    /// Returns the suffix of the next Event: its time in nanoseconds, as in the originals, so that a list is in the order of time.
    fn suffix(&mut self, now: SystemTime) -> u64 {
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let nanos = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        self.last_suffix = nanos.max(self.last_suffix.saturating_add(1));
        self.last_suffix
    }

    pub(crate) fn forget(&mut self, event: Fingerprint) {
        self.known.remove(&event);
    }
}

fn fingerprint(recorded: &RecordedEvent) -> Fingerprint {
    static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    let event = &recorded.event;
    let object = &event.involved_object;
    Fingerprint(KEYS.hash_one((
        (&object.kind, &object.namespace, &object.name, &object.uid),
        recorded.severity == Severity::Error,
        (&event.reason, &event.message, &event.metadata),
    )))
}

pub(super) async fn write_events(
    client: Client,
    inbox: Arc<Inbox>,
    end: CancellationToken,
    metrics: Metrics,
) {
    let mut aggregator = Aggregator::new();
    while let Some(recorded) = inbox.next(&end).await {
        if let Err(error) = write(&client, &mut aggregator, &recorded).await {
            metrics.event_dropped("kubernetes");
            if !crate::client::is_not_leader(&error) {
                tracing::info!(error = %crate::client::describe(&error), "cannot write a Kubernetes Event");
            }
        }
    }
}

async fn write(
    client: &Client,
    aggregator: &mut Aggregator,
    recorded: &RecordedEvent,
) -> Result<(), kube::Error> {
    let same = fingerprint(recorded);
    let object = &recorded.event.involved_object;
    let name = |suffix| event_name(object.name.as_deref().unwrap_or("unnamed"), suffix);
    let suffix = aggregator.suffix(SystemTime::now());
    let namespace = object.namespace.as_deref().unwrap_or("default");
    let api = Api::<Event>::namespaced(client.clone(), namespace);
    if let Write::Repeat { suffix: first, count } = aggregator.record(namespace, same, suffix, Instant::now())
    {
        let patch = serde_json::json!({ "count": count, "lastTimestamp": recorded.event.timestamp });
        match api
            .patch(&name(first), &PatchParams::default(), &Patch::Merge(patch))
            .await
        {
            Ok(_) => return Ok(()),
            // Events are kept for an hour only, and a namespace may have gone and come back.
            Err(kube::Error::Api(status)) if status.code == 404 => aggregator.forget(same),
            Err(error) => return Err(error),
        }
        aggregator.record(namespace, same, suffix, Instant::now());
    }
    let result = api
        .create(&PostParams::default(), &kubernetes(recorded, &name(suffix)))
        .await;
    if result.is_err() {
        aggregator.forget(same);
    }
    result.map(|_| ())
}

fn event_name(object: &str, suffix: u64) -> String {
    let start = object
        .get(..object.floor_char_boundary(LONGEST_NAME))
        .unwrap_or_default();
    format!("{}.{suffix:016x}", start.trim_end_matches(['.', '-']))
}

fn kubernetes(recorded: &RecordedEvent, name: &str) -> Event {
    let event = &recorded.event;
    let time = event.timestamp.clone().unwrap_or_else(crate::now);
    let annotations = event.metadata.clone();
    Event {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: event.involved_object.namespace.clone(),
            annotations: (!annotations.is_empty()).then_some(annotations),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            resource_version: None,
            ..event.involved_object.clone()
        },
        type_: Some(
            if recorded.severity == Severity::Error {
                "Warning"
            } else {
                "Normal"
            }
            .to_owned(),
        ),
        reason: Some(event.reason.clone()),
        message: Some(cut(&event.message)),
        count: Some(1),
        first_timestamp: Some(time.clone()),
        event_time: None::<MicroTime>,
        last_timestamp: Some(time),
        source: Some(EventSource {
            component: Some(event.reporting_controller.clone()),
            host: None,
        }),
        reporting_component: Some(event.reporting_controller.clone()),
        reporting_instance: Some(event.reporting_instance.clone()),
        ..Event::default()
    }
}

fn cut(message: &str) -> String {
    if message.len() <= LONGEST_MESSAGE {
        return message.to_owned();
    }
    let end = message.floor_char_boundary(LONGEST_MESSAGE - 3);
    format!("{}...", message.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(severity: Severity, reason: &str, message: &str) -> RecordedEvent {
        let event = serde_json::from_value(serde_json::json!({
            "involvedObject": {"kind": "App", "namespace": "team", "name": "app", "uid": "1"},
            "severity": "error", "timestamp": null, "reason": reason, "message": message,
            "metadata": {message: reason}, "reportingController": "c", "reportingInstance": "i",
        }));
        RecordedEvent {
            severity,
            event: event.unwrap(),
        }
    }

    fn same(message: &str) -> Fingerprint {
        fingerprint(&recorded(Severity::Error, "Failed", message))
    }

    #[test]
    fn joined_events_have_all_messages_and_the_reason_of_the_first_error() {
        let (info, error) = (Severity::Info, Severity::Error);
        for (events, expected) in [
            (vec![], None),
            (vec![(Severity::Trace, "A", "a")], Some(("A", "a"))),
            (
                vec![(info, "A", "a"), (Severity::Trace, "B", "b")],
                Some(("A", "a; b")),
            ),
            (
                vec![(info, "A", "a"), (error, "B", "b"), (error, "C", "c")],
                Some(("B", "a; b; c")),
            ),
        ] {
            let events = events
                .into_iter()
                .map(|(severity, reason, message)| recorded(severity, reason, message));
            let joined = RecordedEvent::joined(events.collect());
            let found = joined
                .as_ref()
                .map(|joined| (joined.event.reason.as_str(), joined.event.message.as_str()));
            assert_eq!(found, expected);
            let messages = expected.map_or(0, |(_, message)| message.split("; ").count());
            assert_eq!(joined.map_or(0, |joined| joined.event.metadata.len()), messages);
        }
    }

    #[test]
    fn aggregator_counts_repeats_within_the_window() {
        let now = Instant::now();
        let mut aggregator = Aggregator::new();
        assert_eq!(aggregator.record("team", same("a"), 1, now), Write::Create);
        let again = |count| Write::Repeat { suffix: 1, count };
        assert_eq!(
            aggregator.record("team", same("a"), 2, now + WINDOW / 2),
            again(2)
        );
        assert_eq!(aggregator.record("team", same("a"), 3, now + WINDOW), again(3));
        assert_eq!(
            aggregator.record("team", same("b"), 1, now + WINDOW),
            Write::Create
        );
        assert_eq!(
            aggregator.record("team", same("a"), 4, now + WINDOW * 3),
            Write::Create
        );
        aggregator.forget(same("b"));
        assert_eq!(
            aggregator.record("team", same("b"), 2, now + WINDOW),
            Write::Create
        );
    }

    #[test]
    fn aggregator_remembers_a_bounded_number_of_events() {
        let now = Instant::now();
        let mut aggregator = Aggregator::new();
        aggregator.record("victim", same("victim"), 1, now);
        for number in 0..MAX_EVENTS * 3 {
            aggregator.record("team", same(&number.to_string()), 1, now);
        }
        assert_eq!(aggregator.known.size(), 1024);
        assert_eq!(
            aggregator.record("victim", same("victim"), 2, now),
            Write::Repeat { suffix: 1, count: 2 },
            "events of one namespace displace none of another"
        );
    }

    #[test]
    fn names_of_events_have_the_order_of_time() {
        let mut aggregator = Aggregator::new();
        let now = SystemTime::UNIX_EPOCH + Duration::from_nanos(0x17f0_0000_0000_0000);
        let times = [
            now,
            now,
            now - Duration::from_secs(1),
            now + Duration::from_secs(1),
        ];
        let names = times.map(|time| event_name("app", aggregator.suffix(time)));
        assert_eq!(names[0], "app.17f0000000000000");
        assert!(
            names.is_sorted() && names[2] == "app.17f0000000000002",
            "{names:?}"
        );
    }

    #[test]
    fn event_name_is_truncated() {
        assert_eq!(event_name("app", 7), "app.0000000000000007");
        let long = event_name(&format!("{}-{}", "a".repeat(235), "b".repeat(17)), 7);
        assert_eq!(long, format!("{}.0000000000000007", "a".repeat(235)));
    }

    #[test]
    fn cut_truncates_messages_at_a_character() {
        assert_eq!(cut("short"), "short");
        let text = cut(&"ä".repeat(1000));
        assert!(text.len() <= LONGEST_MESSAGE && text.ends_with("ä..."));
    }
}
