//! KluctlDeployment of `gitops.kluctl.io`: a target of a kluctl project, which the controller fetches by itself.
//!
//! A pass handles one request, or makes a full reconciliation, in the steps of [`deployer::DeployKind`]:
//!
//! - `spec` refuses fields that are invalid or not supported, and has the values of the others (pure);
//! - `requests` reads requests by annotation and applies their overrides (pure); `pass` starts and ends a pass;
//! - `build` fetches the project, connects to the cluster, and renders, with the Secrets of `credentials`;
//! - `plan` decides (pure), `act` runs the `commands` and the detection of `drift`;
//! - `guard` is asked before objects are deleted;
//! - `status` has conditions and messages, `events` the events (pure);
//! - `stored_results` stores the results of commands;
//! - `unchanged` has the inputs of passes that left nothing to do;
//! - `removal` deletes the deployed objects when the KluctlDeployment is deleted.

mod act;
mod build;
mod command_event;
mod commands;
mod controller;
mod credentials;
mod drift;
mod events;
mod guard;
mod pass;
mod plan;
mod prepare_error;
mod removal;
mod requests;
mod spec;
mod status;
mod stored_results;
mod unchanged;

use std::{collections::BTreeMap, time::Duration};

use api::{
    Fault, Time, condition_type, conditions, finalizer,
    kluctl::gitops::{KluctlDeployment, KluctlDeploymentStatus, RequestKind},
};
use deployer::{
    Acted, DeployKind, DeploySpec, Inputs, NewRevision, Parts, RemovalFailure, Start, UnchangedSource,
    idle::Ages, key,
};
use results::CommandResult;
use runtime::{ObjectKey, Outcome, Pass, Requeue};

use build::{Built, FetchedProject};
pub use controller::{Controller, SharedParts};
use pass::{Applied, Draft};
use plan::Decision;
use prepare_error::PrepareError;
pub use unchanged::GitopsInputs;

impl DeployKind for Controller {
    type Object = KluctlDeployment;
    type Status = KluctlDeploymentStatus;
    type Draft = Draft;
    type Source = FetchedProject;
    type Built = Built;
    type Decision = Decision;
    type Applied = Applied;
    type Failure = PrepareError;
    type Inputs = GitopsInputs;
    type Removed = Box<CommandResult>;

    const FINALIZER: &'static str = finalizer::GITOPS_KLUCTL;
    const CONTROLLER: &'static str = "kluctldeployment-gitops";
    // kluctl's definition has no inventories: then anything may be deployed.
    const DROPS_UNKNOWN_STATUS: bool = true;

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

    fn redeploys_after(object: &KluctlDeployment) -> Duration {
        plan::redeploys_after(&object.spec)
    }

    fn is_suspended(object: &KluctlDeployment) -> bool {
        object.spec.suspend && !requests::is_pending(object)
    }

    fn validate(&self, _: &KluctlDeployment) -> Result<(), Fault> {
        // Requests of an object with an invalid spec are answered, too.
        Ok(())
    }

    fn progressing(&self, object: &KluctlDeployment, now: &Time) -> Option<KluctlDeploymentStatus> {
        Some(status::starting(object, now))
    }

    fn faulted(
        &self,
        object: &KluctlDeployment,
        fault: &Fault,
        now: &Time,
    ) -> Outcome<KluctlDeploymentStatus> {
        let mut status = object.status.clone().unwrap_or_default();
        requests::end_interrupted(&mut status, &fault.message, now);
        status::observe_undeployed(&mut status, object);
        status::set_ready(&mut status, object, fault.reason, &fault.message, now);
        Outcome {
            status,
            requeue: Requeue::from(fault.class),
            events: Vec::new(),
            fault: Some(fault.clone()),
        }
    }

    fn suspended_status(&self, object: &KluctlDeployment, now: &Time) -> Option<KluctlDeploymentStatus> {
        let mut status = object.status.clone().unwrap_or_default();
        status.observed_generation = object.metadata.generation;
        requests::end_interrupted(
            &mut status,
            "the reconciliation of the request was interrupted",
            now,
        );
        match status.last_prepare_error {
            None => drop(status::set_final(&mut status, object, now)),
            Some(_) => status::observe(&mut status, object),
        }
        Some(status)
    }

    fn event_metadata(status: &KluctlDeploymentStatus) -> BTreeMap<String, String> {
        events::current_metadata(status)
    }

    async fn start(&self, pass: &Pass<'_, KluctlDeployment>) -> Start<Self> {
        self.start_pass(pass).await
    }

    async fn fetch(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        draft: &mut Draft,
    ) -> Result<FetchedProject, PrepareError> {
        self.fetch_source(pass, draft).await
    }

    async fn build(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        draft: &mut Draft,
        source: &FetchedProject,
    ) -> Result<Built, PrepareError> {
        self.render(pass, draft, source).await
    }

    async fn superseded(&self, _: &Pass<'_, KluctlDeployment>, _: Option<&FetchedProject>) -> PrepareError {
        PrepareError::superseded()
    }

    fn plan(&self, draft: &Draft, built: &Built, ages: Ages, now: &Time) -> Decision {
        match draft.kind() {
            None | Some(RequestKind::Reconcile) => {
                let dry_run = self.is_dry_run(&draft.object);
                let due = match draft.kind() {
                    None => plan::due,
                    Some(_) => plan::requested,
                };
                Decision::Reconcile(due(&draft.object, &built.hash, dry_run, ages, now))
            }
            Some(kind) => Decision::Requested(kind),
        }
    }

    async fn begin(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        draft: &mut Draft,
        built: &Built,
        decision: Decision,
    ) -> Result<(), PrepareError> {
        if decision.deploys() {
            self.begin_deployment(pass, draft, built).await?;
        }
        Ok(())
    }

    async fn act(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        draft: &mut Draft,
        _: &FetchedProject,
        built: &Built,
        decision: Decision,
    ) -> Result<Applied, PrepareError> {
        Ok(self.run(pass, draft, built, decision).await)
    }

    fn report(
        &self,
        draft: Draft,
        acted: Acted<'_, Self>,
        ages: Ages,
        now: &Time,
    ) -> Outcome<KluctlDeploymentStatus> {
        draft.done(acted.applied, ages, now)
    }

    fn failed(
        &self,
        draft: Draft,
        _: Option<&FetchedProject>,
        failure: PrepareError,
        now: &Time,
    ) -> Outcome<KluctlDeploymentStatus> {
        draft.failed(&failure, now)
    }

    fn inputs(
        &self,
        object: &KluctlDeployment,
        _: FetchedProject,
        built: Built,
        outcome: &Outcome<KluctlDeploymentStatus>,
    ) -> Option<Inputs<GitopsInputs>> {
        self.inputs_of(object, built, outcome)
    }

    async fn unchanged_source(
        &self,
        _: &ObjectKey,
        inputs: &Inputs<GitopsInputs>,
    ) -> UnchangedSource<GitopsInputs> {
        self.compare_revision(inputs).await
    }

    fn time_left(inputs: &Inputs<GitopsInputs>) -> Option<Duration> {
        inputs.own.until_due(inputs.interval)
    }

    async fn new_revision(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        inputs: &Inputs<GitopsInputs>,
    ) -> Option<NewRevision<GitopsInputs>> {
        self.newer_revision(pass, inputs).await
    }

    fn with_revision(&self, status: KluctlDeploymentStatus, inputs: &GitopsInputs) -> KluctlDeploymentStatus {
        inputs.observed(status)
    }

    async fn remove(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
    ) -> Result<Option<Box<CommandResult>>, RemovalFailure<Box<CommandResult>>> {
        self.remove_deployed(pass).await
    }

    async fn store_removal(&self, object: &KluctlDeployment, removed: Box<CommandResult>, is_last: bool) {
        self.store_removed(object, &removed, is_last).await;
    }

    fn observe_outcome(&self, object: &KluctlDeployment, outcome: &Outcome<KluctlDeploymentStatus>) {
        let is_ready = conditions::is_true(&outcome.status.conditions, condition_type::READY);
        self.metrics.ready(&key(object), is_ready);
    }

    fn forget(&self, key: &ObjectKey) {
        self.remote_denials.forget(key);
        self.metrics.forget(key);
    }

    fn gone(&self, key: &ObjectKey) {
        self.gone.send(key);
    }
}
