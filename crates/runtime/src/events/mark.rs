//! The annotation of an object whose last event was not acknowledged yet.
//!
//! Its value is never read, so that a user who may annotate an object cannot make a controller report a false event: a later process
//! reports the status of the object ([`repeated`]).

use std::{collections::BTreeMap, sync::Arc};

use api::{Event, Reason, annotation, condition_type};
use futures::{StreamExt as _, stream};
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    draft::{EventDraft, Severity},
    outbox::Outbox,
    pending::{Mark, MarkChange},
};
use crate::{
    client::is_not_leader,
    work::{RequestError, with_timeout},
};

const CONCURRENCY: usize = 8;

/// The task that sets and removes the annotation, with the controller's own rights and as its field manager. It is not the sender:
/// marking the objects of a namespace must not delay the events of others.
pub(super) struct Marks {
    client: Client,
    manager: String,
}

impl Marks {
    pub(super) fn new(client: Client, manager: &str) -> Self {
        Self {
            client,
            manager: manager.to_owned(),
        }
    }

    /// Changes marks until the sender has ended, and then the marks of all objects with waiting events. A change that failed is tried again at
    /// the next one.
    pub(super) async fn run(self, outbox: Arc<Outbox>, sent: CancellationToken) {
        loop {
            let is_end = sent.is_cancelled();
            let changes = stream::iter(outbox.mark_changes(is_end));
            changes
                .for_each_concurrent(CONCURRENCY, |change| self.apply(change, &outbox))
                .await;
            if is_end {
                return;
            }
            sent.run_until_cancelled(outbox.marks_due()).await;
        }
    }

    /// Sets or removes a mark. If a removal fails, a later pass over the object announces it again, and removes it.
    async fn apply(&self, change: MarkChange, outbox: &Outbox) {
        let mark = match (self.patch(&change).await, &change.text) {
            (Ok(()), Some(_)) => Mark::Set,
            (Ok(()), None) => Mark::Missing,
            (Err(RequestError::Api(error)), Some(_)) if is_lasting(&error) => Mark::Impossible,
            (Err(error), _) => {
                return tracing::debug!(%error, "cannot change the mark of an object with a pending event");
            }
        };
        outbox.changed_mark(change, mark);
    }

    async fn patch(&self, change: &MarkChange) -> Result<(), RequestError> {
        let object = &change.object;
        let (client, namespace) = (
            self.client.clone(),
            object.namespace.as_deref().unwrap_or_default(),
        );
        let api = Api::<DynamicObject>::namespaced_with(client, namespace, &change.resource);
        let params = PatchParams {
            field_manager: Some(self.manager.clone()),
            ..PatchParams::default()
        };
        let patch = json!({ "metadata": {
            // Another object of the same name has other events: the API server refuses a wrong UID.
            "uid": object.uid,
            "annotations": { annotation::EVENT_PENDING: change.text },
        }});
        let name = object.name.as_deref().unwrap_or_default();
        with_timeout(api.patch_metadata(name, &params, &Patch::Merge(patch)))
            .await
            .map(|_| ())
    }
}

fn is_lasting(error: &kube::Error) -> bool {
    is_not_leader(error)
        || matches!(error, kube::Error::Api(status) if (400..500).contains(&status.code) && status.code != 429)
}

/// Returns the value of the annotation, which is for people only.
pub(super) fn content(event: &Event) -> Value {
    json!({ "reason": event.reason, "severity": event.severity, "since": event.timestamp })
}

pub(crate) fn is_marked(annotations: Option<&BTreeMap<String, String>>) -> bool {
    annotations.is_some_and(|annotations| annotations.contains_key(annotation::EVENT_PENDING))
}

/// Returns the event that a marked object gets again, from the Ready condition of its status; `None` if there is no result yet; a later
/// pass has one.
pub(crate) fn repeated(status: &Value, metadata: BTreeMap<String, String>) -> Option<EventDraft> {
    let conditions = status.get("conditions").and_then(Value::as_array)?;
    let text = |condition: &Value, name: &str| condition.get(name)?.as_str().map(str::to_owned);
    let ready = conditions
        .iter()
        .find(|each| text(each, "type").as_deref() == Some(condition_type::READY))?;
    let (severity, otherwise) = match text(ready, "status")?.as_str() {
        "True" => (Severity::Info, Reason::Succeeded),
        "False" => (Severity::Error, Reason::Failed),
        _ => return None,
    };
    let reason = text(ready, "reason").and_then(|reason| Reason::from_name(&reason));
    Some(EventDraft {
        severity,
        reason: reason.unwrap_or(otherwise),
        message: text(ready, "message")?,
        metadata,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_event_says_what_the_ready_condition_says() {
        let status = |ready: &str, reason: &str| {
            json!({"conditions": [
                {"type": "Stalled", "status": "True", "reason": "Other", "message": "other"},
                {"type": "Ready", "status": ready, "reason": reason, "message": "as it is"},
            ]})
        };
        let metadata = BTreeMap::from([("g/revision".to_owned(), "1".to_owned())]);
        let event = repeated(&status("False", "GitOperationFailed"), metadata.clone()).unwrap();
        assert_eq!(
            (event.severity, event.reason),
            (Severity::Error, Reason::GitOperationFailed)
        );
        assert_eq!((event.message.as_str(), &event.metadata), ("as it is", &metadata));
        let event = repeated(&status("True", "OfALaterRelease"), BTreeMap::new()).unwrap();
        assert_eq!(
            (event.severity, event.reason),
            (Severity::Info, Reason::Succeeded)
        );
        for without in [
            status("Unknown", "Progressing"),
            json!({}),
            json!({"conditions": [{"type": "Ready"}]}),
        ] {
            assert_eq!(repeated(&without, BTreeMap::new()), None);
        }
    }
}
