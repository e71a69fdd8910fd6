//! Deletes the deployed objects when their KluctlDeployment is deleted, or keeps them.

use std::time::{Duration, Instant};

use api::{Fault, Reason, kluctl::gitops::KluctlDeployment};
use engine::{CommandResult, ProjectKey};
use runtime::{EventDraft, Pass, Severity, now};

use super::{
    Controller,
    act::counted,
    guard::{Guard, Refusal},
    inventory, key, spec,
};
use crate::{
    common::{message, patience, working},
    metrics::Command,
};

/// Parts of the timeout of an object for deleting what was deployed, and for storing the result.
const SHARES: (f32, f32) = (0.8, 0.15);

/// A removal after which objects may be left.
struct Incomplete {
    why: String,
    /// The result, if objects were searched for.
    result: Option<Box<CommandResult>>,
}

impl From<String> for Incomplete {
    fn from(why: String) -> Self {
        Self { why, result: None }
    }
}

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
        let limit = spec::timeout(&object.spec).mul_f32(SHARES.0);
        let deleted = tokio::time::timeout(limit, self.delete(pass, discriminator)).await;
        let Incomplete { why, result } = match deleted {
            Ok(Ok(result)) => {
                self.store_removal(object, result.as_deref()).await;
                return Ok(());
            }
            Ok(Err(incomplete)) => incomplete,
            Err(_) => "the cluster did not answer in time".to_owned().into(),
        };
        let left = patience::left(deleted_for(object), self.memory.removing_for(&key(object)));
        // Attempts that delete nothing would replace the results of deployments.
        let result = result.filter(|result| left.is_none() || result.counts().deleted > 0);
        self.store_removal(object, result.as_deref()).await;
        if let Some(left) = left {
            let message = format!(
                "cannot delete what was deployed: {why}; tried again for {} s, then given up (suspend the object to give up \
                 now)",
                left.as_secs()
            );
            return Err(Fault::retry(Reason::Failed, message));
        }
        let message = format!("gave up deleting what was deployed, so it may still be there: {why}");
        self.tell(object, Severity::Error, message);
        Ok(())
    }

    /// Stores the result of a removal. If that fails, the log has the reason.
    async fn store_removal(&self, object: &KluctlDeployment, result: Option<&CommandResult>) {
        let Some(result) = result else {
            return;
        };
        let limit = spec::timeout(&object.spec).mul_f32(SHARES.1);
        let stored = tokio::time::timeout(limit, self.store_command(result, false)).await;
        if stored.is_err() {
            tracing::warn!("cannot store the result of the removal in time");
        }
    }

    /// Deletes what has the discriminator. Returns the result, unless other owners keep everything.
    async fn delete(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        discriminator: &str,
    ) -> Result<Option<Box<CommandResult>>, Incomplete> {
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
        match guard.refusal() {
            Some(refusal @ Refusal::Shared(_)) => {
                self.tell(object, Severity::Error, refusal.to_string());
                return Ok(None);
            }
            Some(Refusal::Transient(why)) => return Err(why.into()),
            None => {}
        }
        let result = deleted.map_err(|error| error.to_string())?;
        let result = Box::new(self.described(pass, result).await);
        self.metrics
            .done(&key(object), Command::Delete, started.elapsed(), counted(&result));
        match result.failure().or_else(|| result.completeness.message()) {
            Some(why) => Err(Incomplete {
                why,
                result: Some(result),
            }),
            None => {
                self.tell(object, Severity::Info, result.message());
                Ok(Some(result))
            }
        }
    }

    /// Adds to the result of a removal what it removed: nothing is fetched, so this is what the status has.
    async fn described(&self, pass: &Pass<'_, KluctlDeployment>, mut result: CommandResult) -> CommandResult {
        let status = pass.object.status.as_ref();
        let project = status.and_then(|status| status.project_key.clone());
        let project = project.map_or_else(ProjectKey::default, |key| ProjectKey {
            repo_key: key.repo_key.unwrap_or_default(),
            sub_dir: key.sub_dir.unwrap_or_default(),
        });
        result.asked.inclusion = spec::inclusion(&pass.object.spec);
        let mut origin = self.own_origin(pass, pass.object, project).await;
        if let Some(target) = status.and_then(|status| status.target_key.clone()) {
            origin.cluster_id = target.cluster_id;
            origin.target.name = target.target_name.unwrap_or_default();
        }
        result.described(origin)
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

/// Returns the time since an object was deleted.
fn deleted_for(object: &KluctlDeployment) -> Duration {
    let deleted = object.metadata.deletion_timestamp.as_ref();
    let since = deleted.map(|then| now().0.duration_since(then.0));
    since
        .and_then(|since| Duration::try_from(since).ok())
        .unwrap_or_default()
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
