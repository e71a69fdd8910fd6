//! Announcements of a pass: that it is running, and its events.

use std::time::Duration;

use api::annotation;
use kube::ResourceExt as _;
use serde_json::Value;

use super::PassRun;
use crate::{
    decode,
    events::{self, EventDraft},
    reconciler::Reconciler,
    requests, status,
};

const ANNOUNCE_AFTER: Duration = Duration::from_secs(2);

impl<R: Reconciler> PassRun<'_, R> {
    pub(super) fn record(&mut self, events: Vec<EventDraft>) {
        let recorder = self.kind.ctx.recorder();
        let live = self.status.live();
        let annotations = live.metadata.annotations.as_ref();
        let kind = (&self.kind.resource, R::JOINS_EVENTS);
        recorder.record_pass(&status::reference(live), kind, annotations, events);
    }

    /// Posts an event about the state of an object whose last event an earlier process could not post.
    pub(super) fn announce_again(&mut self) {
        let recorder = self.kind.ctx.recorder();
        let live = self.status.live();
        let (reference, annotations) = (status::reference(live), live.metadata.annotations.as_ref());
        if recorder.is_unannounced(&reference, annotations)
            && let Some(state) = live.data.get("status")
            && let Ok(object) = decode::typed::<R::Object>(live, self.kind.bounds.as_ref())
            && let Some(event) = events::repeated(state, self.kind.reconciler.event_metadata(&object))
        {
            recorder.repeat_on(reference, &self.kind.resource, annotations, event);
        }
    }

    /// Returns the status with Reconciling=True, once for each generation and each request.
    pub(super) fn announcement(&mut self, object: &R::Object) -> Option<R::Status> {
        let live = self.status.live();
        let generation = live.metadata.generation;
        let status = live.data.get("status").unwrap_or(&Value::Null);
        let handled = status.get("lastHandledReconcileAt").and_then(Value::as_str);
        let observed = status.get("observedGeneration").and_then(Value::as_i64);
        let is_requested =
            requests::is_unhandled(&live.metadata, annotation::RECONCILE_REQUESTED_AT, handled);
        if observed == generation && !is_requested {
            return None;
        }
        let requested = live
            .annotations()
            .get(annotation::RECONCILE_REQUESTED_AT)
            .cloned();
        let now = Some((generation, requested));
        if *self.announced == now {
            return None;
        }
        *self.announced = now;
        self.kind.reconciler.progressing(object)
    }

    /// Runs the kind's own work. If it takes longer than [`ANNOUNCE_AFTER`], the status says that it is running, unless it wrote one
    /// itself.
    pub(super) async fn announcing<T>(
        &self,
        mut work: impl Future<Output = T> + Unpin,
        status: Option<R::Status>,
    ) -> T {
        let Some(status) = status else {
            return work.await;
        };
        if let Ok(done) = tokio::time::timeout(ANNOUNCE_AFTER, &mut work).await {
            return done;
        }
        let announced = async {
            match serde_json::to_value(&status) {
                // A failed write is in the log, and the pass writes its status at its end.
                Ok(status) => drop(self.status.announce(&status).await),
                Err(error) => tracing::error!(%error, "a status cannot be encoded"),
            }
        };
        let (done, ()) = futures::join!(work, announced);
        done
    }
}
