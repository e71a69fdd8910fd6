//! The begin of a deployment: what the status must have before the first object is applied, and when it says that it is running.

use std::time::Duration;

use api::kluctl::gitops::{KluctlDeployment, TargetKey};
use runtime::{Severity, now};

use super::{
    inventory, plan,
    prepare::{PrepareError, Prepared},
    spec, status,
    work::{Told, Work},
};

/// Time after which a deployment that wrote no progress before it began shows in the status.
const ANNOUNCE_AFTER: Duration = Duration::from_secs(2);

impl Work<'_, '_> {
    /// Writes the target, and the kinds and namespaces of the objects, before the first object is applied, unless the stored status has
    /// them: should the process end in the middle of the deployment, a removal must know what to delete. Returns true if it wrote them.
    ///
    /// # Errors
    /// If the status cannot be written. Then nothing may be deployed.
    pub(super) async fn begin_deployment(
        &mut self,
        object: &KluctlDeployment,
        prepared: &Prepared,
        is_overridden: bool,
    ) -> Result<bool, PrepareError> {
        if !self.controller.is_dry_run(object) {
            self.begin_target(prepared.target_key(), is_overridden);
            inventory::begin(&mut self.status, &prepared.references());
        }
        let stored = self.pass.object.status.as_ref();
        if stored.is_some_and(|stored| inventory::records_as_much(stored, &self.status)) {
            return Ok(false);
        }
        let written = self.progress(&performing(object)).await;
        written.map(|()| true).map_err(PrepareError::Fault)
    }

    /// Notes the target that is deployed to from now on, unless one-time overrides chose another one, and names the discriminator that it
    /// leaves: a removal deletes what has the one in the status.
    fn begin_target(&mut self, target: TargetKey, is_overridden: bool) {
        let past = self.status.target_key.as_ref();
        if is_overridden && past.is_some() {
            return;
        }
        let past = past.and_then(|past| past.discriminator.clone());
        if let Some(past) = past.filter(|past| target.discriminator.as_ref() != Some(past)) {
            self.told.push(Told {
                severity: Severity::Error,
                message: format!(
                    "objects with the previous discriminator {past} may be left: check and delete them with \"weir delete \
                     --discriminator {past}\""
                ),
            });
        }
        self.status.target_key = Some(target);
    }

    /// Runs the commands of a deployment. If they take longer than a moment, the status says that it is running.
    pub(super) async fn announced_commands(
        &mut self,
        object: &KluctlDeployment,
        prepared: &Prepared,
        work: plan::Work,
        is_same: bool,
    ) -> Result<(), engine::Error> {
        let pass = self.pass;
        let mut running = self.status.clone();
        status::set_progress(&mut running, pass.object, &performing(object), &now());
        let mut commands = std::pin::pin!(self.commands(object, prepared, work, is_same));
        if let Ok(done) = tokio::time::timeout(ANNOUNCE_AFTER, &mut commands).await {
            return done;
        }
        // A failed write is in the log, and the pass writes its status at its end.
        let (done, _) = futures::join!(commands, pass.checkpoint(&running));
        done
    }
}

/// Describes a running deployment.
fn performing(object: &KluctlDeployment) -> String {
    format!("Performing kluctl {}", spec::deploy_mode(&object.spec))
}
