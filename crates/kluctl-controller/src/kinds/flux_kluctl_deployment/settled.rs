//! Passes that left nothing to do, and what they read: the artifact of a watched source.
//!
//! The last pass must have succeeded, on the cluster of the controller, with an index, without dependencies, and with a render that depends
//! on nothing but the artifact and objects with names. All others read everything at each interval.
//!
//! A pass that finds everything as it was writes the time of the deployment that was due, and nothing else, if deployments are noted for the
//! object.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use api::{
    DurationOrNever,
    kluctl::{KluctlDeployment, KluctlDeploymentStatus},
};
use engine::ReadObjects;
use references::SourceArtifact;
use runtime::{ObjectKey, Outcome, Requeue, WorkSlot, now};
use tree::Record;

use super::{
    Controller, consumer::key, plan::Period, prepare::Prepared, results, source::ProjectSource, spec,
};
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
    /// Time of the next deployment, if it is to be noted although nothing changed.
    pub(super) noted_at: Option<Instant>,
}

impl SettledRead {
    /// Returns true if a deployment is due that has to be noted.
    pub(super) fn is_due(&self) -> bool {
        self.noted_at.is_some_and(|at| at <= Instant::now())
    }
}

impl Controller {
    /// Remembers a pass with its outcome, if it left nothing to do.
    pub(super) fn settle(
        &self,
        object: &KluctlDeployment,
        artifact: &ProjectSource,
        prepared: &mut Prepared,
        outcome: &Outcome<KluctlDeploymentStatus>,
        since_compared: Duration,
    ) {
        let spec = &object.spec;
        let deployed = outcome.status.last_deploy_result.as_ref();
        let is_deployed = deployed.is_some_and(|last| last.objects_hash.as_deref() == Some(&*prepared.hash));
        let will_deploy = !is_deployed && spec::deploy_period(spec) != Period::Never;
        let is_done = outcome.fault.is_none() && matches!(outcome.requeue, Requeue::Interval(_));
        let is_watched = spec.kube_config.is_none() && spec.depends_on.is_empty();
        let record = prepared.record.take().map(Arc::new);
        let outside = prepared.outside.take();
        let (Some(artifact), Some(discriminator), Some(objects)) =
            (artifact.artifact(), prepared.discriminator(), outside)
        else {
            return;
        };
        if !is_done || !is_watched || will_deploy || self.is_dry_run(object) {
            return;
        }
        let read = SettledRead {
            interval: shortest_period(object),
            artifact: artifact.clone(),
            record,
            objects,
            wishes: wishes(object),
            timeout: spec::timeout(spec) / 3,
            noted_at: self.noted_at(object, since_compared),
        };
        self.settled
            .remember(key(object), discriminator, self.known_objects(), read);
    }

    /// Returns the time until the next pass over an object, if all is as its last pass left it.
    pub(super) async fn still_settled(&self, key: &ObjectKey, slot: &WorkSlot) -> Option<Duration> {
        let read = self.settled.unchanged(key, self.known_objects())?;
        if read.is_due() {
            return None;
        }
        let is_same = self.successors.contains(key) == Some(false)
            && self.references.still_offers(&read.artifact)
            && are_unchanged(&read.objects, slot, read.timeout).await;
        is_same.then_some(read.interval)
    }

    /// Returns true if deployments are noted in the status although they change nothing: where the spec asks for them at an interval of
    /// their own, and as long as others hold fields of deployed objects.
    pub(super) fn notes_deployments(&self, object: &KluctlDeployment) -> bool {
        matches!(object.spec.deploy_interval, Some(DurationOrNever::Every(_)))
            || !self.memory.held(&key(object)).is_empty()
    }

    /// Returns the time of the next deployment that has to be noted.
    fn noted_at(&self, object: &KluctlDeployment, since_compared: Duration) -> Option<Instant> {
        let period = match spec::deploy_period(&object.spec) {
            Period::Every(_) if !self.notes_deployments(object) => return None,
            Period::Every(period) => period,
            Period::Never => return None,
        };
        // As for other deployments, the last tenth of the period counts as passed.
        Some(Instant::now() + period.mul_f32(0.9).saturating_sub(since_compared))
    }

    /// Returns the outcome of a pass that only has to note a deployment, because everything is as the last one left it.
    pub(super) fn noted(
        &self,
        object: &KluctlDeployment,
        read: &Arc<SettledRead>,
    ) -> Option<Outcome<KluctlDeploymentStatus>> {
        if !read.is_due() || !self.references.still_offers(&read.artifact) {
            return None;
        }
        let mut status = object.status.clone()?;
        let last = status.last_deploy_result.as_mut()?;
        last.time = results::later(&last.time, &now());
        let next = SettledRead {
            noted_at: self.noted_at(object, Duration::ZERO),
            ..SettledRead::clone(read)
        };
        let requeue = Requeue::Interval(read.interval);
        self.settled.replace(&key(object), read, next);
        Some(Outcome {
            status,
            requeue,
            events: Vec::new(),
            fault: None,
        })
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
