//! Runs the commands that were decided, and notes their results in the status.

use std::time::Duration;

use api::{
    Fault, Reason,
    kluctl::gitops::{KluctlDeployment, RequestKind, TargetKey},
};
use deployer::key;
use results::deployed::gitops as inventory;
use runtime::{Pass, Severity, now};

use super::{
    build::Built,
    command_event::CommandEvent,
    commands::Commands,
    controller::Controller,
    pass::{Applied, Draft},
    plan::{self, Decision},
    prepare_error::PrepareError,
    requests, spec, status,
};

/// Time after which a deployment that wrote no progress before it started shows in the status.
const ANNOUNCE_AFTER: Duration = Duration::from_secs(2);

fn performing(object: &KluctlDeployment) -> String {
    format!("Performing kluctl {}", spec::deploy_mode(&object.spec))
}

impl Draft {
    /// Notes the target that is deployed to from now on, unless one-time overrides chose another one, and names the discriminator that it
    /// leaves: a removal deletes the objects with the one in the status.
    fn begin_target(&mut self, target: TargetKey) {
        let past = self.status.target_key.as_ref();
        if self.is_overridden() && past.is_some() {
            return;
        }
        let past = past.and_then(|past| past.discriminator.clone());
        if let Some(past) = past.filter(|past| target.discriminator.as_ref() != Some(past)) {
            self.events.push(CommandEvent {
                severity: Severity::Error,
                message: format!(
                    "objects with the previous discriminator {past} may be left: check and delete them with \"weir delete \
                     --discriminator {past}\""
                ),
            });
        }
        self.status.target_key = Some(target);
    }
}

impl Controller {
    /// Writes the target, and the kinds and namespaces of the objects, before the first object is applied, unless the stored status has
    /// them: should the process end in the middle of the deployment, a removal must know what to delete.
    pub(super) async fn begin_deployment(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        draft: &mut Draft,
        built: &Built,
    ) -> Result<(), PrepareError> {
        if !self.is_dry_run(&draft.object) {
            draft.begin_target(built.target_key());
            inventory::begin(&mut draft.status, &built.references());
        }
        let stored = pass.object.status.as_ref();
        if stored.is_some_and(|stored| inventory::records_as_much(stored, &draft.status)) {
            return Ok(());
        }
        let progress = performing(&draft.object);
        let written = draft.checkpoint(pass, &progress).await;
        written.map_err(PrepareError::Unrecorded)?;
        draft.is_announced = true;
        Ok(())
    }

    pub(super) async fn run(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        draft: &mut Draft,
        built: &Built,
        decision: Decision,
    ) -> Applied {
        let mut commands = Commands {
            controller: self,
            pass,
            object: &draft.object,
            built,
            key: key(pass.object),
            status: std::mem::take(&mut draft.status),
            events: std::mem::take(&mut draft.events),
            failure: None,
            after_deployment: None,
            unpruned: false,
            deploy_failed: false,
            validated: false,
        };
        let applied = match decision {
            Decision::Reconcile(due) => {
                let is_request = draft.requested.is_some();
                commands.reconcile(due, draft.is_announced, is_request).await
            }
            Decision::Requested(kind) => commands.requested(kind, draft.is_overridden()).await,
        };
        let Commands { status, events, .. } = commands;
        (draft.status, draft.events) = (status, events);
        applied
    }
}

impl Commands<'_, '_> {
    async fn requested(&mut self, kind: RequestKind, is_overridden: bool) -> Applied {
        let replaces_result = matches!(kind, RequestKind::Deploy | RequestKind::Prune);
        if replaces_result && is_overridden && plan::is_unpruned(self.pass.object) {
            // Its result takes the place of the one that says that orphans are left.
            self.status.last_objects_hash = None;
        }
        let done = match kind {
            RequestKind::Diff => self.diff().await,
            RequestKind::Prune => self.prune().await,
            RequestKind::Validate => self.validate(true).await,
            RequestKind::Deploy | RequestKind::Reconcile => self.deploy(true).await,
        };
        match done {
            Ok(done) => Applied {
                failure: self.failure.take(),
                result_id: done.stored.then_some(done.id),
                error: done.error,
            },
            Err(error) => {
                let text = error.to_string();
                Applied {
                    failure: Some((Reason::DeployFailed, text.clone())),
                    result_id: None,
                    error: Some(text),
                }
            }
        }
    }

    async fn reconcile(&mut self, due: plan::Due, is_announced: bool, is_request: bool) -> Applied {
        if due.unapproved {
            tracing::info!(hash = self.built.hash, "deployment is not approved");
        }
        let is_same = self.status.last_objects_hash.as_deref() == Some(self.built.hash.as_str());
        if !due.deploy && !is_same && !due.early {
            // The next drift detection compares all objects.
            self.controller.parts.states.take_seen(&self.key);
        }
        let states = &self.controller.parts.states;
        if due.deploy {
            states.begin_attempt(&self.key, due.wanted);
        }
        let done = if due.deploy && !is_announced {
            self.announced(due, is_same).await
        } else {
            self.due_commands(due, is_same).await
        };
        if !due.early && !self.deploy_failed {
            self.note_hash(due.deploy);
        }
        match done {
            Err(error) => self.note_failure(&error, due),
            Ok(()) if due.early => {
                let fault = states.attempt_fault(&self.key);
                self.failure = fault.map(|fault| (fault.reason, fault.message));
            }
            Ok(()) => {}
        }
        self.status.observed_generation = self.object.metadata.generation;
        let failure = self.failure.take();
        Applied {
            error: failure
                .as_ref()
                .filter(|_| is_request)
                .map(|(_, text)| text.clone()),
            failure,
            result_id: None,
        }
    }

    /// Notes an error that ended the commands. Objects that were deployed before it are not deployed again because of it.
    fn note_failure(&mut self, error: &engine::Error, due: plan::Due) {
        let reason = match error {
            engine::Error::Interrupted => Reason::Progressing,
            _ => Reason::DeployFailed,
        };
        self.failure = Some((reason, error.to_string()));
        if self.deploy_failed {
            self.status.last_objects_hash = None;
        } else if due.deploy && self.object.spec.validate && !self.validated {
            // The result of an earlier validation says nothing about them.
            self.status.last_validate_result = None;
        }
    }

    /// Deploys, and notes if that is to be repeated.
    async fn deploy_once(&mut self) -> Result<(), engine::Error> {
        let deployed = self.deploy(false).await;
        let states = &self.controller.parts.states;
        self.deploy_failed = deployed.is_err();
        match deployed {
            Err(engine::Error::Interrupted) => {
                states.forget_attempt(&self.key);
                Err(engine::Error::Interrupted)
            }
            Err(error) => {
                let fault = Fault::retry(Reason::DeployFailed, error.to_string());
                states.fail_attempt(&self.key, Some(fault));
                Err(error)
            }
            Ok(done) if self.unpruned || done.error.is_some() => {
                states.fail_attempt(&self.key, None);
                Ok(())
            }
            Ok(_) => {
                states.forget_attempt(&self.key);
                Ok(())
            }
        }
    }

    /// Runs the commands of a deployment. If they take longer than a moment, the status says that it is running.
    async fn announced(&mut self, due: plan::Due, is_same: bool) -> Result<(), engine::Error> {
        let pass = self.pass;
        let mut running = self.status.clone();
        status::set_progress(&mut running, pass.object, &performing(self.object), &now());
        let mut commands = std::pin::pin!(self.due_commands(due, is_same));
        if let Ok(done) = tokio::time::timeout(ANNOUNCE_AFTER, &mut commands).await {
            return done;
        }
        // A failed write is in the log, and the pass writes its status at its end.
        let (done, _) = futures::join!(commands, pass.checkpoint(&running));
        done
    }

    async fn due_commands(&mut self, due: plan::Due, is_same: bool) -> Result<(), engine::Error> {
        if due.deploy {
            self.deploy_once().await?;
        }
        if !self.object.spec.validate {
            self.status.last_validate_result = None;
        } else if due.validate {
            self.validate(false).await?;
            self.validated = true;
        }
        self.detect_drift(due.deploy || !is_same && !due.early).await
    }

    /// Notes the hash of the objects, and the approved one, unless one-time overrides have their part in it.
    fn note_hash(&mut self, deployed: bool) {
        let is_overridden = requests::changes_deployment(self.pass.object, self.object);
        let end = plan::FullEnd {
            is_overridden,
            deployed,
            is_new_generation: self.status.observed_generation != self.object.metadata.generation,
            unpruned: self.unpruned,
        };
        let past = self.status.last_objects_hash.take();
        self.status.last_objects_hash = plan::noted_hash(past, &self.built.hash, end);
        if !is_overridden {
            let approved = &self.object.spec.manual_objects_hash;
            self.status.last_manual_objects_hash.clone_from(approved);
        }
    }
}
