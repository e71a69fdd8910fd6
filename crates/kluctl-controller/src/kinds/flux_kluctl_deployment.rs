//! KluctlDeployment of `flux.kluctl.io/v1alpha1`: a target of a kluctl project, deployed from the artifact of a source.
//!
//! The steps of [`deployer::DeployKind`], each in its module:
//!
//! - `spec` refuses fields that are invalid or not supported (pure);
//! - `consumer` names the references of an object, and `source` finds the artifact or commit;
//! - `build` connects to the cluster and renders, with the keys and credentials of `secrets`;
//! - `facts` and `plan` decide (pure);
//! - `act` deploys, prunes and validates;
//! - `report`, `status` and `events` make the status and the events (pure);
//! - `discriminators` has those that the object deployed with before (pure);
//! - `unchanged` has the inputs of passes that left nothing to do;
//! - `removal` deletes the deployed objects when the KluctlDeployment is deleted.

mod act;
mod build;
mod consumer;
mod controller;
mod discriminators;
mod events;
mod facts;
mod plan;
mod removal;
mod report;
mod secrets;
mod source;
mod spec;
mod status;
mod unchanged;

use std::{collections::BTreeMap, ops::ControlFlow};

use api::{
    Fault, Time, condition_type, conditions, finalizer,
    kluctl::{KluctlDeployment, KluctlDeploymentStatus},
};
use deployer::{
    Acted, Consumer as _, DeployKind, DeploySpec, Inputs, NewRevision, Parts, RemovalFailure, Start,
    UnchangedSource, idle::Ages, key,
};
use futures::stream::BoxStream;
use remote::SshConnections;
use results::deployed::flux as inventory;
use runtime::{Context, ObjectKey, Outcome, Pass, Requeue, Trigger, now};

use crate::{kinds::gitops_kluctl_deployment::SharedParts, metrics::SpecValues};
use act::CommandResults;
use build::Built;
use consumer::FluxKluctlDeployment;
pub use controller::Controller;
use plan::{Decision, Deploy, Period, Prune};
use report::{Failure, Report};
use source::ProjectSource;
pub use unchanged::FluxInputs;

/// Wakes objects when their sources and dependencies change.
#[must_use]
pub fn triggers(ctx: &Context, controller: &Controller) -> BoxStream<'static, Trigger> {
    deployer::triggers::<FluxKluctlDeployment>(ctx, controller.references.offered(), None)
}

#[derive(Debug)]
pub struct Draft {
    object: KluctlDeployment,
    /// Connections to SSH servers, until the project is rendered.
    ssh: SshConnections,
}

impl Controller {
    #[must_use]
    pub fn shared(&self) -> SharedParts {
        SharedParts {
            parts: self.parts.of_another_kind(),
            render_slots: self.render_slots.clone(),
            chart_cache: self.chart_cache.clone(),
        }
    }

    fn facts<'a>(
        &self,
        object: &'a KluctlDeployment,
        built: &'a Built,
        ages: Ages,
        now: &Time,
    ) -> plan::Facts<'a> {
        facts::facts(object, &built.hash, self.is_dry_run(object), ages, now)
    }

    fn spec_values(&self, object: &KluctlDeployment) -> SpecValues {
        let spec = &object.spec;
        let source = || FluxKluctlDeployment::source(object).map(|source| source.to_string());
        SpecValues {
            interval: match spec::deploy_period(spec) {
                Period::Every(interval) => Some(interval),
                Period::Never => None,
            },
            dry_run: self.is_dry_run(object),
            prune: spec.prune,
            delete: spec.delete.unwrap_or(spec.prune),
            images: spec.images.len(),
            source: match &spec.source {
                Some(source) => source.url.to_string(),
                None => source().unwrap_or_default(),
            },
            path: spec::path_text(spec).to_owned(),
            reference: spec.source.as_ref().map(source::ref_label).unwrap_or_default(),
        }
    }
}

fn left_alone(object: &KluctlDeployment) -> Outcome<KluctlDeploymentStatus> {
    Outcome {
        status: status::untouched(object),
        requeue: Requeue::Interval(spec::interval(&object.spec)),
        events: Vec::new(),
        fault: None,
    }
}

impl DeployKind for Controller {
    type Object = KluctlDeployment;
    type Status = KluctlDeploymentStatus;
    type Draft = Draft;
    type Source = ProjectSource;
    type Built = Built;
    type Decision = Decision;
    type Applied = CommandResults;
    type Failure = Fault;
    type Inputs = FluxInputs;
    type Removed = ();

    const FINALIZER: &'static str = finalizer::FLUX_KLUCTL;
    const METRICS_GROUP: Option<&'static str> = Some(api::group::FLUX_KLUCTL);

    fn parts(&self) -> &Parts {
        &self.parts
    }

    fn spec(object: &KluctlDeployment) -> DeploySpec {
        let spec = &object.spec;
        DeploySpec {
            interval: spec::interval(spec),
            retry: spec::retry_interval(spec),
            timeout: spec::timeout(spec),
            suspend: spec.suspend,
        }
    }

    fn validate(&self, object: &KluctlDeployment) -> Result<(), Fault> {
        spec::check(object)
    }

    fn progressing(&self, object: &KluctlDeployment, now: &Time) -> Option<KluctlDeploymentStatus> {
        status::progressing(object, now)
    }

    fn faulted(
        &self,
        object: &KluctlDeployment,
        fault: &Fault,
        now: &Time,
    ) -> Outcome<KluctlDeploymentStatus> {
        status::failed(object, &Failure::from(fault.clone()), now)
    }

    fn suspended_status(&self, object: &KluctlDeployment, _: &Time) -> Option<KluctlDeploymentStatus> {
        // An object that was suspended from its creation on has no status; it may be taken over all the same.
        Some(status::untouched(object))
    }

    fn event_metadata(status: &KluctlDeploymentStatus) -> BTreeMap<String, String> {
        events::current_metadata(status)
    }

    async fn start(&self, pass: &Pass<'_, KluctlDeployment>) -> Start<Self> {
        match self.is_handed_over(&pass.key()).await {
            Ok(false) => {}
            Ok(true) => {
                tracing::info!(
                    "a KluctlDeployment of gitops.kluctl.io with this name took over: nothing is done"
                );
                return ControlFlow::Break(left_alone(pass.object));
            }
            Err(fault) => {
                let failure = Failure::from(fault);
                return ControlFlow::Break(status::failed(pass.object, &failure, &now()));
            }
        }
        if let Err(fault) = deployer::check_expressions::<FluxKluctlDeployment>(pass).await {
            return ControlFlow::Break(status::failed(pass.object, &Failure::from(fault), &now()));
        }
        ControlFlow::Continue(Draft {
            object: pass.object.clone(),
            ssh: SshConnections::default(),
        })
    }

    async fn fetch(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        draft: &mut Draft,
    ) -> Result<ProjectSource, Fault> {
        let source = self.newest_source(pass.object, &draft.ssh, &pass.cancel);
        let source = pass.slot.waiting(source).await?;
        let checked = self.references.check_dependencies(pass.object, source.artifact());
        pass.slot.lending(checked).await?;
        Ok(source)
    }

    async fn build(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        draft: &mut Draft,
        source: &ProjectSource,
    ) -> Result<Built, Fault> {
        let ssh = std::mem::take(&mut draft.ssh);
        self.render(pass, source, ssh).await
    }

    async fn superseded(&self, pass: &Pass<'_, KluctlDeployment>, source: Option<&ProjectSource>) -> Fault {
        self.superseded_by(pass.object, source).await
    }

    fn plan(&self, draft: &Draft, built: &Built, ages: Ages, now: &Time) -> Decision {
        plan::decide(&self.facts(&draft.object, built, ages, now))
    }

    /// Records the discriminator, and the kinds and namespaces of a deployment that starts.
    async fn begin(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        draft: &mut Draft,
        built: &Built,
        decision: Decision,
    ) -> Result<(), Fault> {
        let key = pass.key();
        if decision.is_early
            && let Some(fault) = self.parts.states.attempt_fault(&key)
        {
            return Err(fault);
        }
        if matches!(decision.deploy, Deploy::Apply(_)) || decision.prune == Prune::Run {
            let wanted = facts::wanted(&draft.object, &built.hash, self.is_dry_run(&draft.object));
            self.parts.states.begin_attempt(&key, wanted);
        }
        let object = &mut draft.object;
        let discriminator = built.discriminator().filter(|text| !text.is_empty());
        if self.is_dry_run(object) || discriminator.is_none() {
            return Ok(());
        }
        let started = match decision.deploy {
            Deploy::Nothing => None,
            _ => inventory::unrecorded(object, &built.references(), &built.hash),
        };
        if started.is_none() && status::has_discriminator(object, discriminator) {
            return Ok(());
        }
        let started = started.or_else(|| inventory::in_progress(object));
        let target = built.raw_target(&built.previous, started.as_ref());
        let status = status::with_discriminator(object, discriminator.map(str::to_owned), target, &now());
        pass.checkpoint(&status).await?;
        object.status = Some(status);
        Ok(())
    }

    async fn act(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        _: &mut Draft,
        source: &ProjectSource,
        built: &Built,
        decision: Decision,
    ) -> Result<CommandResults, Fault> {
        let done = self.deploy(pass, source, built, decision).await;
        let (key, states) = (pass.key(), &self.parts.states);
        match &done {
            Err(fault) if fault.reason == api::Reason::Progressing => states.forget_attempt(&key),
            Err(fault) => drop(states.fail_attempt(&key, Some(fault.clone()))),
            Ok(done) if done.has_failed() => drop(states.fail_attempt(&key, None)),
            Ok(_) if decision.is_early => {}
            Ok(_) => states.forget_attempt(&key),
        }
        done
    }

    fn report(
        &self,
        draft: Draft,
        acted: Acted<'_, Self>,
        ages: Ages,
        now: &Time,
    ) -> Outcome<KluctlDeploymentStatus> {
        let (object, built, done) = (&draft.object, acted.built, acted.applied);
        // A deployment without a result stays recorded until one has all kinds and namespaces.
        let started =
            inventory::in_progress(object).filter(|_| done.inventory.is_none() || self.is_dry_run(object));
        let before = self.facts(object, built, ages, now);
        let report = Report {
            revision: acted.source.revision().to_owned(),
            hash: built.hash.clone(),
            involved: report::involved(&built.involved),
            discriminator: built.discriminator().map(str::to_owned),
            raw_target: built.raw_target(&done.previous, started.as_ref()),
            previous: done.previous,
            left: done.left,
            deploy: done.deploy,
            confirmed: done.confirmed,
            prune: done.prune,
            validate: done.validate,
            inventory: done.inventory,
            dry_run: self.is_dry_run(object),
            since_compared: ages.since_compared.unwrap_or(before.since_compared),
            since_validated: ages
                .since_validated
                .or(before.since_validated)
                .unwrap_or_default(),
            took: acted.took,
        };
        status::done(object, &report, now)
    }

    fn failed(
        &self,
        draft: Draft,
        source: Option<&ProjectSource>,
        fault: Fault,
        now: &Time,
    ) -> Outcome<KluctlDeploymentStatus> {
        let failure = match source {
            Some(source) => Failure::of(source.revision(), fault),
            None => Failure::from(fault),
        };
        status::failed(&draft.object, &failure, now)
    }

    fn inputs(
        &self,
        object: &KluctlDeployment,
        source: ProjectSource,
        built: Built,
        outcome: &Outcome<KluctlDeploymentStatus>,
    ) -> Option<Inputs<FluxInputs>> {
        self.inputs_of(object, &source, built, outcome)
    }

    async fn unchanged_source(
        &self,
        key: &ObjectKey,
        inputs: &Inputs<FluxInputs>,
    ) -> UnchangedSource<FluxInputs> {
        UnchangedSource::known(self.still_offers(key, &inputs.own))
    }

    fn time_left(inputs: &Inputs<FluxInputs>) -> Option<std::time::Duration> {
        inputs.own.is_idle().then_some(inputs.interval)
    }

    fn confirmed(
        &self,
        object: &KluctlDeployment,
        inputs: &Inputs<FluxInputs>,
        now: &Time,
    ) -> Option<(KluctlDeploymentStatus, FluxInputs)> {
        self.recorded(object, &inputs.own, now)
    }

    async fn new_revision(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        inputs: &Inputs<FluxInputs>,
    ) -> Option<NewRevision<FluxInputs>> {
        self.newer_artifact(pass, inputs).await
    }

    fn with_revision(&self, status: KluctlDeploymentStatus, inputs: &FluxInputs) -> KluctlDeploymentStatus {
        Self::attempted(status, inputs)
    }

    async fn remove(&self, pass: &Pass<'_, KluctlDeployment>) -> Result<Option<()>, RemovalFailure<()>> {
        self.remove_deployed(pass).await.map(|()| None)
    }

    fn observe_outcome(&self, object: &KluctlDeployment, outcome: &Outcome<KluctlDeploymentStatus>) {
        let key = key(object);
        self.metrics.wanted(&key, &self.spec_values(object));
        let is_ready = conditions::is_true(&outcome.status.conditions, condition_type::READY);
        self.metrics.ready(&key, is_ready);
    }

    fn forget(&self, key: &ObjectKey) {
        self.references.forget(key);
        self.metrics.forget(key);
    }
}
