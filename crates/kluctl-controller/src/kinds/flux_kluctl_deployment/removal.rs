//! Deletes the deployed objects when their KluctlDeployment is deleted, or keeps them.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    time::{Duration, Instant},
};

use api::{Fault, Reason, kluctl::KluctlDeployment};
use cluster::{Cluster, Gap};
use objects::ObjectRef;
use references::ClusterIdentity;
use runtime::{EventDraft, Pass, Severity, now};

use super::{
    Controller, begun,
    consumer::key,
    discriminators, message, observe,
    owners::{ForeignOwners, Refusal},
    plan::{self, KeepReason, Removal, RemovalFacts, Selector},
    sharers::Sharers,
    spec,
    status::since,
};
use crate::{
    common::{patience, working},
    metrics::{Command, CommandCounts},
};

/// Maximum number of objects that the message about those left behind names.
const LEFT_SHOWN: usize = 20;

/// A removal that failed.
struct RemovalFailure {
    fault: Fault,
    /// The objects that are left for all that is known, in words; empty if none is known.
    left: String,
    /// The objects that are left for lack of rights, in words; `None` if something else failed, too.
    denied: Option<String>,
}

impl From<Fault> for RemovalFailure {
    fn from(fault: Fault) -> Self {
        Self {
            fault,
            left: String::new(),
            denied: None,
        }
    }
}

impl RemovalFailure {
    /// Returns the fault of an attempt after which there is time for others.
    fn retried(&self, time: Duration) -> Fault {
        let message = format!(
            "cannot delete what was deployed: {}; tried again for {} s, then given up (suspend the object to give up now)",
            self.fault.message,
            time.as_secs()
        );
        Fault::retry(self.fault.reason, message)
    }

    /// Describes the end of all attempts.
    fn given_up(&self) -> String {
        let why = &self.fault.message;
        match self.left.as_str() {
            "" => format!("gave up deleting what was deployed, so it may still be there: {why}"),
            left => format!("gave up deleting what was deployed, so {left} may still be there: {why}"),
        }
    }
}

impl Controller {
    /// Deletes the deployed objects, or keeps them. Fails as long as another attempt may help.
    pub(super) async fn remove(&self, pass: &Pass<'_, KluctlDeployment>) -> Result<(), Fault> {
        let object = pass.object;
        // Within the time of the pass, so that what is said is why, and it ends when the patience does.
        let limit = spec::timeout(&object.spec).mul_f32(0.8);
        let failure = match tokio::time::timeout(limit, self.try_remove(pass)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(failure)) => failure,
            Err(_) => Fault::retry(Reason::Timeout, "the cluster did not answer in time").into(),
        };
        if let Some(left) = &failure.denied
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
        let deleted = object.metadata.deletion_timestamp.as_ref();
        let deleted_for = deleted.map_or(Duration::ZERO, |then| since(then, &now()));
        match patience::left(deleted_for, self.memory.removing_for(&key(object))) {
            Some(time) => Err(failure.retried(time)),
            None => {
                self.tell(object, Severity::Error, failure.given_up());
                Ok(())
            }
        }
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
            let labels = object.status.as_ref().map(|status| &status.common_labels);
            return self
                .remove_selected(pass, Selector::without_discriminator(labels))
                .await;
        }
        for discriminator in &discriminators {
            self.remove_selected(pass, Selector::Discriminator(discriminator))
                .await?;
        }
        Ok(())
    }

    async fn remove_selected(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        selector: Selector<'_>,
    ) -> Result<(), RemovalFailure> {
        let object = pass.object;
        let mut facts = RemovalFacts {
            suspended: object.spec.suspend,
            delete: object.spec.delete,
            prune: object.spec.prune,
            selector,
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
        let sharers = self.removal_sharers(object, selector, &target.identity).await?;
        facts.sharers = sharers.certain().map_or(&[][..], std::slice::from_ref);
        match (plan::removal(&facts), sharers.uncertain.first()) {
            (Removal::Keep(kept), _) => {
                self.tell_kept(object, &kept);
                Ok(())
            }
            (Removal::Delete, Some(other)) => {
                let what = selector.name();
                let why = format!("the cluster of {other}, which has the same {what}, is unknown");
                Err(Fault::retry(Reason::Failed, why).into())
            }
            (Removal::Delete, None) => {
                let cluster = working(&target.cluster, pass);
                let clusters = self.references.clusters();
                let owners = ForeignOwners::new(clusters, &cluster, &target.identity, sharers.foreign);
                self.delete(object, &cluster, selector, owners).await
            }
        }
    }

    /// Lists the other objects whose deployed objects a selector selects, too.
    async fn removal_sharers(
        &self,
        object: &KluctlDeployment,
        selector: Selector<'_>,
        own: &ClusterIdentity,
    ) -> Result<Sharers, Fault> {
        match selector {
            Selector::Nothing => Ok(Sharers::default()),
            Selector::Discriminator(value) => self.sharers(object, value, own).await,
            Selector::CommonLabels(labels) => {
                let (sharing, itself) = self.sharing(object);
                sharing.sharers_of_labels(&itself, labels, own).await
            }
        }
    }

    async fn delete(
        &self,
        object: &KluctlDeployment,
        cluster: &Cluster,
        selector: Selector<'_>,
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
        let deleted = match selector {
            Selector::Nothing => return Ok(()),
            Selector::Discriminator(value) => engine::delete(cluster, value, &options).await,
            Selector::CommonLabels(labels) => engine::delete_labelled(cluster, labels, &options).await,
        };
        match owners.refusal() {
            Some(Refusal::Shared(other)) => {
                self.tell_kept(object, &selector.shared(other));
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
        match result.failure().or_else(|| result.completeness.message()) {
            Some(why) => Err(RemovalFailure {
                fault: Fault::retry(Reason::Failed, why),
                left: shown(&left(&result, known, |_| false)),
                denied: left_for_lack_of_rights(&result, known, own.as_deref()),
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
            KeepReason::InvalidCommonLabels => (
                Severity::Error,
                "nothing is deleted: status.commonLabels are not valid labels".to_owned(),
            ),
            KeepReason::SharedCommonLabels(other) => (
                Severity::Error,
                format!("nothing is deleted: the labels of status.commonLabels are also used by {other}"),
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
    let text = shown(&left(result, known, goes));
    let whys: Vec<String> = gaps.iter().take(3).map(ToString::to_string).collect();
    match (text.is_empty(), whys.is_empty()) {
        (true, true) => Some("no objects outside of it".to_owned()),
        (true, false) => Some(format!("objects that could not be searched: {}", whys.join("; "))),
        (false, true) => Some(text),
        (false, false) => Some(format!("{text}: {}", whys.join("; "))),
    }
}

/// Returns the objects that a removal left for all that is known, as far as they don't go with their namespace: those that it could not
/// delete, and `known` ones of which it saw nothing. Pure.
fn left(
    result: &engine::CommandResult,
    known: &[ObjectRef],
    goes: impl Fn(Option<&str>) -> bool,
) -> BTreeSet<String> {
    let refused = result.errors.iter().filter_map(|error| error.reference.as_ref());
    refused
        .chain(unseen(result.completeness.gaps(), known))
        .filter(|one| !goes(one.namespace.as_deref()))
        .map(ToString::to_string)
        .collect()
}

/// Returns the known objects that a search with these gaps could not see.
fn unseen<'a>(gaps: &'a [Gap], known: &'a [ObjectRef]) -> impl Iterator<Item = &'a ObjectRef> {
    known.iter().filter(move |one| {
        let hides = |gap: &Gap| {
            gap.concerns(&one.group, &one.kind) && (gap.namespace.is_none() || gap.namespace == one.namespace)
        };
        !one.name.is_empty() && gaps.iter().any(hides)
    })
}

/// Returns the first names of a list, and the number of the others.
fn shown(names: &BTreeSet<String>) -> String {
    let first: Vec<&str> = names.iter().take(LEFT_SHOWN).map(String::as_str).collect();
    let mut text = first.join(", ");
    if names.len() > LEFT_SHOWN {
        let _ = write!(text, " and {} more", names.len() - LEFT_SHOWN);
    }
    text
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_removal_says_how_long_it_is_tried_and_what_may_be_left() {
        let incomplete = |left: &str| RemovalFailure {
            fault: Fault::retry(Reason::Failed, "some kinds cannot be listed"),
            left: left.to_owned(),
            denied: None,
        };
        assert_eq!(
            incomplete("").retried(Duration::from_secs(240)).message,
            "cannot delete what was deployed: some kinds cannot be listed; tried again for 240 s, then given up (suspend the \
             object to give up now)"
        );
        let names = |count: usize| (0..count).map(|i| format!("apps/Thing/{i:02}")).collect();
        assert_eq!(
            incomplete(&shown(&names(2))).given_up(),
            "gave up deleting what was deployed, so apps/Thing/00, apps/Thing/01 may still be there: some kinds cannot be listed"
        );
        assert_eq!(
            incomplete(&shown(&names(0))).given_up(),
            "gave up deleting what was deployed, so it may still be there: some kinds cannot be listed"
        );
        assert!(shown(&names(23)).ends_with("apps/Thing/19 and 3 more"));
    }

    #[test]
    fn known_objects_in_gaps_are_unseen() {
        let gap = |group: &str, kind: Option<&str>, namespace: Option<&str>| Gap {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.map(str::to_owned),
            namespace: namespace.map(str::to_owned),
            forbidden: false,
            reason: "unavailable".to_owned(),
        };
        let gaps = [gap("x.io", None, None), gap("", Some("Secret"), Some("apps"))];
        let object = |group: &str, kind: &str, namespace: &str, name: &str| ObjectRef {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
        };
        let known = [
            object("x.io", "Thing", "apps", "a"),
            object("", "Secret", "apps", "b"),
            object("", "Secret", "other", "c"),
            object("", "ConfigMap", "apps", "d"),
            // A kind and a namespace of an inventory.
            object("x.io", "Thing", "apps", ""),
        ];
        let names: Vec<&str> = unseen(&gaps, &known).map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
    }
}
