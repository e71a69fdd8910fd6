//! Deletes the deployed objects when their KluctlDeployment is deleted, or keeps them.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    time::{Duration, Instant},
};

use api::{Fault, Reason, kluctl::KluctlDeployment};
use objects::ObjectRef;
use runtime::{EventDraft, Pass, Severity};

use super::{
    Controller, begun,
    consumer::key,
    discriminators, message, observe,
    owners::{ForeignOwners, Refusal},
    plan::{self, KeepReason, Removal, RemovalFacts},
    spec,
};
use crate::{
    common::working,
    metrics::{Command, CommandCounts},
};

/// Time after which this process gives up deleting the deployed objects, and removes the finalizer.
const GIVE_UP_AFTER: Duration = Duration::from_secs(300);
/// Maximum number of objects that the message about those left behind names.
const LEFT_SHOWN: usize = 20;

/// A removal that failed.
struct RemovalFailure {
    fault: Fault,
    /// True if the search for objects could not see everything: it is repeated until it can, because objects that were not
    /// found would be left for good.
    incomplete: bool,
    /// The objects that are left for lack of rights, in words; `None` if something else failed, too.
    denied: Option<String>,
}

impl From<Fault> for RemovalFailure {
    fn from(fault: Fault) -> Self {
        Self {
            fault,
            incomplete: false,
            denied: None,
        }
    }
}

impl Controller {
    /// Deletes the deployed objects, or keeps them. Fails as long as another attempt may help.
    pub(super) async fn remove(&self, pass: &Pass<'_, KluctlDeployment>) -> Result<(), Fault> {
        let object = pass.object;
        // Within the time of the pass, so that what is said is why, and it ends when the patience does.
        let limit = spec::timeout(&object.spec).mul_f32(0.8);
        let RemovalFailure {
            fault,
            incomplete,
            denied,
        } = match tokio::time::timeout(limit, self.try_remove(pass)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(failure)) => failure,
            Err(_) => Fault::retry(Reason::Timeout, "the cluster did not answer in time").into(),
        };
        if let Some(left) = denied
            && observe::is_terminating(self.client(), pass.namespace).await
        {
            let message = format!(
                "gave up deleting what was deployed: namespace {} is being deleted, and the rights to delete the rest are \
                 gone with it; left are {left}",
                pass.namespace
            );
            self.tell(object, Severity::Error, message);
            return Ok(());
        }
        if incomplete {
            let message = format!(
                "cannot delete what was deployed: {} (suspend the object to give up now)",
                fault.message
            );
            return Err(Fault::retry(fault.reason, message));
        }
        let tried = self.memory.removing_for(&key(object));
        if tried < GIVE_UP_AFTER {
            let left = GIVE_UP_AFTER.saturating_sub(tried).as_secs();
            let message = format!(
                "cannot delete what was deployed: {}; tried again for {left} s, then given up (suspend the object to \
                 give up now)",
                fault.message
            );
            return Err(Fault::retry(fault.reason, message));
        }
        let message = format!(
            "gave up deleting what was deployed, so it may still be there: {}",
            fault.message
        );
        self.tell(object, Severity::Error, message);
        Ok(())
    }

    async fn try_remove(&self, pass: &Pass<'_, KluctlDeployment>) -> Result<(), RemovalFailure> {
        let object = pass.object;
        // What was deployed with an earlier discriminator goes, too.
        let mut discriminators = discriminators::previous(object.status.as_ref(), None);
        let current = object
            .status
            .as_ref()
            .and_then(|status| status.discriminator.clone());
        if let Some(current) = current.filter(|current| !discriminators.contains(current)) {
            discriminators.push(current);
        }
        if discriminators.is_empty() {
            return self.remove_one(pass, None).await;
        }
        for discriminator in &discriminators {
            self.remove_one(pass, Some(discriminator)).await?;
        }
        Ok(())
    }

    async fn remove_one(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        discriminator: Option<&str>,
    ) -> Result<(), RemovalFailure> {
        let object = pass.object;
        let mut facts = RemovalFacts {
            suspended: object.spec.suspend,
            delete: object.spec.delete,
            prune: object.spec.prune,
            discriminator,
            handed_over: false,
            sharers: &[],
        };
        // What needs no request decides first.
        if let Removal::Keep(kept) = plan::removal(&facts) {
            self.tell_kept(object, &kept);
            return Ok(());
        }
        facts.handed_over = observe::handed_over(self.client(), &key(object)).await?;
        if let Removal::Keep(kept) = plan::removal(&facts) {
            self.tell_kept(object, &kept);
            return Ok(());
        }
        let target = self.references.cluster(object).await?;
        let discriminator = discriminator.unwrap_or_default();
        let sharers = self.sharers(object, discriminator, &target.identity).await?;
        facts.sharers = &sharers.own;
        match plan::removal(&facts) {
            Removal::Keep(kept) => {
                self.tell_kept(object, &kept);
                Ok(())
            }
            Removal::Delete => {
                let cluster = working(&target.cluster, pass);
                let clusters = self.references.clusters();
                let owners = ForeignOwners::new(clusters, &cluster, &target.identity, sharers.foreign);
                self.delete(object, &cluster, discriminator, owners).await
            }
        }
    }

    async fn delete(
        &self,
        object: &KluctlDeployment,
        cluster: &cluster::Cluster,
        discriminator: &str,
        owners: ForeignOwners<'_>,
    ) -> Result<(), RemovalFailure> {
        let started = Instant::now();
        let has_result = object
            .status
            .as_ref()
            .is_some_and(|status| status.last_deploy_result.is_some());
        // Without either, a deployment of an earlier release may have been interrupted: nobody knows what it came to.
        let is_known = has_result || begun::recorded(object).is_some();
        let previous = is_known.then(|| begun::deployed_objects(object)).flatten();
        let options = engine::RemoveOptions {
            dry_run: self.is_dry_run(object),
            previous: previous.as_deref(),
            inclusion: spec::inclusion(&object.spec),
            confirm: Some(&owners),
            ..Default::default()
        };
        let deleted = engine::delete(cluster, discriminator, &options).await;
        match owners.refusal() {
            Some(Refusal::Shared(other)) => {
                self.tell_kept(object, &KeepReason::Shared(other));
                return Ok(());
            }
            Some(Refusal::Unknown(why)) => return Err(Fault::retry(Reason::Failed, why).into()),
            None => {}
        }
        let result = deleted.map_err(|error| Fault::retry(Reason::Failed, error.to_string()))?;
        let counts = result.counts();
        let counted = CommandCounts {
            deleted: counts.deleted,
            errors: counts.errors,
            warnings: counts.warnings,
            ..CommandCounts::default()
        };
        self.metrics
            .done(&key(object), Command::Delete, started.elapsed(), counted);
        let known = previous.as_deref().unwrap_or_default();
        let own = object.spec.kube_config.is_none().then(|| key(object).namespace);
        let denied = left_for_lack_of_rights(&result, known, own.as_deref());
        if let Some(failure) = result.failure() {
            return Err(RemovalFailure {
                denied,
                ..Fault::retry(Reason::Failed, failure).into()
            });
        }
        match result.completeness.message() {
            Some(message) => Err(RemovalFailure {
                fault: Fault::retry(Reason::Failed, message),
                incomplete: true,
                denied,
            }),
            None => {
                self.tell(object, Severity::Info, result.message());
                Ok(())
            }
        }
    }

    fn tell_kept(&self, object: &KluctlDeployment, kept: &KeepReason) {
        let (severity, message) = match kept {
            KeepReason::NotAsked => (
                Severity::Trace,
                "what was deployed stays: neither delete nor prune is on".to_owned(),
            ),
            KeepReason::Suspended => (
                Severity::Info,
                "what was deployed stays: the object is suspended".to_owned(),
            ),
            KeepReason::HandedOver => (
                Severity::Info,
                "what was deployed stays: gitops.kluctl.io took over".to_owned(),
            ),
            KeepReason::NoDiscriminator => (
                Severity::Info,
                "nothing is deleted: there is no discriminator".to_owned(),
            ),
            KeepReason::InvalidDiscriminator => (
                Severity::Error,
                "nothing is deleted: the discriminator is not a valid label value".to_owned(),
            ),
            KeepReason::Shared(other) => (
                Severity::Error,
                format!("nothing is deleted: the discriminator is also used by {other}"),
            ),
        };
        self.tell(object, severity, message);
    }

    fn tell(&self, object: &KluctlDeployment, severity: Severity, message: String) {
        if severity == Severity::Error {
            tracing::warn!(message = %message, "removal");
        } else {
            tracing::info!(message = %message, "removal");
        }
        let reason = if severity == Severity::Error {
            Reason::Failed
        } else {
            Reason::Succeeded
        };
        let message = message::limit(message, message::MESSAGE_BYTES);
        self.ctx.recorder().record(
            object,
            EventDraft {
                severity,
                reason,
                message,
                metadata: Default::default(),
            },
        );
    }
}

/// Describes what a removal left, if it left nothing but objects that it has no right to list or to delete. What is in the
/// object's `own` namespace goes with that and is left out. Pure.
fn left_for_lack_of_rights(
    result: &engine::CommandResult,
    known: &[ObjectRef],
    own: Option<&str>,
) -> Option<String> {
    let goes = |namespace: Option<&str>| namespace.is_some() && namespace == own;
    let gaps: Vec<_> = result
        .completeness
        .gaps()
        .iter()
        .filter(|gap| !goes(gap.namespace.as_deref()))
        .collect();
    let all_denied = gaps.iter().all(|gap| gap.forbidden) && result.errors.iter().all(|error| error.denied);
    if !all_denied || (result.completeness.is_complete() && result.errors.is_empty()) {
        return None;
    }
    let refused = result.errors.iter().filter_map(|error| error.reference.clone());
    let unseen = known.iter().filter(|one| {
        let in_gap = |gap: &&cluster::Gap| {
            gap.concerns(&one.group, &one.kind) && (gap.namespace.is_none() || gap.namespace == one.namespace)
        };
        !one.name.is_empty() && gaps.iter().any(in_gap)
    });
    let names: BTreeSet<String> = refused
        .chain(unseen.cloned())
        .filter(|one| !goes(one.namespace.as_deref()))
        .map(|one| one.to_string())
        .collect();
    let mut text = names
        .iter()
        .take(LEFT_SHOWN)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > LEFT_SHOWN {
        let _ = write!(text, " and {} more", names.len() - LEFT_SHOWN);
    }
    let whys: Vec<String> = gaps.iter().take(3).map(ToString::to_string).collect();
    match (text.is_empty(), whys.is_empty()) {
        (true, true) => Some("no objects outside of it".to_owned()),
        (true, false) => Some(format!("objects that could not be searched: {}", whys.join("; "))),
        (false, true) => Some(text),
        (false, false) => Some(format!("{text}: {}", whys.join("; "))),
    }
}

/// The event of a deleted object that can't be decoded: without its spec nothing says what may be deleted, and as whom.
pub(super) fn undecodable(why: &Fault) -> EventDraft {
    let message = format!(
        "nothing is deleted, because the object cannot be read: {}; delete what it deployed by hand",
        why.message
    );
    EventDraft {
        severity: Severity::Error,
        reason: Reason::Failed,
        message: message::limit(message, message::MESSAGE_BYTES),
        metadata: Default::default(),
    }
}
