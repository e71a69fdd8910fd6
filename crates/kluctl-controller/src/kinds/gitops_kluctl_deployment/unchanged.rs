//! Passes that find nothing changed: a commit of a Git repository, or an artifact of an OCI registry, is the input of its own.
//!
//! A pass that is only due by its interval asks the server of its source for the commit or digest, and nobody else, if the last pass
//! succeeded without drift, on the cluster of the controller, with an index, and with a render that depends on nothing but the source and
//! objects with names. All others read everything at each interval. In a repository of many projects, a commit is new for them all: if its
//! files answer the calls of the last render in the same way, nothing is rendered.

use std::time::{Duration, Instant};

use api::kluctl::gitops::{KluctlDeployment, KluctlDeploymentStatus};
use deployer::{Inputs, NewRevision, UnchangedSource};
use engine::{ExternalAccess, ProjectHead};
use kluctl::SourceAddress;
use remote::SshConnections;
use runtime::{Outcome, Pass, now};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{build::Built, controller::Controller, plan, requests, spec};
use crate::common::BuildReads;

#[derive(Debug, Clone)]
pub struct GitopsInputs {
    address: SourceAddress,
    /// Access to the source, with the credentials of the object at that time.
    external: ExternalAccess,
    revision: String,
    /// The list of references by which a later pass found the same commit.
    head: Option<std::sync::Arc<ProjectHead>>,
    /// The commit that the status shows.
    commit: Option<String>,
    /// Time of the next deployment by `deployInterval`.
    deployment: Option<Instant>,
}

impl GitopsInputs {
    /// Returns the time until something is due by the spec; `None` if a deployment is due now.
    pub(super) fn until_due(&self, interval: Duration) -> Option<Duration> {
        Some(match self.deployment {
            Some(due) => interval.min(due.checked_duration_since(Instant::now())?),
            None => interval,
        })
    }

    pub(super) fn observed(&self, status: KluctlDeploymentStatus) -> KluctlDeploymentStatus {
        KluctlDeploymentStatus {
            observed_commit: self.commit.clone(),
            ..status
        }
    }
}

impl Controller {
    /// Returns the inputs of a pass that left nothing to do. One that handled a request is followed by another one.
    pub(super) fn inputs_of(
        &self,
        object: &KluctlDeployment,
        built: Built,
        outcome: &Outcome<KluctlDeploymentStatus>,
    ) -> Option<Inputs<GitopsInputs>> {
        let (spec, status, read) = (&object.spec, &outcome.status, built.read);
        let is_done = status.last_objects_hash.is_some() && !requests::is_pending(object);
        if !is_done || spec.kube_config.is_some() || self.is_dry_run(object) || has_drift(status) {
            return None;
        }
        Some(Inputs {
            owner: built.rendered.target.discriminator?,
            record: read.record.map(Into::into),
            objects: BuildReads::shared(read.outside?),
            timeout: spec::timeout(spec) / 3,
            interval: plan::shortest_period(spec),
            own: GitopsInputs {
                address: read.address,
                external: read.external,
                revision: read.revision?,
                head: None,
                commit: read.commit,
                deployment: plan::until_deployment(object, status, &now()).map(|left| Instant::now() + left),
            },
        })
    }

    /// Asks if the reference of the source still names the revision that was read. The list of references of a Git server is remembered:
    /// the next pass only compares it.
    pub(super) async fn compare_revision(
        &self,
        inputs: &Inputs<GitopsInputs>,
    ) -> UnchangedSource<GitopsInputs> {
        let read = &inputs.own;
        if let Some(head) = &read.head
            && head.is_unchanged(&read.external).await
        {
            return UnchangedSource::Yes;
        }
        let cancel = CancellationToken::new();
        let head = engine::project_head(read.address.clone(), &read.external, &self.rendering, &cancel);
        match tokio::time::timeout(inputs.timeout, head).await {
            Ok(Ok(Some(head))) if head.revision == read.revision => UnchangedSource::YesWith(GitopsInputs {
                head: Some(head.into()),
                ..read.clone()
            }),
            // An error is for the pass to report.
            _ => UnchangedSource::No,
        }
    }

    /// Fetches the source, and returns it if it has another revision.
    pub(super) async fn newer_revision(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        inputs: &Inputs<GitopsInputs>,
    ) -> Option<NewRevision<GitopsInputs>> {
        let (read, status) = (&inputs.own, pass.object.status.as_ref()?);
        if requests::is_pending(pass.object) || status.observed_commit != read.commit {
            return None;
        }
        let ssh = SshConnections::default();
        let fetching = engine::fetch_project(
            read.address.clone(),
            &read.external,
            &self.rendering,
            &ssh,
            &pass.cancel,
        );
        let fetching = tokio::time::timeout(inputs.timeout, fetching);
        let fetched = pass.slot.waiting(fetching).await.ok()?.ok()?;
        let revision = fetched.revision.filter(|revision| *revision != read.revision)?;
        let own = GitopsInputs {
            revision,
            head: None,
            commit: fetched.commit,
            ..read.clone()
        };
        Some(NewRevision {
            files: Some(fetched.tree),
            own,
        })
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
