//! Reads what a pass must know before it may act: live, each thing once. Nothing is changed here.

use std::time::Duration;

use api::{Fault, Reason, Time, annotation, condition_type, conditions, group, kluctl::KluctlDeployment};
use k8s_openapi::{
    api::core::v1::{Event, ObjectReference},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{Api, Client, ResourceExt, api::PostParams};
use references::objects;
use runtime::{ObjectKey, client::describe};

use super::{
    Ages,
    plan::{Facts, LastDeploy},
    results::failure_of,
    sharers, spec,
    status::since,
};

/// Returns true if an object of the same name in `gitops.kluctl.io`, the group whose objects bring their own source,
/// took over.
pub(crate) async fn handed_over(client: &Client, key: &ObjectKey) -> Result<bool, Fault> {
    let api = objects::api(client, &sharers::successor(), Some(&key.namespace));
    match objects::found(api.get_metadata(&key.name).await) {
        Ok(found) => Ok(found.is_some()),
        Err(error) => {
            let message = format!(
                "cannot read KluctlDeployment.{} {key}: {}",
                group::GITOPS_KLUCTL,
                describe(&error)
            );
            Err(Fault::retry(Reason::Failed, message))
        }
    }
}

/// Returns true if a namespace is being deleted. The API server says so when it refuses to create an object in it, so no right to
/// read namespaces is needed: an Event that is not stored is tried. False if it does not answer.
pub(super) async fn is_terminating(client: &Client, namespace: &str) -> bool {
    let event = Event {
        metadata: ObjectMeta {
            generate_name: Some("terminating-".to_owned()),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            namespace: Some(namespace.to_owned()),
            ..ObjectReference::default()
        },
        ..Event::default()
    };
    let params = PostParams {
        dry_run: true,
        field_manager: None,
    };
    match Api::<Event>::namespaced(client.clone(), namespace)
        .create(&params, &event)
        .await
    {
        Err(kube::Error::Api(status)) => {
            let causes = status.details.as_ref().map_or(&[][..], |details| &details.causes);
            status.code == 404 || causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
        }
        Ok(_) | Err(_) => false,
    }
}

/// Collects the facts that the plan depends on. Pure.
pub(crate) fn facts<'a>(
    object: &'a KluctlDeployment,
    hash: &'a str,
    dry_run: bool,
    ages: Ages,
    now: &Time,
) -> Facts<'a> {
    let spec = &object.spec;
    let status = object.status.as_ref();
    let deploy = status.and_then(|status| status.last_deploy_result.as_ref());
    let prune = status.and_then(|status| status.last_prune_result.as_ref());
    let validate = status.and_then(|status| status.last_validate_result.as_ref());
    let unhandled = |name: &str, handled: Option<&String>| {
        let asked = object.annotations().get(name);
        asked.is_some() && asked != handled
    };
    let shortest = |a: Option<Duration>, b: Option<Duration>| match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    Facts {
        hash,
        last_deploy: deploy.map(|last| LastDeploy {
            hash: last.objects_hash.as_deref().unwrap_or_default(),
            failed: failure_of(Some(last)).is_some(),
        }),
        spec_changed: status.and_then(|status| status.observed_generation) != object.metadata.generation,
        deploy_requested: unhandled(
            annotation::DEPLOY_REQUESTED_AT,
            status.and_then(|status| status.last_handled_deploy_at.as_ref()),
        ),
        reconcile_requested: unhandled(
            annotation::RECONCILE_REQUESTED_AT,
            status.and_then(|status| status.last_handled_reconcile_at.as_ref()),
        ),
        recovering: !status.is_some_and(|status| got_to_deploy(&status.conditions)),
        dry_run,
        deploy_on_changes: spec.deploy_on_changes,
        deploy_period: spec::deploy_period(spec),
        compare_on_request: spec.deploy_interval.is_none(),
        since_compared: shortest(ages.since_compared, deploy.map(|last| since(&last.time, now)))
            .unwrap_or_default(),
        prune: spec.prune,
        last_prune_failed: failure_of(prune).is_some(),
        validate: spec.validate,
        validate_period: spec::validate_period(spec),
        since_validated: validate.map(|last| {
            let noted = since(&last.time, now);
            ages.since_validated
                .map_or(noted, |remembered| remembered.min(noted))
        }),
        last_validate_failed: failure_of(validate).is_some(),
    }
}

/// Returns true if the last pass came to the deployment, by the reason of Ready.
fn got_to_deploy(conditions: &[api::Condition]) -> bool {
    let reached = [
        Reason::ReconciliationSucceeded,
        Reason::DeployFailed,
        Reason::ValidateFailed,
    ];
    conditions::get(conditions, condition_type::READY)
        .is_some_and(|ready| reached.iter().any(|reason| reason.as_str() == ready.reason))
}

#[cfg(test)]
mod tests;
