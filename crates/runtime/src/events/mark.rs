//! The annotation of an object whose last event was not acknowledged yet.
//!
//! Its value is never read, so that a user who may annotate an object cannot make a controller report a false event: a later process
//! reports the status of the object ([`repeated`]).

use std::collections::BTreeMap;

use api::{Event, Reason, annotation, condition_type};
use futures::{StreamExt as _, stream};
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{
    draft::{EventDraft, Severity},
    outbox::Outbox,
    pending::{Mark, Waiting},
};
use crate::{
    client::{describe, is_not_leader},
    work::{RequestError, with_timeout},
};

const CONCURRENCY: usize = 8;

/// Sets and removes the annotation, with the controller's own rights and as its field manager.
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

    /// Marks all objects with waiting events that have no mark yet. The next call tries failed ones again.
    pub(super) async fn set(&self, outbox: &Outbox) {
        stream::iter(outbox.unmarked())
            .for_each_concurrent(CONCURRENCY, |waiting| async move {
                let text = content(&waiting.event).to_string();
                let mark = match self.patch(&waiting, Some(&text)).await {
                    Ok(()) => Mark::Set,
                    Err(RequestError::Timeout) => return,
                    Err(RequestError::Api(error)) if is_lasting(&error) => Mark::Impossible,
                    Err(RequestError::Api(error)) => {
                        tracing::debug!(error = %describe(&error), "cannot mark an object with a pending event");
                        return;
                    }
                };
                outbox.set_mark(&waiting.event.involved_object, mark);
            })
            .await;
    }

    /// Removes the mark of an object. If that fails, a later pass over the object announces it again, and removes it.
    pub(super) async fn remove(&self, waiting: &Waiting) {
        match self.patch(waiting, None).await {
            Ok(()) | Err(RequestError::Timeout) => {}
            Err(RequestError::Api(error)) => {
                tracing::debug!(error = %describe(&error), "cannot remove the mark of a pending event");
            }
        }
    }

    async fn patch(&self, waiting: &Waiting, text: Option<&str>) -> Result<(), RequestError> {
        let object = &waiting.event.involved_object;
        let (client, namespace) = (
            self.client.clone(),
            object.namespace.as_deref().unwrap_or_default(),
        );
        let api = Api::<DynamicObject>::namespaced_with(client, namespace, &waiting.resource);
        let params = PatchParams {
            field_manager: Some(self.manager.clone()),
            ..PatchParams::default()
        };
        let patch = json!({ "metadata": {
            // Another object of the same name has other events: the API server refuses a wrong UID.
            "uid": object.uid,
            "annotations": { annotation::EVENT_PENDING: text },
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
fn content(event: &Event) -> Value {
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
