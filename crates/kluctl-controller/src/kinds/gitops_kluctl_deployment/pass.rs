//! A pass: a request, or a full reconciliation. Its start, and the outcomes of its ends.

use std::{
    ops::ControlFlow,
    time::{Duration, Instant},
};

use api::{
    Fault, Reason, Time,
    kluctl::gitops::{
        KluctlDeployment, KluctlDeploymentStatus, ManualRequest, ManualRequestResult, RequestKind,
    },
};
use deployer::{events::ready_message, idle::Ages, message, objects};
use remote::SshConnections;
use runtime::{Outcome, Pass, Requeue, client::describe, now};

use super::{
    command_event::CommandEvent,
    controller::Controller,
    events, plan,
    prepare_error::PrepareError,
    requests::{self, PendingRequest},
    spec, status,
};

/// Delay before the next pass after a request.
pub(super) const AT_ONCE: Duration = Duration::from_millis(1);
/// Delay before an object of `flux.kluctl.io` that does not give way yet is read again.
const LEGACY_DELAY: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Requested {
    pub(super) kind: RequestKind,
    pub(super) request: ManualRequest,
}

#[derive(Debug)]
pub struct Draft {
    /// The object in the cluster.
    pub(super) stored: KluctlDeployment,
    /// The object with the overrides of the request.
    pub(super) object: KluctlDeployment,
    pub(super) status: KluctlDeploymentStatus,
    /// The request; `None` in a reconciliation that nobody asked for.
    pub(super) requested: Option<Requested>,
    pub(super) events: Vec<CommandEvent>,
    /// True if the status says that the deployment is running.
    pub(super) is_announced: bool,
    /// Connections to SSH servers, until the project is rendered.
    pub(super) ssh: SshConnections,
    started: Instant,
}

#[derive(Debug, Default)]
pub struct Applied {
    /// The error that ended a command as a whole.
    pub(super) failure: Option<(Reason, String)>,
    /// Identity of the stored result of a requested command.
    pub(super) result_id: Option<String>,
    /// The error of a requested command.
    pub(super) error: Option<String>,
}

impl Draft {
    /// Returns the kind of the request; `None` in a reconciliation that nobody asked for.
    pub(super) fn kind(&self) -> Option<RequestKind> {
        self.requested.as_ref().map(|requested| requested.kind)
    }

    pub(super) fn is_full(&self) -> bool {
        self.kind().is_none_or(|kind| kind == RequestKind::Reconcile)
    }

    pub(super) fn is_overridden(&self) -> bool {
        let request = self.requested.as_ref();
        request.is_some_and(|requested| requested.request.overrides_patch.is_some())
    }

    pub(super) async fn checkpoint(
        &mut self,
        pass: &Pass<'_, KluctlDeployment>,
        progress: &str,
    ) -> Result<(), Fault> {
        status::set_progress(&mut self.status, pass.object, progress, &now());
        pass.checkpoint(&self.status).await
    }

    fn end_request(&mut self, result_id: Option<String>, error: Option<String>, now: &Time) {
        let Some(kind) = self.kind() else { return };
        if let Some(result) = kind.result(&mut self.status) {
            result.end_time = Some(now.clone());
            result.result_id = result_id;
            result.command_error = error.map(|error| message::limit(error, message::MESSAGE_BYTES));
        }
    }

    pub(super) fn done(
        mut self,
        applied: Applied,
        ages: Ages,
        now: &Time,
    ) -> Outcome<KluctlDeploymentStatus> {
        self.end_request(applied.result_id, applied.error, now);
        let is_full = self.is_full();
        if !is_full && self.stored.spec.suspend {
            // The next pass would do so, unless there is another request: Ready must not be of a generation that nobody observed.
            self.status.observed_generation = self.stored.metadata.generation;
        }
        let mut outcome = self.ended(applied.failure, ages, now);
        if !is_full {
            outcome.requeue = Requeue::After(AT_ONCE);
        }
        outcome
    }

    fn ended(
        mut self,
        failure: Option<(Reason, String)>,
        ages: Ages,
        now: &Time,
    ) -> Outcome<KluctlDeploymentStatus> {
        let reason = match failure {
            Some((reason, text)) => {
                status::set_ready(&mut self.status, &self.stored, reason, &text, now);
                reason
            }
            None => status::set_final(&mut self.status, &self.stored, now),
        };
        let delay = match reason {
            Reason::Progressing => AT_ONCE,
            _ => plan::next(&self.stored, &self.status, ages, now),
        };
        let succeeded = reason == Reason::ReconciliationSucceeded;
        let fault = (!succeeded).then(|| Fault::wait(delay, reason, ready_message(&self.status.conditions)));
        let requeue = if succeeded {
            Requeue::Interval(delay)
        } else {
            Requeue::After(delay)
        };
        self.outcome(
            Ending {
                reason,
                delay,
                fault,
                unprepared: None,
            },
            requeue,
            now,
        )
    }

    pub(super) fn failed(mut self, error: &PrepareError, now: &Time) -> Outcome<KluctlDeploymentStatus> {
        let retry = spec::retry_interval(&self.stored.spec);
        let fault = error.fault(retry);
        self.end_request(None, Some(error.to_string()), now);
        if error.is_superseded() {
            return Outcome {
                status: self.status,
                requeue: Requeue::After(AT_ONCE),
                events: Vec::new(),
                fault: Some(fault),
            };
        }
        if self.is_full() && !error.is_unrecorded() {
            status::observe_undeployed(&mut self.status, &self.object);
        }
        self.refused(error, fault, now)
    }

    fn refused(mut self, error: &PrepareError, fault: Fault, now: &Time) -> Outcome<KluctlDeploymentStatus> {
        let retry = spec::retry_interval(&self.stored.spec);
        status::set_prepare_error(&mut self.status, &self.stored, error, now);
        let requeue = Requeue::from(fault.class);
        let ending = Ending {
            reason: Reason::PrepareFailed,
            delay: retry,
            fault: Some(fault),
            unprepared: Some(error.to_string()),
        };
        self.outcome(ending, requeue, now)
    }

    fn outcome(mut self, ending: Ending, requeue: Requeue, now: &Time) -> Outcome<KluctlDeploymentStatus> {
        // Only requests wake a suspended object.
        let requeue = if self.stored.spec.suspend && !requests::is_pending(&self.stored) {
            Requeue::OnChange
        } else {
            requeue
        };
        let events = events::of_pass(&events::Ended {
            past: self.stored.status.as_ref(),
            status: &self.status,
            commands: &self.events,
            reason: ending.reason,
            unprepared: ending.unprepared.as_deref(),
            took: self.started.elapsed(),
            delay: ending.delay,
        });
        status::await_observation(&mut self.status, &self.stored, now);
        Outcome {
            status: self.status,
            requeue,
            events,
            fault: ending.fault,
        }
    }
}

struct Ending {
    reason: Reason,
    delay: Duration,
    fault: Option<Fault>,
    /// The error of the preparation, which the status may have in fewer words.
    unprepared: Option<String>,
}

impl Controller {
    /// Starts a pass: waits for an object of `flux.kluctl.io` with the same name to give way, and accepts a request.
    pub(super) async fn start_pass(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
    ) -> ControlFlow<Outcome<KluctlDeploymentStatus>, Draft> {
        let mut draft = Draft {
            stored: pass.object.clone(),
            object: pass.object.clone(),
            status: pass.object.status.clone().unwrap_or_default(),
            requested: None,
            events: Vec::new(),
            is_announced: false,
            ssh: SshConnections::default(),
            started: Instant::now(),
        };
        match self.awaits_legacy(pass).await {
            Ok(false) => {}
            Ok(true) => return ControlFlow::Break(waiting_for_legacy(draft)),
            Err(fault) => return rejected(draft, &PrepareError::Fault(fault)),
        }
        requests::end_interrupted(
            &mut draft.status,
            "the reconciliation of the request was interrupted",
            &now(),
        );
        match requests::pending(pass.object) {
            None => ControlFlow::Continue(draft),
            Some(request) => self.accept(pass, draft, request).await,
        }
    }

    /// Returns true if an object of the same name in `flux.kluctl.io` has not given way yet.
    async fn awaits_legacy(&self, pass: &Pass<'_, KluctlDeployment>) -> Result<bool, Fault> {
        if plan::has_project(pass.object) {
            return Ok(false);
        }
        let resource = kube::core::ApiResource::erase::<api::kluctl::KluctlDeployment>(&());
        let api = objects::api(self.client(), &resource, Some(pass.namespace));
        match objects::found(api.get(pass.name).await) {
            Ok(found) => Ok(found.is_some_and(|legacy| {
                let ready = legacy.data.pointer("/status/readyForMigration");
                ready.and_then(serde_json::Value::as_bool) != Some(true)
            })),
            Err(error) => Err(Fault::retry(
                Reason::Failed,
                format!(
                    "cannot read KluctlDeployment.{} of the same name: {}",
                    api::group::FLUX_KLUCTL,
                    describe(&error)
                ),
            )),
        }
    }

    /// Accepts a request: notes its start in the status, and removes its annotation.
    async fn accept(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        mut draft: Draft,
        request: PendingRequest,
    ) -> ControlFlow<Outcome<KluctlDeploymentStatus>, Draft> {
        let (object, kind) = (pass.object, request.kind);
        let (client, manager) = (self.client(), self.parts.ctx.name());
        if request.is_done {
            return match requests::remove(client, manager, object, &request).await {
                Ok(()) => ControlFlow::Break(self.answered(draft, pass)),
                Err(fault) => rejected(draft, &PrepareError::Fault(fault)),
            };
        }
        let wanted = match &request.request {
            Ok(wanted) => wanted.clone(),
            Err(error) => return rejected(draft, &PrepareError::Request(error.to_string())),
        };
        tracing::info!("Processing {}: {}", kind.annotation(), wanted.request_value);
        *kind.result(&mut draft.status) = Some(ManualRequestResult {
            request: wanted.clone(),
            start_time: now(),
            end_time: None,
            reconcile_id: pass.id.to_owned(),
            result_id: None,
            command_error: None,
        });
        let command = match kind {
            RequestKind::Deploy => spec::deploy_mode(&object.spec).to_owned(),
            other => other.name().to_owned(),
        };
        if let Err(fault) = draft.checkpoint(pass, &format!("Performing {command}")).await {
            return rejected(draft, &PrepareError::Fault(fault));
        }
        if let Err(fault) = requests::remove(client, manager, object, &request).await {
            return rejected(draft, &PrepareError::Fault(fault));
        }
        let overridden = requests::overridden(object, &wanted);
        draft.requested = Some(Requested {
            kind,
            request: wanted,
        });
        match overridden {
            Ok(overridden) => {
                draft.object = overridden;
                ControlFlow::Continue(draft)
            }
            Err(error) => {
                let error = PrepareError::Request(error.to_string());
                draft.end_request(None, Some(error.to_string()), &now());
                rejected(draft, &error)
            }
        }
    }

    fn answered(
        &self,
        mut draft: Draft,
        pass: &Pass<'_, KluctlDeployment>,
    ) -> Outcome<KluctlDeploymentStatus> {
        if pass.object.spec.suspend {
            draft.status.observed_generation = pass.object.metadata.generation;
        }
        let ages = self.parts.states.ages(&pass.key());
        let mut outcome = draft.ended(None, ages, &now());
        outcome.requeue = Requeue::After(AT_ONCE);
        outcome
    }
}

/// Returns the end of a pass that fails before it observes the generation.
fn rejected(draft: Draft, error: &PrepareError) -> ControlFlow<Outcome<KluctlDeploymentStatus>, Draft> {
    let fault = error.fault(spec::retry_interval(&draft.stored.spec));
    ControlFlow::Break(draft.refused(error, fault, &now()))
}

fn waiting_for_legacy(mut draft: Draft) -> Outcome<KluctlDeploymentStatus> {
    let text =
        "waiting for the KluctlDeployment of flux.kluctl.io with this name to set status.readyForMigration";
    let reason = Reason::WaitingForLegacyMigration;
    status::set_ready(&mut draft.status, &draft.stored, reason, text, &now());
    Outcome {
        status: draft.status,
        requeue: Requeue::After(LEGACY_DELAY),
        events: Vec::new(),
        fault: None,
    }
}
