//! The status of one object during one pass.

use std::time::{Duration, Instant};

use api::{Fault, Reason};
use kube::{
    Api,
    api::{DynamicObject, PatchParams},
};
use serde_json::Value;
use tokio::sync::Mutex;

use super::{WriteResult, Written, bounded, fingerprint, is_refused, version, without_nulls, write};
use crate::{
    client::{describe, is_not_leader},
    clock::now,
    decode,
    live::Live,
    metrics::KindMetrics,
    queue::ObjectKey,
};

/// Minimum time for writing a status, also after a pass that used up its timeout.
const MIN_WRITE_TIME: Duration = Duration::from_secs(20);
const MAX_WRITE_TIME: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum StatusError {
    /// The object was deleted, or replaced by another one of the same name.
    #[error("the object was deleted")]
    Gone,
    #[error("this process does not hold the lease any more")]
    NotLeader,
    /// The API server refuses the content of the status.
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Failed(String),
}

pub(crate) struct StatusWriter<'a> {
    api: Api<Live>,
    params: PatchParams,
    metrics: &'a KindMetrics,
    key: &'a ObjectKey,
    state: Mutex<State>,
}

struct State {
    live: DynamicObject,
    written: Option<Written>,
    checkpoint: Option<Value>,
    /// End of the pass's own time; a write may go on until then.
    deadline: Instant,
}

impl<'a> StatusWriter<'a> {
    /// Starts with the object as it was read and the status that this process wrote to it in earlier passes.
    pub(crate) fn new(
        api: Api<Live>,
        params: PatchParams,
        metrics: &'a KindMetrics,
        key: &'a ObjectKey,
        live: DynamicObject,
        written: Option<Written>,
    ) -> Self {
        Self {
            api,
            params,
            metrics,
            key,
            state: Mutex::new(State {
                live,
                written,
                checkpoint: None,
                deadline: Instant::now(),
            }),
        }
    }

    pub(crate) fn live(&mut self) -> &DynamicObject {
        &self.state.get_mut().live
    }

    pub(crate) fn set_live(&mut self, live: DynamicObject) {
        self.state.get_mut().live = live;
    }

    /// Lets writes take as long as the pass itself might have taken, within bounds: writing a status late is better than repeating the
    /// pass.
    pub(crate) fn set_deadline(&mut self, started: Instant, timeout: Duration) {
        self.state.get_mut().deadline = started + timeout.min(MAX_WRITE_TIME);
    }

    pub(crate) fn into_written(self) -> Option<Written> {
        self.state.into_inner().written
    }

    pub(crate) fn take_checkpoint(&mut self) -> Option<Value> {
        self.state.get_mut().checkpoint.take()
    }

    pub(crate) async fn checkpoint(&self, status: Value) -> Result<(), StatusError> {
        let mut state = self.state.lock().await;
        self.write_locked(&mut state, &status).await?;
        state.checkpoint = Some(status);
        Ok(())
    }

    pub(crate) async fn announce(&self, status: &Value) -> Result<(), StatusError> {
        let mut state = self.state.lock().await;
        match state.checkpoint {
            Some(_) => Ok(()),
            None => self.write_locked(&mut state, status).await,
        }
    }

    pub(crate) async fn write(&self, status: &Value) -> Result<(), StatusError> {
        let mut state = self.state.lock().await;
        let written = self.write_locked(&mut state, status).await;
        if let Err(StatusError::Refused(why)) = &written {
            self.tell_refused(&mut state, why).await;
        }
        written
    }

    /// Reports in the Ready condition of the last status that a new one was refused. This is tried once: it is in the log, too.
    async fn tell_refused(&self, state: &mut State, why: &str) {
        let deadline = (Instant::now() + MIN_WRITE_TIME).max(state.deadline);
        let message = format!(
            "the API server refuses the status of this object, so it shows an older state: {why}: update the definition of the \
             kind, or make the object smaller"
        );
        let fault = Fault::retry(Reason::Failed, message);
        let status = bounded(without_nulls(decode::failed_status(
            &state.live,
            &fault,
            false,
            &now(),
        )));
        let last = state.written.as_ref();
        match write(&self.api, &state.live, &self.params, &status, last, deadline).await {
            WriteResult::Written(object) => {
                state.remember(&status, *object);
                self.metrics.ready(self.key, "False");
            }
            WriteResult::Unchanged | WriteResult::Gone => {}
            WriteResult::Failed(error) => {
                tracing::error!(error = %describe(&error), "cannot write a condition either");
            }
        }
    }

    async fn write_locked(&self, state: &mut State, status: &Value) -> Result<(), StatusError> {
        let status = bounded(without_nulls(status.clone()));
        let ready = decode::ready(&status).to_owned();
        let deadline = (Instant::now() + MIN_WRITE_TIME).max(state.deadline);
        let last = state.written.as_ref();
        match write(&self.api, &state.live, &self.params, &status, last, deadline).await {
            WriteResult::Unchanged => {}
            WriteResult::Written(object) => state.remember(&status, *object),
            WriteResult::Gone => return Err(StatusError::Gone),
            WriteResult::Failed(error) if is_not_leader(&error) => return Err(StatusError::NotLeader),
            WriteResult::Failed(error) => {
                let message = describe(&error);
                tracing::error!(error = message, "cannot write the status");
                return Err(if is_refused(&error) {
                    StatusError::Refused(message)
                } else {
                    StatusError::Failed(message)
                });
            }
        }
        self.metrics.ready(self.key, &ready);
        Ok(())
    }
}

impl State {
    /// Takes over the changes of the write. Spec and generation stay those that the pass works on.
    fn remember(&mut self, sent: &Value, object: DynamicObject) {
        let stored = object.data.get("status").cloned().unwrap_or(Value::Null);
        self.written = Some(Written {
            sent: fingerprint(sent),
            version: version(&object.metadata),
            stored: fingerprint(&stored),
        });
        let live = &mut self.live;
        if let Some(data) = live.data.as_object_mut() {
            data.insert("status".to_owned(), stored);
        }
        live.metadata.resource_version = object.metadata.resource_version;
        live.metadata.finalizers = object.metadata.finalizers;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::status::is_unchanged;

    fn object(version: &str, generation: i64, status: &Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "g/v1", "kind": "K",
            "metadata": {"name": "n", "namespace": "ns", "uid": "u", "resourceVersion": version,
                         "generation": generation, "finalizers": [format!("of/{version}")]},
            "spec": {"of": version},
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn remember_makes_the_written_status_the_base_of_the_next_write() {
        let mut state = State {
            live: object("5", 1, &json!({"a": 1})),
            written: None,
            checkpoint: None,
            deadline: Instant::now(),
        };
        let sent = json!({"a": 2});
        state.remember(&sent, object("6", 2, &json!({"a": 2, "defaulted": true})));
        assert!(is_unchanged(&state.live, &sent, state.written.as_ref()));
        assert!(!is_unchanged(
            &state.live,
            &json!({"a": 3}),
            state.written.as_ref()
        ));
        assert_eq!(state.live.data["spec"]["of"], "5");
        assert_eq!(state.live.metadata.generation, Some(1));
        assert_eq!(
            state.live.metadata.finalizers.as_deref(),
            Some(&["of/6".to_owned()][..])
        );
    }
}
