//! The objects that a pass waits for. Pure.

use std::sync::Arc;

use api::kustomize::Kustomization;
use apply::{AppliedSet, WaitTarget};
use kube::ResourceExt as _;
use objects::{ObjectRef, split_api_version};
use yaml::Value;

/// Returns the objects to wait for: all applied ones, or the health checks of the spec. The Kustomization itself is left out.
pub(super) fn targets(object: &Kustomization, applied: &AppliedSet) -> Vec<WaitTarget> {
    let mut targets = match object.spec.wait {
        true => applied.targets(),
        false => listed(object, applied),
    };
    targets.retain(|target| {
        let reference = &target.reference;
        !(reference.is(api::group::KUSTOMIZE, "Kustomization")
            && reference.name == object.name_any()
            && reference.namespace == object.namespace())
    });
    targets
}

fn listed(object: &Kustomization, applied: &AppliedSet) -> Vec<WaitTarget> {
    let checks = object.spec.health_checks.iter();
    let target = checks.map(|check| {
        let given = check.api_version.as_deref().filter(|given| !given.is_empty());
        let (group, version) = split_api_version(given.unwrap_or("apps/v1"));
        let namespace = check.namespace.clone().filter(|namespace| !namespace.is_empty());
        let reference = ObjectRef {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: check.kind.clone(),
            namespace,
            name: check.name.clone(),
        };
        let outcomes = applied.outcomes.iter();
        let mut known = outcomes.filter(|outcome| outcome.reference.id() == reference.id());
        let known: Option<Arc<Value>> = known.find_map(|outcome| outcome.object.clone());
        WaitTarget { reference, known }
    });
    target.collect()
}
