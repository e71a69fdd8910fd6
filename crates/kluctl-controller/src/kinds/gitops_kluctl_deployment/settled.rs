//! Passes that left nothing to do, and what they read: a commit of a Git repository, or an artifact of an OCI registry.
//!
//! A pass that is only due by its interval asks the server of its source for the commit or digest, and nobody else, if the last pass succeeded
//! without drift, on the cluster of the controller, with an index, and with a render that depends on nothing but the source and objects with names. All others
//! read everything at each interval.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use api::kluctl::gitops::{KluctlDeployment, KluctlDeploymentStatus};
use engine::{ExternalAccess, ProjectHead, ReadObjects};
use kluctl::SourceAddress;
use runtime::{ObjectKey, Outcome, Requeue, WorkSlot, now};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tree::Record;

use super::{Controller, key, plan, prepare::Prepared, spec};
use crate::common::settled::{KnownObjects, are_unchanged, wishes};

/// The things that a pass read besides the deployed objects.
#[derive(Debug, Clone)]
pub(super) struct SettledRead {
    pub(super) address: SourceAddress,
    /// Access to the source, with the credentials of the object at that time.
    pub(super) external: ExternalAccess,
    /// The commit or digest that was read.
    pub(super) revision: String,
    /// The list of references by which a later pass found the same commit.
    pub(super) head: Option<ProjectHead>,
    /// The commit that the status shows.
    pub(super) commit: Option<String>,
    /// The calls by which the render read the files.
    pub(super) record: Option<Arc<Record>>,
    /// The objects that the render read.
    pub(super) objects: ReadObjects,
    /// Fingerprint of what users wrote in the object.
    pub(super) wishes: u64,
    /// Timeout for asking the server, and for reading the objects.
    pub(super) timeout: Duration,
    pub(super) interval: Duration,
    /// Time of the next deployment by `deployInterval`.
    pub(super) deployment: Option<Instant>,
}

impl SettledRead {
    /// Returns the time until something is due by the spec; `None` if a deployment is due now.
    pub(super) fn until_due(&self) -> Option<Duration> {
        Some(match self.deployment {
            Some(due) => self.interval.min(due.checked_duration_since(Instant::now())?),
            None => self.interval,
        })
    }
}

impl Controller {
    /// Remembers a pass with its outcome, if it left nothing to do.
    pub(super) fn settle(
        &self,
        object: &KluctlDeployment,
        prepared: Prepared,
        outcome: &Outcome<KluctlDeploymentStatus>,
    ) {
        let (spec, status, read) = (&object.spec, &outcome.status, prepared.read);
        let is_done = outcome.fault.is_none()
            && matches!(outcome.requeue, Requeue::Interval(_))
            && status.last_objects_hash.is_some();
        if !is_done || spec.kube_config.is_some() || self.is_dry_run(object) || has_drift(status) {
            return;
        }
        let discriminator = prepared.rendered.target.discriminator;
        let (Some(revision), Some(discriminator), Some(objects)) =
            (read.revision, discriminator, read.outside)
        else {
            return;
        };
        let read = SettledRead {
            address: read.address,
            external: read.external,
            revision,
            head: None,
            commit: read.commit,
            record: read.record.map(Arc::new),
            objects,
            wishes: wishes(object),
            timeout: spec::timeout(spec) / 3,
            interval: plan::shortest_period(spec),
            deployment: plan::until_deployment(object, status, &now()).map(|left| Instant::now() + left),
        };
        self.settled
            .remember(key(object), &discriminator, self.known_objects(), read);
    }

    /// Returns the time until the next pass over an object, if all is as its last pass left it, and its reference names the same revision.
    pub(super) async fn still_settled(&self, key: &ObjectKey, slot: &WorkSlot) -> Option<Duration> {
        let read = self.settled.unchanged(key, self.known_objects())?;
        let interval = read.until_due()?;
        let asking = self.has_same_revision(key, &read);
        let is_same = slot.waiting(tokio::time::timeout(read.timeout, asking)).await;
        // An error is for the pass to report.
        let is_same = is_same.ok()? && are_unchanged(&read.objects, slot, read.timeout).await;
        is_same.then_some(interval)
    }

    /// Returns true if the reference of the source still names the revision that was read. The list of references of a Git server is
    /// remembered: the next pass only compares it.
    async fn has_same_revision(&self, key: &ObjectKey, read: &Arc<SettledRead>) -> bool {
        if let Some(head) = &read.head
            && head.is_unchanged(&read.external).await
        {
            return true;
        }
        let cancel = CancellationToken::new();
        let head = engine::project_head(read.address.clone(), &read.external, &self.rendering, &cancel);
        match head.await {
            Ok(Some(head)) if head.revision == read.revision => {
                let now = SettledRead {
                    head: Some(head),
                    ..SettledRead::clone(read)
                };
                self.settled.replace(key, read, now);
                true
            }
            _ => false,
        }
    }

    pub(super) fn known_objects(&self) -> KnownObjects<'_> {
        KnownObjects {
            index: &self.deployed,
            memory: &self.memory,
        }
    }
}

/// Returns true if the last drift detection found objects that differ, or had errors or warnings: their versions are not remembered.
/// Orphans are, as objects that were not applied. Pure.
fn has_drift(status: &KluctlDeploymentStatus) -> bool {
    let Some(drift) = &status.last_drift_detection_result else {
        return true;
    };
    let list = |field: &str| {
        let list = drift.get(field).and_then(Value::as_array);
        list.map_or(&[][..], Vec::as_slice)
    };
    let is_orphan = |object: &Value| object.get("orphan").and_then(Value::as_bool) == Some(true);
    !list("objects").iter().all(is_orphan) || !list("errors").is_empty() || !list("warnings").is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn drift_is_anything_but_orphans() {
        let drift = |result: Value| {
            has_drift(&KluctlDeploymentStatus {
                last_drift_detection_result: Some(result),
                ..KluctlDeploymentStatus::default()
            })
        };
        assert!(!drift(json!({})) && !drift(json!({ "objects": [], "errors": null })));
        assert!(!drift(
            json!({ "objects": [{ "ref": { "kind": "Role" }, "orphan": true }] })
        ));
        assert!(drift(json!({ "objects": [{ "orphan": true }, { "new": true }] })));
        assert!(drift(json!({ "errors": [{ "message": "denied" }] })));
        assert!(drift(
            json!({ "warnings": [{ "message": "not all kinds were searched" }] })
        ));
        assert!(
            has_drift(&KluctlDeploymentStatus::default()),
            "nothing was compared"
        );
    }
}
