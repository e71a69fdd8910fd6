//! Patches of an object beside its status at the end of a pass: its finalizers, and the removal of a status.

use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use super::PassRun;
use crate::{
    client::{describe, is_not_leader},
    live::Live,
    reconciler::Reconciler,
    report::{self, Report},
    work::{RequestError, with_timeout},
};

impl<R: Reconciler> PassRun<'_, R> {
    pub(super) fn has_finalizer(&mut self) -> bool {
        let finalizers = self.status.live().finalizers();
        !R::FINALIZER.is_empty() && finalizers.iter().any(|each| each == R::FINALIZER)
    }

    /// Adds the kind's finalizer and removes obsolete ones; returns true if the object changed.
    pub(super) async fn add_finalizer(&mut self) -> Result<bool, Report> {
        let mut wanted: Vec<String> = self.status.live().finalizers().to_vec();
        wanted.retain(|each| !R::OBSOLETE_FINALIZERS.contains(&each.as_str()));
        if !R::FINALIZER.is_empty() && !wanted.iter().any(|each| each == R::FINALIZER) {
            wanted.push(R::FINALIZER.to_owned());
        }
        self.set_finalizers(wanted).await
    }

    pub(super) async fn remove_finalizer(&mut self) -> Report {
        let mut wanted: Vec<String> = self.status.live().finalizers().to_vec();
        wanted.retain(|each| each != R::FINALIZER && !R::OBSOLETE_FINALIZERS.contains(&each.as_str()));
        match self.set_finalizers(wanted).await {
            Ok(_) => report::DONE,
            Err(report) => report,
        }
    }

    async fn set_finalizers(&mut self, wanted: Vec<String>) -> Result<bool, Report> {
        let live = self.status.live();
        if wanted == live.finalizers() {
            return Ok(false);
        }
        // The list is replaced whole; the resourceVersion guards the finalizers that others added meanwhile.
        let patch = json!({
            "metadata": { "finalizers": wanted, "resourceVersion": live.metadata.resource_version },
        });
        let name = live.name_any();
        let params = self.params();
        let patched = with_timeout(self.api.patch(&name, &params, &Patch::Merge(patch))).await;
        self.patched(patched, "change the finalizers").map(|()| true)
    }

    fn params(&self) -> PatchParams {
        PatchParams {
            field_manager: Some(self.kind.ctx.name().to_owned()),
            ..PatchParams::default()
        }
    }

    /// Takes the object that a patch returned; `purpose` names the patch in the log.
    fn patched(&mut self, patched: Result<Live, RequestError>, purpose: &str) -> Result<(), Report> {
        let error = match patched {
            Ok(Live(live)) => {
                self.status.set_live(live);
                return Ok(());
            }
            Err(RequestError::Timeout) => return Err(report::RETRY),
            Err(RequestError::Api(error)) => error,
        };
        Err(match &error {
            kube::Error::Api(status) if status.code == 404 => report::GONE,
            kube::Error::Api(status) if status.code == 409 => report::AGAIN,
            error if is_not_leader(error) => report::NOT_LEADER,
            error => {
                tracing::error!(error = %describe(error), purpose, "cannot change the object");
                report::RETRY
            }
        })
    }

    /// Removes all fields of the status, also the schema's default, with which an object would seem to wait for a controller.
    pub(super) async fn clear_status(&mut self) -> Result<(), Report> {
        let live = self.status.live();
        let fields = live.data.get("status").and_then(Value::as_object);
        let Some(fields) = fields.filter(|fields| !fields.is_empty()) else {
            return Ok(());
        };
        let gone: serde_json::Map<String, Value> =
            fields.keys().map(|name| (name.clone(), Value::Null)).collect();
        let patch = json!({
            "metadata": { "resourceVersion": live.metadata.resource_version },
            "status": gone,
        });
        let name = live.name_any();
        let params = self.params();
        let patched = with_timeout(self.api.patch_status(&name, &params, &Patch::Merge(patch))).await;
        self.patched(patched, "clear the status")
    }
}
