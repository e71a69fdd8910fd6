//! The CustomResourceDefinitions, with every served version.
//!
//! There is no conversion: all versions of a kind share one schema, so that an object reads the same in each of them, and
//! the controller writes one status.

pub(crate) mod definition;
#[cfg(test)]
mod tests;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::Value;

use crate::{kluctl, notification, source};
use definition::{ServedKind, Version, age, build, column, default_status, ready, status};

pub use crate::source::git_repository_definition as git_repository;

/// The kinds of all API groups, in the order in which their definitions are installed.
const GROUPS: &[&[ServedKind]] = &[source::KINDS, kluctl::KINDS, notification::KINDS];

/// Returns the definitions of all kinds, in the order in which they are installed.
#[must_use]
pub fn all() -> Vec<CustomResourceDefinition> {
    let kinds = GROUPS.iter().copied().flatten();
    kinds.map(|kind| (kind.definition)()).collect()
}

/// Decodes an object as the type of its API group and kind; `None` if these are unknown.
#[must_use]
pub fn decode(object: Value) -> Option<Result<(), serde_json::Error>> {
    let name = object.get("kind").and_then(Value::as_str)?;
    let version = object.get("apiVersion").and_then(Value::as_str)?;
    let (group, _) = version.split_once('/')?;
    let mut kinds = GROUPS.iter().copied().flatten();
    let kind = kinds.find(|kind| {
        let served = (kind.definition)().spec;
        served.names.kind == name && served.group == group
    })?;
    Some((kind.decode)(object))
}

/// Returns the definition of KluctlDeployment in `flux.kluctl.io`.
#[must_use]
pub fn kluctl_deployment() -> CustomResourceDefinition {
    let columns = vec![
        column("DryRun", "boolean", ".spec.dryRun"),
        column("Deployed", "date", ".status.lastDeployResult.time"),
        column("Pruned", "date", ".status.lastPruneResult.time"),
        column("Validated", "date", ".status.lastValidateResult.time"),
        ready(),
        status(),
        age(),
    ];
    build(
        kluctl::KluctlDeployment::crd(),
        &[Version {
            name: "v1alpha1",
            deprecated: false,
            columns,
        }],
    )
}

/// Returns the definition of KluctlDeployment in `gitops.kluctl.io`.
#[must_use]
pub fn gitops_kluctl_deployment() -> CustomResourceDefinition {
    let columns = vec![
        column("Suspend", "boolean", ".spec.suspend"),
        column("DryRun", "boolean", ".spec.dryRun"),
        column("Deployed", "date", ".status.lastDeployResult.commandInfo.endTime"),
        ready(),
        column("Drift", "string", ".status.lastDriftDetectionResultMessage"),
        status(),
        age(),
    ];
    build(
        kluctl::gitops::KluctlDeployment::crd(),
        &[Version {
            name: "v1beta1",
            deprecated: false,
            columns,
        }],
    )
}

/// Returns the definition of Provider.
#[must_use]
pub fn provider() -> CustomResourceDefinition {
    build(notification::Provider::crd(), &notification_versions())
}

/// Returns the definition of Alert.
#[must_use]
pub fn alert() -> CustomResourceDefinition {
    build(notification::Alert::crd(), &notification_versions())
}

/// Returns the definition of Receiver.
#[must_use]
pub fn receiver() -> CustomResourceDefinition {
    let versions = [("v1", false), ("v1beta2", true), ("v1beta1", true)];
    let mut crd = build(
        notification::Receiver::crd(),
        &versions.map(|(name, deprecated)| Version {
            name,
            deprecated,
            columns: vec![age(), ready(), status()],
        }),
    );
    default_status(&mut crd);
    crd
}

fn notification_versions() -> Vec<Version> {
    let columns = || vec![age(), ready(), status()];
    vec![
        Version {
            name: "v1beta3",
            deprecated: false,
            columns: columns(),
        },
        Version {
            name: "v1beta2",
            deprecated: true,
            columns: columns(),
        },
        Version {
            name: "v1beta1",
            deprecated: true,
            columns: columns(),
        },
    ]
}
