//! Passes that find nothing changed: the artifact of a watched source is the input of its own.
//!
//! A pass is remembered if it succeeded, on the cluster of the controller, with an index, without dependencies, and with a render that
//! depends on nothing but the artifact and objects with names. All others read everything at each interval. In a repository of many
//! projects, a commit changes the artifact of them all: if the new one answers the calls of the last render in the same way, nothing is
//! rendered; if its hashes of directories say so, it is not even downloaded.

use std::time::{Duration, Instant};

use api::{
    DurationOrNever, Time,
    kluctl::{KluctlDeployment, KluctlDeploymentStatus},
};
use deployer::{Inputs, NewRevision, SourceArtifact, key, schedule};
use runtime::{ObjectKey, Outcome, Pass, now};

use super::{build::Built, controller::Controller, plan::Period, report, source::ProjectSource, spec};
use crate::common::BuildReads;

#[derive(Debug, Clone)]
pub struct FluxInputs {
    artifact: SourceArtifact,
    /// Time of the next deployment, if it is recorded although nothing changed.
    recorded_at: Option<Instant>,
}

impl FluxInputs {
    fn is_due(&self) -> bool {
        self.recorded_at.is_some_and(|at| at <= Instant::now())
    }

    pub(super) fn is_idle(&self) -> bool {
        !self.is_due()
    }
}

impl Controller {
    pub(super) fn inputs_of(
        &self,
        object: &KluctlDeployment,
        source: &ProjectSource,
        mut built: Built,
        outcome: &Outcome<KluctlDeploymentStatus>,
    ) -> Option<Inputs<FluxInputs>> {
        let spec = &object.spec;
        let deployed = outcome.status.last_deploy_result.as_ref();
        let is_deployed = deployed.is_some_and(|last| last.objects_hash.as_deref() == Some(&*built.hash));
        let will_deploy = !is_deployed && spec::deploy_period(spec) != Period::Never;
        let is_watched = spec.kube_config.is_none() && spec.depends_on.is_empty();
        if !is_watched || will_deploy || self.is_dry_run(object) {
            return None;
        }
        let deployed_for = deployed.map(|last| schedule::since(last.time.0, &now()));
        let since_compared = self
            .parts
            .states
            .ages(&key(object))
            .since_compared
            .or(deployed_for);
        Some(Inputs {
            owner: built.discriminator()?.to_owned(),
            record: built.record.take().map(Into::into),
            objects: BuildReads::shared(built.outside.take()?),
            timeout: spec::timeout(spec) / 3,
            interval: shortest_period(object),
            own: FluxInputs {
                artifact: source.artifact()?.clone(),
                recorded_at: self.recorded_at(object, since_compared.unwrap_or_default()),
            },
        })
    }

    /// Returns true if deployments are recorded in the status although they change nothing: where the spec asks for them at an interval of
    /// their own, and as long as other managers own fields of deployed objects.
    pub(super) fn records_deployments(&self, object: &KluctlDeployment) -> bool {
        matches!(object.spec.deploy_interval, Some(DurationOrNever::Every(_)))
            || !self.parts.states.contested(&key(object)).is_empty()
    }

    /// Returns the time of the next deployment that has to be recorded.
    fn recorded_at(&self, object: &KluctlDeployment, since_compared: Duration) -> Option<Instant> {
        let period = match spec::deploy_period(&object.spec) {
            Period::Every(_) if !self.records_deployments(object) => return None,
            Period::Every(period) => period,
            Period::Never => return None,
        };
        Some(Instant::now() + schedule::due_age(period).saturating_sub(since_compared))
    }

    /// Returns true if the source still offers the artifact, and no successor took over, as far as watches know.
    pub(super) fn still_offers(&self, key: &ObjectKey, inputs: &FluxInputs) -> bool {
        self.successors.contains(key) == Some(false) && self.references.still_offers(&inputs.artifact)
    }

    /// Returns the status of a pass that only has to record a deployment, because everything is as the last one left it.
    pub(super) fn recorded(
        &self,
        object: &KluctlDeployment,
        inputs: &FluxInputs,
        now: &Time,
    ) -> Option<(KluctlDeploymentStatus, FluxInputs)> {
        if !inputs.is_due() || !self.still_offers(&key(object), inputs) {
            return None;
        }
        let mut status = object.status.clone()?;
        let last = status.last_deploy_result.as_mut()?;
        last.time = report::later(&last.time, now);
        let next = FluxInputs {
            artifact: inputs.artifact.clone(),
            recorded_at: self.recorded_at(object, Duration::ZERO),
        };
        Some((status, next))
    }

    /// Returns the new artifact of the source, if it has another revision. It is downloaded unless the hashes of its directories say that the
    /// render would read the same.
    pub(super) async fn newer_artifact(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        inputs: &Inputs<FluxInputs>,
    ) -> Option<NewRevision<FluxInputs>> {
        if self.successors.contains(&pass.key()) != Some(false) {
            return None;
        }
        let spec = &pass.object.spec;
        let attempted = pass.object.status.as_ref()?.last_attempted_revision.as_deref();
        let known = (inputs.record.as_deref()?, attempted);
        let newer =
            self.references
                .newer_artifact(pass, &inputs.own.artifact, known, spec::timeout(spec) / 3);
        let NewRevision { files, own: artifact } = newer.await?;
        let own = FluxInputs {
            artifact,
            recorded_at: inputs.own.recorded_at,
        };
        Some(NewRevision { files, own })
    }

    pub(super) fn attempted(status: KluctlDeploymentStatus, inputs: &FluxInputs) -> KluctlDeploymentStatus {
        KluctlDeploymentStatus {
            last_attempted_revision: Some(inputs.artifact.revision().to_owned()),
            ..status
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
