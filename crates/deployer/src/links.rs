//! References and progress of an object of any kind, read field by field from the untyped object.

use api::{DependencyReference, SourceReference, condition_type, revision};
use kube::{ResourceExt, core::DynamicObject};
use runtime::ObjectKey;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    ConfigId, SourceId, SourceKind,
    consumer::{dependency_key, is_kind},
};

/// The references of an object, and its progress. A field that cannot be read counts as absent: the pass of that
/// object reports it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Links {
    pub source: Option<SourceId>,
    /// The objects of the same kind that must be ready first.
    pub dependencies: Vec<ObjectKey>,
    /// The ConfigMaps and Secrets whose changes wake it; none unless its kind adds them.
    pub configs: Vec<ConfigId>,
    pub attempted_revision: Option<String>,
    /// The revision that dependents wait for: the applied one, or the attempted one of kinds that don't tell them apart.
    pub reached_revision: Option<String>,
    /// True if the status describes the current generation and Ready is True.
    pub ready: bool,
}

impl Links {
    /// Reads `spec.sourceRef`, the entries of `spec.dependsOn` of this kind, and the status. A source of a kind that is not one of `accepted` counts
    /// as absent.
    #[must_use]
    pub fn read(object: &DynamicObject, accepted: &[SourceKind], kind: &str) -> Self {
        let namespace = object.namespace().unwrap_or_default();
        let field = |pointer: &str| object.data.pointer(pointer);
        let source = field("/spec/sourceRef").and_then(|value| SourceReference::deserialize(value).ok());
        let dependencies = field("/spec/dependsOn")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|value| DependencyReference::deserialize(value).ok())
            .filter(|reference| is_kind(reference, kind))
            .map(|reference| dependency_key(&reference, &namespace));
        let revision = |pointer| field(pointer).and_then(Value::as_str).map(str::to_owned);
        let attempted_revision = revision("/status/lastAttemptedRevision");
        Self {
            source: source.and_then(|source| SourceId::resolve(&source, &namespace, accepted)),
            dependencies: dependencies.collect(),
            configs: Vec::new(),
            reached_revision: revision("/status/lastAppliedRevision").or_else(|| attempted_revision.clone()),
            attempted_revision,
            ready: is_ready(object),
        }
    }

    /// Returns true if the revision that was last attempted is not `current`.
    pub(crate) fn is_behind(&self, current: &str) -> bool {
        let attempted = self.attempted_revision.as_deref();
        !attempted.is_some_and(|attempted| revision::same(attempted, current))
    }
}

fn is_ready(object: &DynamicObject) -> bool {
    let observed = object
        .data
        .pointer("/status/observedGeneration")
        .and_then(Value::as_i64);
    let mut conditions = object
        .data
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let has = |condition: &Value, field: &str, value: &str| {
        condition.get(field).and_then(Value::as_str) == Some(value)
    };
    observed.is_some()
        && observed == object.metadata.generation
        && conditions.any(|condition| {
            has(condition, "type", condition_type::READY) && has(condition, "status", "True")
        })
}
