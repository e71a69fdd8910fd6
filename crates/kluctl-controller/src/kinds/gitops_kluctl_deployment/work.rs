//! A pass: a request, or a full reconciliation.

use std::time::{Duration, Instant};

use api::{
    Fault, Reason, condition_type, conditions,
    kluctl::gitops::{KluctlDeployment, KluctlDeploymentStatus, ManualRequestResult},
};
use engine::SshConnections;
use runtime::{Outcome, Pass, Requeue, Severity, now};

use super::{
    Controller,
    act::{Acting, Fresh},
    key, plan,
    prepare::{PrepareError, Prepared},
    requests::{self, PendingRequest, RequestKind},
    spec, status,
};
use crate::common::{memory::Ages, message};

/// Delay before the next pass after a request.
const AT_ONCE: Duration = Duration::from_millis(1);
/// Delay before the next look at an object of `flux.kluctl.io` that does not give way yet.
const LEGACY_DELAY: Duration = Duration::from_secs(5);
/// A command that ran.
pub(super) struct Told {
    pub(super) severity: Severity,
    pub(super) message: String,
}

/// The state of a pass.
pub(super) struct Work<'a, 'p> {
    pub(super) controller: &'a Controller,
    pub(super) pass: &'a Pass<'p, KluctlDeployment>,
    pub(super) status: KluctlDeploymentStatus,
    pub(super) told: Vec<Told>,
    /// The error that ended a command as a whole.
    pub(super) failure: Option<(Reason, String)>,
    /// The error of the preparation, which the status may have in fewer words.
    pub(super) unprepared: Option<String>,
    /// The state after the deployment of this pass.
    pub(super) fresh: Option<Fresh>,
    /// True if orphans may be left because a kind could not be listed, other than for missing rights.
    pub(super) unpruned: bool,
    /// Connections to SSH servers, until the project is rendered.
    ssh: SshConnections,
    pub(super) started: Instant,
}

impl<'a, 'p> Work<'a, 'p> {
    pub(super) fn new(
        controller: &'a Controller,
        pass: &'a Pass<'p, KluctlDeployment>,
        ssh: SshConnections,
    ) -> Self {
        Self {
            controller,
            pass,
            status: pass.object.status.clone().unwrap_or_default(),
            told: Vec::new(),
            failure: None,
            unprepared: None,
            fresh: None,
            unpruned: false,
            ssh,
            started: Instant::now(),
        }
    }

    /// Makes the pass, and returns its outcome.
    pub(super) async fn run(mut self) -> Outcome<KluctlDeploymentStatus> {
        match self.awaits_legacy().await {
            Ok(false) => {}
            Ok(true) => return self.waiting_for_legacy(),
            Err(fault) => return self.failed(&PrepareError::Fault(fault)),
        }
        requests::end_interrupted(
            &mut self.status,
            "the reconciliation of the request was interrupted",
            &now(),
        );
        let Some(request) = requests::pending(self.pass.object) else {
            let object = self.pass.object.clone();
            return match self.full(&object, false).await {
                Ok(prepared) => {
                    let (controller, outcome) = (self.controller, self.done());
                    controller.settle(&object, prepared, &outcome);
                    outcome
                }
                Err(error) => self.failed(&error),
            };
        };
        self.requested(request).await
    }

    /// Returns true if an object of the same name in `flux.kluctl.io` has not given way yet.
    async fn awaits_legacy(&self) -> Result<bool, Fault> {
        if plan::has_begun(self.pass.object) {
            return Ok(false);
        }
        let resource = kube::core::ApiResource::erase::<api::kluctl::KluctlDeployment>(&());
        let api = references::objects::api(self.controller.client(), &resource, Some(self.pass.namespace));
        match references::objects::found(api.get(self.pass.name).await) {
            Ok(found) => Ok(found.is_some_and(|legacy| {
                let ready = legacy.data.pointer("/status/readyForMigration");
                ready.and_then(serde_json::Value::as_bool) != Some(true)
            })),
            Err(error) => Err(Fault::retry(
                Reason::Failed,
                format!(
                    "cannot read KluctlDeployment.{} of the same name: {}",
                    api::group::FLUX_KLUCTL,
                    runtime::client::describe(&error)
                ),
            )),
        }
    }

    fn waiting_for_legacy(mut self) -> Outcome<KluctlDeploymentStatus> {
        let text = "waiting for the KluctlDeployment of flux.kluctl.io with this name to set status.readyForMigration";
        status::set_ready(
            &mut self.status,
            self.pass.object,
            Reason::WaitingForLegacyMigration,
            text,
            &now(),
        );
        Outcome {
            status: self.status,
            requeue: Requeue::After(LEGACY_DELAY),
            events: Vec::new(),
            fault: None,
        }
    }

    async fn requested(mut self, request: PendingRequest) -> Outcome<KluctlDeploymentStatus> {
        let (object, kind) = (self.pass.object, request.kind);
        let (client, manager) = (self.controller.client(), self.controller.ctx.name());
        if request.is_done {
            return match requests::remove(client, manager, object, &request).await {
                Ok(()) => self.after_request(),
                Err(fault) => self.failed(&PrepareError::Fault(fault)),
            };
        }
        let wanted = match &request.request {
            Ok(wanted) => wanted.clone(),
            Err(error) => return self.failed(&PrepareError::Request(error.to_string())),
        };
        tracing::info!("Processing {}: {}", kind.annotation(), wanted.request_value);
        *kind.result(&mut self.status) = Some(ManualRequestResult {
            request: wanted.clone(),
            start_time: now(),
            end_time: None,
            reconcile_id: self.pass.id.to_owned(),
            result_id: None,
            command_error: None,
        });
        let what = match kind {
            RequestKind::Deploy => spec::deploy_mode(&object.spec).to_owned(),
            other => other.name().to_owned(),
        };
        if let Err(fault) = self.progress(&format!("Performing {what}")).await {
            return self.failed(&PrepareError::Fault(fault));
        }
        if let Err(fault) = requests::remove(client, manager, object, &request).await {
            return self.failed(&PrepareError::Fault(fault));
        }
        let done = match requests::overridden(object, &wanted) {
            Ok(overridden) => self.perform(kind, &overridden, &wanted).await,
            Err(error) => Err(PrepareError::Request(error.to_string())),
        };
        let (result_id, error) = match &done {
            Ok((result_id, error)) => (result_id.clone(), error.clone()),
            Err(error) => (None, Some(error.to_string())),
        };
        if let Some(result) = kind.result(&mut self.status) {
            result.end_time = Some(now());
            result.result_id = result_id;
            result.command_error = error.map(|error| message::limit(error, message::MESSAGE_BYTES));
        }
        match (done, kind) {
            (Err(error), _) => self.failed(&error),
            (Ok(_), RequestKind::Reconcile) => self.done(),
            (Ok(_), _) => self.after_request(),
        }
    }

    /// Performs a request. Returns the identity of the result, and the error of the command.
    async fn perform(
        &mut self,
        kind: RequestKind,
        object: &KluctlDeployment,
        request: &api::kluctl::gitops::ManualRequest,
    ) -> Result<(Option<String>, Option<String>), PrepareError> {
        if kind == RequestKind::Reconcile {
            self.full(object, request.overrides_patch.is_some()).await?;
            let failure = self.failure.as_ref().map(|(_, text)| text.clone());
            return Ok((None, failure));
        }
        let mut prepared = self.prepare(object, request.overrides_patch.is_some()).await?;
        let patch = request.overrides_patch.clone();
        let patch = patch.map(|patch| yaml::Value::from_json(serde_json::Value::Object(patch)));
        prepared.origin.overrides_patch = patch;
        if kind == RequestKind::Deploy {
            self.begin_deployment(object, &prepared, request.overrides_patch.is_some())
                .await?;
        }
        let notes = matches!(kind, RequestKind::Deploy | RequestKind::Prune);
        if notes && request.overrides_patch.is_some() && plan::is_unpruned(self.pass.object) {
            // Its result takes the place of the one that says that orphans are left.
            self.forget_hash();
        }
        let acting = Acting::new(self, object, &prepared);
        let done = match kind {
            RequestKind::Diff => acting.diff().await,
            RequestKind::Prune => acting.prune().await,
            RequestKind::Validate => acting.validate(true).await,
            RequestKind::Deploy | RequestKind::Reconcile => acting.deploy(true).await,
        };
        Ok(match done {
            Ok(done) => (done.stored.then_some(done.id), done.error),
            Err(error) => {
                let text = error.to_string();
                self.failure = Some((Reason::DeployFailed, text.clone()));
                (None, Some(text))
            }
        })
    }

    /// Prepares the deployment of an object, which one-time overrides may have changed.
    async fn prepare(
        &mut self,
        object: &KluctlDeployment,
        is_overridden: bool,
    ) -> Result<Prepared, PrepareError> {
        let ssh = std::mem::take(&mut self.ssh);
        let prepared = tokio::select! {
            prepared = self.controller.prepare(self.pass, object, &mut self.status, ssh) => prepared?,
            () = self.pass.superseded.cancelled() => return Err(PrepareError::Fault(superseded())),
        };
        self.status.last_prepare_error = None;
        let target = prepared.target_key();
        if plan::shows_target(&self.status, &target, is_overridden) {
            self.status.target_key = Some(target);
        }
        Ok(prepared)
    }

    /// Makes a full reconciliation, and returns what it rendered. Errors of commands are in the status.
    async fn full(
        &mut self,
        object: &KluctlDeployment,
        is_overridden: bool,
    ) -> Result<Prepared, PrepareError> {
        let generation = object.metadata.generation;
        let prepared = match self.prepare(object, is_overridden).await {
            Ok(prepared) => prepared,
            // The next pass observes the generation.
            Err(error) if error.is_superseded() => return Err(error),
            Err(error) => {
                if self.status.observed_generation != generation {
                    self.forget_hash();
                }
                self.status.observed_generation = generation;
                return Err(error);
            }
        };
        let dry_run = self.controller.is_dry_run(object);
        let work = plan::work(object, &prepared.hash, dry_run, self.ages(), &now());
        tracing::debug!(?work, hash = prepared.hash, "planned");
        if work.unapproved {
            tracing::info!(hash = prepared.hash, "deployment is not approved");
        }
        let is_same = self.status.last_objects_hash.as_deref() == Some(prepared.hash.as_str());
        if !work.deploy && !is_same {
            // The next drift detection compares all objects.
            self.controller.memory.take_seen(&key(object));
        }
        let done = if work.deploy && !self.begin_deployment(object, &prepared, is_overridden).await? {
            self.announced_commands(object, &prepared, work, is_same).await
        } else {
            self.commands(object, &prepared, work, is_same).await
        };
        if let Err(error) = done {
            let text = error.to_string();
            let reason = match error {
                engine::Error::Interrupted => Reason::Progressing,
                _ => Reason::DeployFailed,
            };
            self.failure = Some((reason, text));
            self.forget_hash();
        } else {
            self.note_hash(object, &prepared.hash, work.deploy);
        }
        self.status.observed_generation = generation;
        Ok(prepared)
    }

    /// Runs the commands that are due.
    pub(super) async fn commands(
        &mut self,
        object: &KluctlDeployment,
        prepared: &Prepared,
        work: plan::Work,
        is_same: bool,
    ) -> Result<(), engine::Error> {
        if work.deploy {
            Acting::new(self, object, prepared).deploy(false).await?;
        }
        if !object.spec.validate {
            self.status.last_validate_result = None;
        } else if work.validate {
            Acting::new(self, object, prepared).validate(false).await?;
        }
        Acting::new(self, object, prepared)
            .detect_drift(work.deploy || !is_same)
            .await
    }

    /// Notes the hash of the objects, and what is approved, unless one-time overrides have their part in it.
    fn note_hash(&mut self, object: &KluctlDeployment, hash: &str, deployed: bool) {
        let is_overridden = requests::changes_deployment(self.pass.object, object);
        let end = plan::FullEnd {
            is_overridden,
            deployed,
            is_new_generation: self.status.observed_generation != object.metadata.generation,
            unpruned: self.unpruned,
        };
        let past = self.status.last_objects_hash.take();
        self.status.last_objects_hash = plan::noted_hash(past, hash, end);
        if !is_overridden {
            let approved = &object.spec.manual_objects_hash;
            self.status.last_manual_objects_hash.clone_from(approved);
        }
    }

    /// Forgets the hash of the objects, so that the next pass that renders them deploys: a change of the spec may not show in the
    /// objects, and is observed now.
    fn forget_hash(&mut self) {
        self.status.last_objects_hash = None;
    }

    fn ages(&self) -> Ages {
        self.controller.memory.ages(&key(self.pass.object))
    }

    /// Writes the progress of the work.
    pub(super) async fn progress(&mut self, what: &str) -> Result<(), Fault> {
        status::set_progress(&mut self.status, self.pass.object, what, &now());
        self.pass.checkpoint(&self.status).await
    }

    /// Returns the outcome after a request that was no reconciliation.
    fn after_request(mut self) -> Outcome<KluctlDeploymentStatus> {
        let object = self.pass.object;
        if object.spec.suspend {
            // The next pass would do so, unless there is another request: Ready must not be of a generation that nobody observed.
            self.status.observed_generation = object.metadata.generation;
        }
        let mut outcome = self.done();
        outcome.requeue = Requeue::After(AT_ONCE);
        outcome
    }

    /// Returns the outcome of a pass that rendered the project.
    fn done(mut self) -> Outcome<KluctlDeploymentStatus> {
        let object = self.pass.object;
        let reason = match self.failure.take() {
            Some((reason, text)) => {
                status::set_ready(&mut self.status, object, reason, &text, &now());
                reason
            }
            None => status::set_final(&mut self.status, object, &now()),
        };
        let delay = match reason {
            Reason::Progressing => AT_ONCE,
            _ => plan::next(object, &self.status, self.ages(), &now()),
        };
        let succeeded = reason == Reason::ReconciliationSucceeded;
        let fault = (!succeeded).then(|| Fault::wait(delay, reason, self.ready_message()));
        let requeue = if succeeded {
            Requeue::Interval(delay)
        } else {
            Requeue::After(delay)
        };
        self.outcome(reason, requeue, delay, fault)
    }

    /// Returns the outcome of a pass that could not prepare the deployment.
    fn failed(mut self, error: &PrepareError) -> Outcome<KluctlDeploymentStatus> {
        let object = self.pass.object;
        let retry = spec::retry_interval(&object.spec);
        let fault = error.fault(retry);
        if error.is_superseded() {
            return self.superseded_outcome(fault);
        }
        status::set_prepare_error(&mut self.status, object, error, &now());
        self.unprepared = Some(error.to_string());
        self.outcome(
            Reason::PrepareFailed,
            Requeue::from(fault.class),
            retry,
            Some(fault),
        )
    }

    fn superseded_outcome(self, fault: Fault) -> Outcome<KluctlDeploymentStatus> {
        Outcome {
            status: self.status,
            requeue: Requeue::After(AT_ONCE),
            events: Vec::new(),
            fault: Some(fault),
        }
    }

    pub(super) fn ready_message(&self) -> String {
        conditions::get(&self.status.conditions, condition_type::READY)
            .map_or_else(String::new, |ready| ready.message.clone())
    }

    fn outcome(
        self,
        reason: Reason,
        requeue: Requeue,
        delay: Duration,
        fault: Option<Fault>,
    ) -> Outcome<KluctlDeploymentStatus> {
        let object = self.pass.object;
        // Only requests wake what is suspended.
        let requeue = if object.spec.suspend && !requests::is_pending(object) {
            Requeue::OnChange
        } else {
            requeue
        };
        let events = self.events(reason, delay);
        Outcome {
            status: self.status,
            requeue,
            events,
            fault,
        }
    }
}

/// Returns the fault of a pass that ended for something newer.
fn superseded() -> Fault {
    Fault::wait(
        AT_ONCE,
        Reason::Progressing,
        "superseded by a change of the object: starting over",
    )
}
