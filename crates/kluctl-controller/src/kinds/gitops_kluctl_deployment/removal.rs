//! Deletes the deployed objects when their KluctlDeployment is deleted, or keeps them.

use std::time::{Duration, Instant};

use api::{Fault, Reason, kluctl::gitops::KluctlDeployment};
use runtime::{EventDraft, Pass, Severity};

use super::{Controller, act::counted, guard::Guard, inventory, key, spec};
use crate::{
    common::{message, working},
    metrics::Command,
};

/// Time after which this process gives up deleting the deployed objects, and removes the finalizer.
const GIVE_UP_AFTER: Duration = Duration::from_secs(300);

impl Controller {
    /// Deletes the deployed objects, or keeps them. Fails as long as another attempt may help.
    pub(super) async fn remove(&self, pass: &Pass<'_, KluctlDeployment>) -> Result<(), Fault> {
        let object = pass.object;
        let target = object
            .status
            .as_ref()
            .and_then(|status| status.target_key.as_ref());
        let discriminator = target
            .and_then(|target| target.discriminator.as_deref())
            .unwrap_or_default();
        let kept = if !object.spec.delete {
            Some("what was deployed stays: spec.delete is off")
        } else if object.spec.suspend {
            Some("what was deployed stays: the object is suspended")
        } else if discriminator.is_empty() {
            Some("nothing is deleted: there is no discriminator")
        } else {
            None
        };
        if let Some(kept) = kept {
            self.tell(object, Severity::Trace, kept.to_owned());
            return Ok(());
        }
        // Within the time of the pass, so that what is said is why.
        let limit = spec::timeout(&object.spec).mul_f32(0.8);
        let why = match tokio::time::timeout(limit, self.delete(pass, discriminator)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(why)) => why,
            Err(_) => "the cluster did not answer in time".to_owned(),
        };
        let tried = self.memory.removing_for(&key(object));
        if tried < GIVE_UP_AFTER {
            let left = GIVE_UP_AFTER.saturating_sub(tried).as_secs();
            let message = format!(
                "cannot delete what was deployed: {why}; tried again for {left} s, then given up (suspend the object to give up \
                 now)"
            );
            return Err(Fault::retry(Reason::Failed, message));
        }
        let message = format!("gave up deleting what was deployed, so it may still be there: {why}");
        self.tell(object, Severity::Error, message);
        Ok(())
    }

    async fn delete(&self, pass: &Pass<'_, KluctlDeployment>, discriminator: &str) -> Result<(), String> {
        let (object, started) = (pass.object, Instant::now());
        let account = object.spec.service_account_name.as_deref();
        let target = self
            .clusters
            .of(pass.namespace, object.spec.kube_config.as_ref(), account)
            .await;
        let target = target.map_err(|error| error.to_string())?;
        let cluster = working(&target.cluster, pass);
        let guard = Guard::new(self, object, &cluster, &target.identity, discriminator);
        let previous = inventory::of(object.status.as_ref()).objects();
        let options = engine::RemoveOptions {
            previous: previous.as_deref(),
            dry_run: self.is_dry_run(object),
            inclusion: spec::inclusion(&object.spec),
            confirm: Some(&guard),
            ..engine::RemoveOptions::default()
        };
        let deleted = engine::delete(&cluster, discriminator, &options).await;
        if let Some(why) = guard.refusal() {
            self.tell(object, Severity::Error, why);
            return Ok(());
        }
        let result = deleted.map_err(|error| error.to_string())?;
        self.metrics
            .done(&key(object), Command::Delete, started.elapsed(), counted(&result));
        match result.failure().or_else(|| result.completeness.message()) {
            Some(why) => Err(why),
            None => {
                self.tell(object, Severity::Info, result.message());
                Ok(())
            }
        }
    }

    fn tell(&self, object: &KluctlDeployment, severity: Severity, text: String) {
        if severity == Severity::Error {
            tracing::warn!(message = %text, "removal");
        } else {
            tracing::info!(message = %text, "removal");
        }
        self.ctx.recorder().record(object, event(severity, text));
    }
}

fn event(severity: Severity, text: String) -> EventDraft {
    let reason = if severity == Severity::Error {
        Reason::Failed
    } else {
        Reason::Succeeded
    };
    EventDraft {
        severity,
        reason,
        message: message::limit(text, message::MESSAGE_BYTES),
        metadata: Default::default(),
    }
}

/// Returns the event of a deleted object that can't be decoded: without its spec nothing says what may be deleted, and as whom.
pub(super) fn undecodable(why: &Fault) -> EventDraft {
    let text = format!(
        "nothing is deleted, because the object cannot be read: {}; delete what it deployed by hand",
        why.message
    );
    event(Severity::Error, text)
}
