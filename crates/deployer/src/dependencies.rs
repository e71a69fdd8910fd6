//! The objects that an object depends on.

use std::fmt;

use api::{Fault, Reason, revision};
use kube::{
    Client, Resource,
    core::{ApiResource, DynamicObject},
};
use runtime::{ObjectKey, client::describe};

use crate::{Consumer, Links, ReferenceRules, SourceArtifact, objects};

/// Checks that all dependencies are ready, and have seen the revision that the object is about to deploy.
///
/// # Errors
/// If one is missing, in a blocked namespace, not ready, or behind.
pub(crate) async fn check<C: Consumer>(
    client: &Client,
    rules: ReferenceRules,
    object: &C::Object,
    artifact: Option<&SourceArtifact>,
) -> Result<(), Fault> {
    let wait = |message: String| Fault::wait(rules.requeue_dependency, Reason::DependencyNotReady, message);
    let resource = ApiResource::erase::<C::Object>(&());
    for key in C::dependencies(object) {
        let own = C::key(object).namespace;
        rules.allow(&own, &C::Object::kind(&()), &key, C::retry_interval(object))?;
        let api = objects::api(client, &resource, Some(&key.namespace));
        let dependency = objects::found(api.get(&key.name).await)
            .map_err(|error| wait(unreadable(&key, &describe(&error))))?;
        if let Some(message) = waits_for::<C>(&key, dependency.as_ref(), artifact) {
            return Err(wait(message));
        }
    }
    Ok(())
}

fn unreadable(key: &ObjectKey, why: &dyn fmt::Display) -> String {
    format!("unable to get '{key}' dependency: {why}")
}

/// Returns the reason to wait for a dependency; `None` if there is none. A dependency from the same source must have
/// attempted the same revision. Pure.
pub(crate) fn waits_for<C: Consumer>(
    key: &ObjectKey,
    dependency: Option<&DynamicObject>,
    artifact: Option<&SourceArtifact>,
) -> Option<String> {
    let Some(dependency) = dependency else {
        return Some(unreadable(key, &"it does not exist"));
    };
    let Links {
        source,
        attempted_revision,
        ready,
        ..
    } = C::links(dependency);
    if !ready {
        return Some(format!("dependency '{key}' is not ready"));
    }
    let artifact = artifact.filter(|artifact| source.as_ref() == Some(&artifact.source))?;
    let attempted = attempted_revision.unwrap_or_default();
    (!revision::same(&attempted, artifact.revision()))
        .then(|| format!("dependency '{key}' is not updated yet"))
}
