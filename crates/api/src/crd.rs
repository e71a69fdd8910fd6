//! The CustomResourceDefinitions, with every served version.
//!
//! No version is converted: all versions of a kind share one schema, so that an object reads the same in each of them, and
//! the controller writes one status.

mod bounds;
pub(crate) mod definition;
#[cfg(test)]
mod tests;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

use crate::{kluctl, kustomize, notification, source};
use definition::ServedKind;

pub use bounds::{Bounds, SizeUnit, TooLarge};

pub use crate::{
    kluctl::{definition as kluctl_deployment, gitops::definition as gitops_kluctl_deployment},
    kustomize::definition as kustomization,
    notification::{
        alert_definition as alert, provider_definition as provider, receiver_definition as receiver,
    },
    source::git_repository_definition as git_repository,
};

const GROUPS: &[&[ServedKind]] = &[
    source::KINDS,
    kluctl::KINDS,
    kustomize::KINDS,
    notification::KINDS,
];

#[must_use]
pub fn all() -> Vec<CustomResourceDefinition> {
    let kinds = GROUPS.iter().copied().flatten();
    kinds.map(|kind| (kind.definition)()).collect()
}

/// Decodes an object as the type of its API group and kind; `None` if these are unknown.
#[must_use]
pub fn decode(object: Value) -> Option<Result<(), serde_json::Error>> {
    let kind = object.get("kind").and_then(Value::as_str)?;
    let version = object.get("apiVersion").and_then(Value::as_str)?;
    let (group, _) = version.split_once('/')?;
    let kind = find(group, kind)?;
    Some((kind.decode)(object))
}

/// Returns the bounds of a kind; `None` if it is unknown.
#[must_use]
pub fn bounds(group: &str, kind: &str) -> Option<Bounds> {
    find(group, kind).map(|kind| Bounds::of(&(kind.definition)()))
}

fn find(group: &str, kind: &str) -> Option<&'static ServedKind> {
    let mut kinds = GROUPS.iter().copied().flatten();
    kinds.find(|served| (served.is)(group, kind))
}
