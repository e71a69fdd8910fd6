//! Kubernetes Events: a repeat within the window counts up the Event that is there instead of adding one.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};

use super::{Inbox, Told};
use crate::{metrics::Metrics, pass::Severity};

/// Repeats within this time are counted.
const WINDOW: Duration = Duration::from_secs(600);
/// So many different events are remembered.
const REMEMBERED: usize = 1024;
/// Of the 253 characters of a name, 17 are the Event's own.
const LONGEST_NAME: usize = 236;
/// The API server refuses longer messages.
const LONGEST_MESSAGE: usize = 1024;

/// What makes two events the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Sameness {
    object: (String, String, String, String),
    warning: bool,
    reason: String,
    message: String,
    metadata: Vec<(String, String)>,
}

/// What to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Write {
    /// A new Event.
    Create,
    /// The Event `name` once more.
    Repeat { name: String, count: i32 },
}

/// Remembers which Events were written lately.
#[derive(Debug, Default)]
pub(crate) struct Aggregator {
    known: HashMap<Sameness, (String, i32, Instant)>,
    order: VecDeque<Sameness>,
}

impl Aggregator {
    /// Decides about an event, and remembers it under `name` if it is new.
    pub(crate) fn see(&mut self, event: &Sameness, name: &str, now: Instant) -> Write {
        if let Some((name, count, last)) = self.known.get_mut(event)
            && now.saturating_duration_since(*last) < WINDOW
        {
            *last = now;
            *count = count.saturating_add(1);
            return Write::Repeat {
                name: name.clone(),
                count: *count,
            };
        }
        if self
            .known
            .insert(event.clone(), (name.to_owned(), 1, now))
            .is_none()
        {
            self.order.push_back(event.clone());
        }
        while self.order.len() > REMEMBERED {
            if let Some(oldest) = self.order.pop_front() {
                self.known.remove(&oldest);
            }
        }
        Write::Create
    }

    /// Forgets an event, so that the next one is written anew.
    pub(crate) fn forget(&mut self, event: &Sameness) {
        self.known.remove(event);
        self.order.retain(|each| each != event);
    }
}

fn sameness(told: &Told) -> Sameness {
    let object = &told.event.involved_object;
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    Sameness {
        object: (
            text(&object.kind),
            text(&object.namespace),
            text(&object.name),
            text(&object.uid),
        ),
        warning: told.severity == Severity::Error,
        reason: told.event.reason.clone(),
        message: told.event.message.clone(),
        metadata: told
            .event
            .metadata
            .iter()
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
    }
}

/// Writes what comes out of the queue until nobody can put anything in.
pub(super) async fn write_events(client: Client, mut inbox: Inbox<Told>, metrics: Metrics) {
    let mut aggregator = Aggregator::default();
    while let Some(told) = inbox.next().await {
        if let Err(error) = write(&client, &mut aggregator, &told).await {
            metrics.event_dropped("kubernetes");
            if !crate::client::is_not_leader(&error) {
                tracing::info!(error = %crate::client::describe(&error), "cannot write a Kubernetes Event");
            }
        }
    }
}

async fn write(client: &Client, aggregator: &mut Aggregator, told: &Told) -> Result<(), kube::Error> {
    let same = sameness(told);
    let object = &told.event.involved_object;
    let name = event_name(object.name.as_deref().unwrap_or("unnamed"), fastrand::u64(..));
    let api = Api::<Event>::namespaced(client.clone(), object.namespace.as_deref().unwrap_or("default"));
    if let Write::Repeat { name, count } = aggregator.see(&same, &name, Instant::now()) {
        let patch = serde_json::json!({ "count": count, "lastTimestamp": told.event.timestamp });
        match api
            .patch(&name, &PatchParams::default(), &Patch::Merge(patch))
            .await
        {
            Ok(_) => return Ok(()),
            // Events are kept for an hour only, and a namespace may have gone and come back.
            Err(kube::Error::Api(status)) if status.code == 404 => aggregator.forget(&same),
            Err(error) => return Err(error),
        }
        aggregator.see(&same, &name, Instant::now());
    }
    let result = api.create(&PostParams::default(), &kubernetes(told, &name)).await;
    if result.is_err() {
        aggregator.forget(&same);
    }
    result.map(|_| ())
}

/// A name for an Event of an object, which is not longer than a name may be.
fn event_name(object: &str, random: u64) -> String {
    let kept = object
        .get(..object.floor_char_boundary(LONGEST_NAME))
        .unwrap_or_default();
    format!("{}.{random:016x}", kept.trim_end_matches(['.', '-']))
}

/// The Kubernetes Event.
fn kubernetes(told: &Told, name: &str) -> Event {
    let event = &told.event;
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
            if told.severity == Severity::Error {
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

    fn same(message: &str) -> Sameness {
        Sameness {
            object: Default::default(),
            warning: true,
            reason: "Failed".into(),
            message: message.into(),
            metadata: Vec::new(),
        }
    }

    #[test]
    fn repeats_count_up_within_the_window() {
        let now = Instant::now();
        let mut aggregator = Aggregator::default();
        assert_eq!(aggregator.see(&same("a"), "a.1", now), Write::Create);
        let again = |count| Write::Repeat {
            name: "a.1".into(),
            count,
        };
        assert_eq!(aggregator.see(&same("a"), "a.2", now + WINDOW / 2), again(2));
        assert_eq!(aggregator.see(&same("a"), "a.3", now + WINDOW), again(3));
        assert_eq!(aggregator.see(&same("b"), "b.1", now + WINDOW), Write::Create);
        assert_eq!(aggregator.see(&same("a"), "a.4", now + WINDOW * 3), Write::Create);
        aggregator.forget(&same("b"));
        assert_eq!(aggregator.see(&same("b"), "b.2", now + WINDOW), Write::Create);
    }

    #[test]
    fn memory_is_bounded() {
        let now = Instant::now();
        let mut aggregator = Aggregator::default();
        for number in 0..REMEMBERED * 3 {
            aggregator.see(&same(&number.to_string()), "n", now);
        }
        assert_eq!(
            (aggregator.known.len(), aggregator.order.len()),
            (REMEMBERED, REMEMBERED)
        );
    }

    #[test]
    fn an_event_of_a_long_name_has_a_name() {
        assert_eq!(event_name("app", 7), "app.0000000000000007");
        let long = event_name(&format!("{}-{}", "a".repeat(235), "b".repeat(17)), 7);
        assert_eq!(long, format!("{}.0000000000000007", "a".repeat(235)));
    }

    #[test]
    fn long_messages_are_cut_at_a_character() {
        assert_eq!(cut("short"), "short");
        let text = cut(&"ä".repeat(1000));
        assert!(text.len() <= LONGEST_MESSAGE && text.ends_with("ä..."));
    }
}
