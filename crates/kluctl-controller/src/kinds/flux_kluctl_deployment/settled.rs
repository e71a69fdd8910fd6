//! Passes that left nothing to do, and what they read: the artifact of a watched source.
//!
//! The last pass must have succeeded, on the cluster of the controller, with an index, without dependencies, and with a render that depends
//! on nothing but the artifact and objects with names. All others read everything at each interval.

use std::{sync::Arc, time::Duration};

use api::kluctl::{KluctlDeployment, KluctlDeploymentStatus};
use engine::ReadObjects;
use references::SourceArtifact;
use runtime::{ObjectKey, Outcome, Requeue, WorkSlot};
use tree::Record;

use super::{Controller, consumer::key, plan::Period, prepare::Prepared, source::ProjectSource, spec};
use crate::common::settled::{KnownObjects, are_unchanged, wishes};

/// The things that a pass read besides the deployed objects.
#[derive(Debug, Clone)]
pub(super) struct SettledRead {
    /// Time until the next pass.
    pub(super) interval: Duration,
    pub(super) artifact: SourceArtifact,
    /// The calls by which the render read the artifact.
    pub(super) record: Option<Arc<Record>>,
    /// The objects that the render read.
    pub(super) objects: ReadObjects,
    /// Fingerprint of what users wrote in the object.
    pub(super) wishes: u64,
    /// Timeout for reading the objects.
    pub(super) timeout: Duration,
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
        let is_watched = spec.kube_config.is_none() && spec.depends_on.is_empty();
        let record = prepared.record.take().map(Arc::new);
        let outside = prepared.outside.take();
        let (Some(artifact), Some(discriminator), Some(objects)) =
            (artifact.artifact(), prepared.discriminator(), outside)
        else {
            return;
        };
        if !is_done || !is_watched || self.is_dry_run(object) {
            return;
        }
        let read = SettledRead {
            interval: shortest_period(object),
            artifact: artifact.clone(),
            record,
            objects,
            wishes: wishes(object),
            timeout: spec::timeout(spec) / 3,
        };
        self.settled
            .remember(key(object), discriminator, self.known_objects(), read);
    }

    /// Returns the time until the next pass over an object, if all is as its last pass left it.
    pub(super) async fn still_settled(&self, key: &ObjectKey, slot: &WorkSlot) -> Option<Duration> {
        let read = self.settled.unchanged(key, self.known_objects())?;
        let is_same = self.successors.contains(key) == Some(false)
            && self.references.still_offers(&read.artifact)
            && are_unchanged(&read.objects, slot, read.timeout).await;
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
