//! Passes that left nothing to do, and what they read: the artifact of a watched source.
//!
//! The last pass must have succeeded, on the cluster of the controller, with an index, without dependencies, and with a render that depends
//! on nothing but the artifact. All others read everything at each interval.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
    time::Duration,
};

use api::kluctl::{KluctlDeployment, KluctlDeploymentStatus};
use kube::ResourceExt as _;
use references::SourceArtifact;
use runtime::{ObjectKey, Outcome, Requeue};
use tree::Record;

use super::{Controller, consumer::key, plan::Period, prepare::Prepared, source::ProjectSource, spec};
use crate::common::settled::KnownObjects;

/// The things that a pass read besides the deployed objects.
#[derive(Debug, Clone)]
pub(super) struct SettledRead {
    /// Time until the next pass.
    pub(super) interval: Duration,
    pub(super) artifact: SourceArtifact,
    /// The calls by which the render read the artifact.
    pub(super) record: Option<Arc<Record>>,
    /// Fingerprint of what users wrote in the object.
    pub(super) wishes: u64,
}

/// Returns a fingerprint of what users wrote in an object: its spec, and annotations with requests. Pure.
pub(super) fn wishes(object: &KluctlDeployment) -> u64 {
    let mut hasher = DefaultHasher::new();
    object.uid().hash(&mut hasher);
    object.metadata.generation.hash(&mut hasher);
    object.annotations().hash(&mut hasher);
    hasher.finish()
}

impl Controller {
    /// Remembers a pass with its outcome, if it left nothing to do.
    pub(super) fn settle(
        &self,
        object: &KluctlDeployment,
        artifact: &ProjectSource,
        prepared: &mut Prepared,
        outcome: &Outcome<KluctlDeploymentStatus>,
    ) {
        let spec = &object.spec;
        let is_done = outcome.fault.is_none() && matches!(outcome.requeue, Requeue::Interval(_));
        let is_watched = spec.kube_config.is_none() && spec.depends_on.is_empty() && !prepared.reads_outside;
        let record = prepared.record.take().map(Arc::new);
        let (Some(artifact), Some(discriminator)) = (artifact.artifact(), prepared.discriminator()) else {
            return;
        };
        if !is_done || !is_watched || self.is_dry_run(object) {
            return;
        }
        let read = SettledRead {
            interval: shortest_period(object),
            artifact: artifact.clone(),
            record,
            wishes: wishes(object),
        };
        self.settled
            .remember(key(object), discriminator, self.known_objects(), read);
    }

    /// Returns the time until the next pass over an object, if all is as its last pass left it.
    pub(super) fn still_settled(&self, key: &ObjectKey) -> Option<Duration> {
        let read = self.settled.unchanged(key, self.known_objects())?;
        let is_same =
            self.successors.contains(key) == Some(false) && self.references.still_offers(&read.artifact);
        is_same.then_some(read.interval)
    }

    pub(super) fn known_objects(&self) -> KnownObjects<'_> {
        KnownObjects {
            index: &self.deployed,
            memory: &self.memory,
        }
    }
}

/// Returns the shortest time after which something is due by the spec. Pure.
fn shortest_period(object: &KluctlDeployment) -> Duration {
    let spec = &object.spec;
    let periods = [
        Some(spec::deploy_period(spec)),
        spec.validate.then(|| spec::validate_period(spec)),
    ];
    let every = periods.into_iter().flatten().filter_map(|period| match period {
        Period::Every(period) => Some(period),
        Period::Never => None,
    });
    every.fold(spec::interval(spec), Duration::min)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn fingerprint(change: impl FnOnce(&mut Value)) -> u64 {
        let mut object = json!({
            "apiVersion": "flux.kluctl.io/v1alpha1", "kind": "KluctlDeployment",
            "metadata": { "name": "shop", "namespace": "apps", "uid": "a", "generation": 1 },
            "spec": { "interval": "1m" },
        });
        change(&mut object);
        wishes(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn wishes_are_the_spec_and_the_annotations_of_an_object() {
        let same = fingerprint(|_| {});
        for (pointer, value, is_same) in [
            ("/metadata/resourceVersion", json!("7"), true),
            ("/metadata/labels", json!({ "team": "a" }), true),
            ("/status", json!({ "lastAttemptedRevision": "x" }), true),
            ("/metadata/generation", json!(2), false),
            ("/metadata/uid", json!("b"), false),
            (
                "/metadata/annotations",
                json!({ "reconcile.fluxcd.io/requestedAt": "now" }),
                false,
            ),
        ] {
            let changed = fingerprint(|object| {
                let (parent, name) = pointer.rsplit_once('/').unwrap();
                object.pointer_mut(parent).unwrap()[name] = value;
            });
            assert_eq!(changed == same, is_same, "{pointer}");
        }
    }
}
