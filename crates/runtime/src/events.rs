//! Events: a Kubernetes Event on the object, and a POST to the notification-controller.
//!
//! Recording never waits: each destination has a bounded queue, which namespaces share fairly, and a task. Kubernetes Events that exceed the
//! queue are dropped and counted.
//! Events for the notification-controller wait until it acknowledges them; an object whose event waits for long gets an annotation, by
//! which a later process knows that its state is still to be announced.

mod aggregate;
mod bounds;
mod draft;
mod inbox;
mod mark;
mod outbox;
mod pending;
mod post;
mod sender;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use api::Event;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Client, Resource, api::ApiResource};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use url::Url;

use crate::{error::Error, flags::EventsFlags, metrics::Metrics};
use aggregate::RecordedEvent;
use inbox::Inbox;
use mark::Marks;
use outbox::Outbox;
use post::Poster;
use sender::Sender;

pub use draft::{EventDraft, Severity};
pub(crate) use mark::repeated;

#[derive(Debug, Clone)]
pub struct Recorder {
    controller: Arc<str>,
    instance: Arc<str>,
    kubernetes: Arc<Inbox>,
    outbox: Option<Arc<Outbox>>,
}

#[derive(Debug)]
pub struct Flush {
    tasks: TaskTracker,
    end: CancellationToken,
    outbox: Option<Arc<Outbox>>,
}

impl Flush {
    pub async fn wait(&self, grace: Duration) {
        self.end.cancel();
        if tokio::time::timeout(grace, self.tasks.wait()).await.is_err() {
            tracing::info!("some events were not sent before the end");
        }
        let lost = self.outbox.as_ref().map_or(0, |outbox| outbox.count_lost());
        if lost > 0 {
            tracing::warn!(
                lost,
                "the notification-controller never gets these events, which it had not acknowledged before the end"
            );
        }
    }
}

impl Recorder {
    /// Starts the tasks that send events: `client` writes Kubernetes Events, and `posts` has the URL to post to; an empty one posts
    /// nowhere. Fails when it is not an http or https URL.
    pub fn start(
        controller: &str,
        instance: &str,
        client: Client,
        posts: &EventsFlags,
        metrics: Metrics,
    ) -> Result<(Self, Flush), Error> {
        let (tasks, end) = (TaskTracker::new(), CancellationToken::new());
        let outbox = match parse_address(&posts.events_addr)? {
            None => None,
            Some(url) => {
                let outbox = Arc::new(Outbox::new(metrics.clone()));
                let poster = Poster::new(url, posts.events_token_file.clone())?;
                let sender = Sender::new(poster, Arc::clone(&outbox), end.clone(), metrics.clone());
                let sent = CancellationToken::new();
                let marks = Marks::new(client.clone(), controller);
                tasks.spawn(marks.run(Arc::clone(&outbox), sent.clone()));
                tasks.spawn(async move {
                    let _sent = sent.drop_guard();
                    sender.run().await;
                });
                Some(outbox)
            }
        };
        let kubernetes = Arc::new(Inbox::new(metrics.clone()));
        tasks.spawn(aggregate::write_events(
            client,
            Arc::clone(&kubernetes),
            end.clone(),
            metrics,
        ));
        tasks.close();
        let recorder = Self {
            controller: controller.into(),
            instance: instance.into(),
            kubernetes,
            outbox: outbox.clone(),
        };
        Ok((recorder, Flush { tasks, end, outbox }))
    }

    pub fn record<O: Resource<DynamicType = ()>>(&self, object: &O, draft: EventDraft) {
        let (reference, resource) = (object.object_ref(&()), ApiResource::erase::<O>(&()));
        self.record_pass(
            &reference,
            (&resource, true),
            object.meta().annotations.as_ref(),
            vec![draft],
        );
    }

    /// Records the events of a pass: all of them for the notification-controller, and as Kubernetes Events, joined to one with all messages or
    /// each by itself.
    pub(crate) fn record_pass(
        &self,
        object: &ObjectReference,
        (resource, joins): (&ApiResource, bool),
        annotations: Option<&BTreeMap<String, String>>,
        drafts: Vec<EventDraft>,
    ) {
        let mut recorded = Vec::with_capacity(drafts.len());
        for draft in drafts {
            let severity = draft.severity;
            let event = event(
                &self.controller,
                &self.instance,
                object.clone(),
                annotations,
                draft,
            );
            if severity != Severity::Trace
                && let Some(outbox) = &self.outbox
            {
                outbox.push(event.clone(), resource.clone(), mark::is_marked(annotations));
            }
            recorded.push(RecordedEvent { severity, event });
        }
        if joins {
            recorded = RecordedEvent::joined(recorded).into_iter().collect();
        }
        for one in recorded {
            self.kubernetes.push(one);
        }
    }

    /// Returns true if the state of an object has to be announced again: it has the mark of an earlier process, and no event of it waits in
    /// this one.
    pub(crate) fn is_unannounced(
        &self,
        object: &ObjectReference,
        annotations: Option<&BTreeMap<String, String>>,
    ) -> bool {
        let outbox = self.outbox.as_ref();
        mark::is_marked(annotations) && outbox.is_some_and(|outbox| !outbox.has(object))
    }

    /// Posts an event about the state of an object again; Kubernetes has it already.
    pub(crate) fn repeat_on(
        &self,
        object: ObjectReference,
        resource: &ApiResource,
        annotations: Option<&BTreeMap<String, String>>,
        draft: EventDraft,
    ) {
        if let Some(outbox) = &self.outbox {
            let event = event(&self.controller, &self.instance, object, annotations, draft);
            outbox.push(event, resource.clone(), true);
        }
    }
}

/// Returns the event: annotations of the object overwrite metadata of the controller, as far as [`bounds::annotations`] takes them.
fn event(
    controller: &str,
    instance: &str,
    object: ObjectReference,
    annotations: Option<&BTreeMap<String, String>>,
    draft: EventDraft,
) -> Event {
    let mut metadata = draft.metadata;
    let users = bounds::annotations(annotations);
    metadata.extend(users.map(|(key, value)| (key.clone(), value.clone())));
    Event {
        involved_object: object,
        severity: match draft.severity {
            Severity::Trace => api::Severity::Trace,
            Severity::Info => api::Severity::Info,
            Severity::Error => api::Severity::Error,
        },
        timestamp: Some(crate::now()),
        message: draft.message,
        reason: draft.reason.as_str().to_owned(),
        metadata,
        reporting_controller: controller.to_owned(),
        reporting_instance: instance.to_owned(),
    }
}

fn parse_address(address: &str) -> Result<Option<Url>, Error> {
    if address.is_empty() {
        return Ok(None);
    }
    let refused = || Error::EventsAddress(api::redact(address));
    let url = Url::parse(address).map_err(|_| refused())?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(refused());
    }
    Ok(Some(url))
}

#[cfg(test)]
mod tests {
    use api::Reason;

    use super::*;

    #[test]
    fn event_metadata_is_overwritten_by_annotations_of_the_object() {
        let annotations = BTreeMap::from([
            ("event.toolkit.fluxcd.io/team".to_owned(), "shop".to_owned()),
            (
                "source.toolkit.fluxcd.io/revision".to_owned(),
                "forged".to_owned(),
            ),
        ]);
        let draft = EventDraft {
            severity: Severity::Error,
            reason: Reason::GitOperationFailed,
            message: "no such host".into(),
            metadata: BTreeMap::from([
                (
                    "source.toolkit.fluxcd.io/revision".to_owned(),
                    "main@sha1:12".to_owned(),
                ),
                ("event.toolkit.fluxcd.io/team".to_owned(), "none".to_owned()),
            ]),
        };
        let event = event(
            "source-controller",
            "host",
            ObjectReference::default(),
            Some(&annotations),
            draft,
        );
        assert_eq!(event.metadata["event.toolkit.fluxcd.io/team"], "shop");
        assert_eq!(
            event.metadata["source.toolkit.fluxcd.io/revision"],
            "main@sha1:12"
        );
        assert_eq!(
            (event.severity, event.reason.as_str()),
            (api::Severity::Error, "GitOperationFailed")
        );
    }

    #[test]
    fn address_is_empty_or_an_http_url() {
        assert!(parse_address("").unwrap().is_none());
        assert!(
            parse_address("http://notification-controller.flux-system.svc.cluster.local./")
                .unwrap()
                .is_some()
        );
        for address in ["nonsense", "file:///etc/passwd", "http://"] {
            assert!(parse_address(address).is_err(), "{address}");
        }
    }
}
