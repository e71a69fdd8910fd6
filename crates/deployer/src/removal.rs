//! The removal of an object: its deployed objects are deleted, or left, and attempts that fail are repeated, of most kinds for a bounded time.

use std::{collections::BTreeSet, fmt::Write as _, time::Duration};

use api::{Fault, Reason};
use cluster::Gap;
use k8s_openapi::{
    api::core::v1::{Event, ObjectReference},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{Api, Client, Resource as _, api::PostParams};
use objects::ObjectRef;
use runtime::{EventDraft, Pass, Severity, now};

use crate::{DeployKind, KubeconfigError, parts::removal_event};

/// The part of the timeout of a pass in which objects are deleted: there must be time to report why that failed.
const DELETING: f32 = 0.8;
/// Maximum number of objects that the message about those left behind names.
const NAMED: usize = 20;

/// Time after the deletion of an object for which its removal is tried again.
const GIVE_UP_AFTER: Duration = Duration::from_secs(300);
/// Minimum time for which a process tries: the object may have been deleted long before it started.
const AT_LEAST: Duration = Duration::from_secs(60);

/// Returns the time that is left for further attempts; `None` if there is none. `deleted_for` is the time since the object was
/// deleted, which no restart begins again, `tried_for` the time since this process first tried.
pub fn time_left(deleted_for: Duration, tried_for: Duration) -> Option<Duration> {
    let by_clock = GIVE_UP_AFTER.saturating_sub(deleted_for);
    // The clock of the API server may be ahead of the clock of this process.
    let left = by_clock
        .max(AT_LEAST.saturating_sub(tried_for))
        .min(GIVE_UP_AFTER.saturating_sub(tried_for));
    Some(left).filter(|left| !left.is_zero())
}

/// The attempts after a failed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempts {
    Endless,
    For(Duration),
    Over,
}

impl Attempts {
    /// Returns the attempts that are left to a removal whose end has a time limit, or none.
    fn left(is_bounded: bool, deleted_for: Duration, tried_for: Duration) -> Self {
        match is_bounded {
            false => Self::Endless,
            true => time_left(deleted_for, tried_for).map_or(Self::Over, Self::For),
        }
    }
}

#[derive(Debug)]
pub struct RemovalFailure<R> {
    /// The reason of the fault, and in words.
    pub reason: Reason,
    pub why: String,
    /// The objects that are known to be left, in words; empty if none is known.
    pub left: String,
    /// The objects that are left for lack of rights, in words; `None` if something else failed, too.
    pub denied: Option<String>,
    /// True if the kubeconfig of the cluster doesn't exist, or the ConfigMap in its place.
    pub is_cluster_lost: bool,
    /// True if the objects of other owners are unknown: the removal is tried again until that is known, and never given up.
    pub waits_for_others: bool,
    /// The result, if objects were searched for.
    pub removed: Option<R>,
}

impl<R> From<Fault> for RemovalFailure<R> {
    fn from(fault: Fault) -> Self {
        Self {
            reason: fault.reason,
            why: fault.message,
            left: String::new(),
            denied: None,
            is_cluster_lost: false,
            waits_for_others: false,
            removed: None,
        }
    }
}

impl<R> RemovalFailure<R> {
    /// Returns the failure of a removal that could not find out the objects of other owners.
    #[must_use]
    pub fn of_unknown_owners(why: String) -> Self {
        Self {
            waits_for_others: true,
            ..Fault::retry(Reason::Failed, why).into()
        }
    }

    /// Returns the failure of a removal that has no connection to its cluster.
    #[must_use]
    pub fn of_cluster(error: &KubeconfigError) -> Self {
        Self {
            is_cluster_lost: error.is_not_found(),
            ..Fault::retry(error.reason(), error.to_string()).into()
        }
    }

    /// Returns the message of a removal that nothing completes once its namespace is being deleted; `None` if another attempt may help.
    fn ended_by_namespace(&self, namespace: &str) -> Option<String> {
        let failed = "gave up deleting what was deployed";
        if let Some(left) = &self.denied {
            return Some(format!(
                "{failed}: namespace {namespace} is being deleted, and the rights to delete the rest are gone with it; left are {left}"
            ));
        }
        let why = &self.why;
        self.is_cluster_lost.then(|| {
            format!("{failed}, so it may still be there: namespace {namespace} is being deleted, and the kubeconfig is gone with it: {why}")
        })
    }

    /// Returns true if the attempts end some time. `gives_up` is true for kinds whose removals always do.
    fn is_bounded(&self, gives_up: bool, is_terminating: bool) -> bool {
        !self.waits_for_others && (gives_up || self.is_cluster_lost || is_terminating)
    }

    /// Returns the fault of an attempt that others follow, for a `time` if that is bounded.
    fn retried(&self, time: Option<Duration>) -> Fault {
        let end = match time {
            None if self.waits_for_others => "tried again until that is known".to_owned(),
            None => "tried again until it succeeds".to_owned(),
            Some(time) => format!("tried again for {} s, then given up", time.as_secs()),
        };
        let why = &self.why;
        let message =
            format!("cannot delete what was deployed: {why}; {end} (suspend the object to give up now)");
        Fault::retry(self.reason, message)
    }

    fn given_up(&self) -> String {
        let why = &self.why;
        match self.left.as_str() {
            "" => format!("gave up deleting what was deployed, so it may still be there: {why}"),
            left => format!("gave up deleting what was deployed, so {left} may still be there: {why}"),
        }
    }
}

/// Removes the deployed objects of a deleted object, or leaves them. Fails as long as another attempt may help.
pub(crate) async fn remove<K: DeployKind>(kind: &K, pass: &Pass<'_, K::Object>) -> Result<(), Fault> {
    let (object, parts) = (pass.object, kind.parts());
    // Within the timeout of the pass, so that the reported reason is the real one.
    let limit = K::spec(object).timeout.mul_f32(DELETING);
    let failure = match tokio::time::timeout(limit, kind.remove(pass)).await {
        Ok(Ok(removed)) => {
            if let Some(removed) = removed {
                kind.store_removal(object, removed, true).await;
            }
            return Ok(());
        }
        Ok(Err(failure)) => failure,
        Err(_) => Fault::retry(Reason::Timeout, "the cluster did not answer in time").into(),
    };
    let ended = failure.ended_by_namespace(pass.namespace);
    let asks = ended.is_some() || !K::GIVES_UP_REMOVALS;
    let is_terminating = asks && is_terminating(parts.ctx.client(), pass.namespace).await;
    if let Some(message) = ended.filter(|_| is_terminating) {
        parts.report_removal(object, Severity::Error, message);
        return Ok(());
    }
    let deleted = object.meta().deletion_timestamp.as_ref();
    let deleted_for = deleted.and_then(|then| Duration::try_from(now().0.duration_since(then.0)).ok());
    let tried_for = parts.states.removing_for(&pass.key());
    let is_bounded = failure.is_bounded(K::GIVES_UP_REMOVALS, is_terminating);
    let left = Attempts::left(is_bounded, deleted_for.unwrap_or_default(), tried_for);
    let ended = match left {
        Attempts::Endless => Err(failure.retried(None)),
        Attempts::For(time) => Err(failure.retried(Some(time))),
        Attempts::Over => {
            parts.report_removal(object, Severity::Error, failure.given_up());
            Ok(())
        }
    };
    if let Some(removed) = failure.removed {
        let is_last = left == Attempts::Over;
        kind.store_removal(object, removed, is_last).await;
    }
    ended
}

/// Returns the event of a deleted object that can't be decoded: without its spec nobody knows which objects may be deleted, and as whom.
pub(crate) fn undecodable(why: &Fault) -> EventDraft {
    let message = format!(
        "nothing is deleted, because the object cannot be read: {}; delete what it deployed by hand",
        why.message
    );
    removal_event(Severity::Error, message)
}

/// Returns true if a namespace is being deleted. The API server says so when it refuses to create an object in it, so no right to read
/// namespaces is needed: a dry run creates an Event. False if it does not answer.
async fn is_terminating(client: &Client, namespace: &str) -> bool {
    let event = Event {
        metadata: ObjectMeta {
            generate_name: Some("terminating-".to_owned()),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            namespace: Some(namespace.to_owned()),
            ..ObjectReference::default()
        },
        ..Event::default()
    };
    let params = PostParams {
        dry_run: true,
        field_manager: None,
    };
    match Api::<Event>::namespaced(client.clone(), namespace)
        .create(&params, &event)
        .await
    {
        Err(kube::Error::Api(status)) => {
            let causes = status.details.as_ref().map_or(&[][..], |details| &details.causes);
            status.code == 404 || causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
        }
        Ok(_) | Err(_) => false,
    }
}

/// The end of an incomplete removal.
#[derive(Debug)]
pub struct Remains<'a> {
    /// The searches that were denied or failed.
    pub gaps: &'a [Gap],
    /// The objects that could not be deleted, or `None` for another error, each with true if rights are missing.
    pub errors: Vec<(Option<&'a ObjectRef>, bool)>,
    /// The objects that are known to have been deployed.
    pub known: &'a [ObjectRef],
}

impl Remains<'_> {
    /// Describes the objects that are known to be left; empty if none is known. Pure.
    #[must_use]
    pub fn left(&self) -> String {
        first_names(&self.names(|_| false))
    }

    /// Describes the rest, if nothing is left but objects that must not be listed or deleted for lack of rights. Objects in the
    /// object's `own` namespace goes with that and is left out. Pure.
    #[must_use]
    pub fn left_for_lack_of_rights(&self, own: Option<&str>) -> Option<String> {
        let goes = |namespace: Option<&str>| namespace.is_some() && namespace == own;
        let gaps: Vec<_> = self
            .gaps
            .iter()
            .filter(|gap| !goes(gap.namespace.as_deref()))
            .collect();
        let all_denied =
            gaps.iter().all(|gap| gap.forbidden) && self.errors.iter().all(|(_, denied)| *denied);
        if !all_denied || (self.gaps.is_empty() && self.errors.is_empty()) {
            return None;
        }
        let names = first_names(&self.names(goes));
        let whys: Vec<String> = gaps.iter().take(3).map(ToString::to_string).collect();
        match (names.is_empty(), whys.is_empty()) {
            (true, true) => Some("no objects outside of it".to_owned()),
            (true, false) => Some(format!("objects that could not be searched: {}", whys.join("; "))),
            (false, true) => Some(names),
            (false, false) => Some(format!("{names}: {}", whys.join("; "))),
        }
    }

    /// Returns the objects that could not be deleted, and the known ones that the search could not see, unless they go with their namespace.
    fn names(&self, goes: impl Fn(Option<&str>) -> bool) -> BTreeSet<String> {
        let refused = self.errors.iter().filter_map(|(reference, _)| *reference);
        refused
            .chain(self.unseen())
            .filter(|one| !goes(one.namespace.as_deref()))
            .map(ToString::to_string)
            .collect()
    }

    fn unseen(&self) -> impl Iterator<Item = &ObjectRef> {
        self.known.iter().filter(|one| {
            let hides = |gap: &Gap| {
                gap.concerns(&one.group, &one.kind)
                    && (gap.namespace.is_none() || gap.namespace == one.namespace)
            };
            !one.name.is_empty() && self.gaps.iter().any(hides)
        })
    }
}

/// Returns the first names of a list, and the number of the others.
fn first_names(names: &BTreeSet<String>) -> String {
    let first: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
    let mut text = first.join(", ");
    if names.len() > NAMED {
        let _ = write!(text, " and {} more", names.len() - NAMED);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_end_five_minutes_after_the_deletion_but_not_with_the_first_attempts() {
        let seconds = Duration::from_secs;
        for (title, deleted_for, tried_for, expected) in [
            ("at once", 0, 0, Some(300)),
            ("a while", 200, 200, Some(100)),
            ("the end", 300, 300, None),
            ("a restart in between", 290, 100, Some(10)),
            ("a restart near the end", 290, 0, Some(60)),
            ("deleted before the start", 7200, 0, Some(60)),
            ("deleted before the start, tried", 7200, 60, None),
            ("a clock that is behind", 0, 299, Some(1)),
            ("a clock that is behind, at the end", 0, 300, None),
        ] {
            let found = time_left(seconds(deleted_for), seconds(tried_for));
            assert_eq!(found, expected.map(seconds), "{title}");
        }
    }

    #[test]
    fn removal_without_a_limit_ends_only_with_the_kubeconfig_or_the_namespace() {
        let failure = |is_cluster_lost, waits_for_others| RemovalFailure::<()> {
            is_cluster_lost,
            waits_for_others,
            ..Fault::retry(Reason::PruneFailed, "refused").into()
        };
        for (gives_up, lost, waits, terminating, is_bounded) in [
            (true, false, false, false, true),
            (true, false, true, false, false),
            (false, false, false, false, false),
            (false, true, false, false, true),
            (false, false, false, true, true),
            (false, true, true, true, false),
        ] {
            let found = failure(lost, waits).is_bounded(gives_up, terminating);
            assert_eq!(found, is_bounded, "{gives_up} {lost} {waits} {terminating}");
        }
        let day = Duration::from_secs(86_400);
        assert_eq!(Attempts::left(false, day, day), Attempts::Endless);
        assert_eq!(Attempts::left(true, day, day), Attempts::Over);
        let at_once = Attempts::left(true, Duration::ZERO, Duration::ZERO);
        assert_eq!(at_once, Attempts::For(GIVE_UP_AFTER));
    }

    #[test]
    fn incomplete_removal_says_how_long_it_is_tried_and_what_may_be_left() {
        let incomplete = |left: &str| RemovalFailure::<()> {
            left: left.to_owned(),
            ..Fault::retry(Reason::Failed, "some kinds cannot be listed").into()
        };
        assert_eq!(
            incomplete("").retried(Some(Duration::from_secs(240))).message,
            "cannot delete what was deployed: some kinds cannot be listed; tried again for 240 s, then given up (suspend the \
             object to give up now)"
        );
        assert_eq!(
            incomplete("").retried(None).message,
            "cannot delete what was deployed: some kinds cannot be listed; tried again until it succeeds (suspend the object to \
             give up now)"
        );
        let names = |count: usize| (0..count).map(|i| format!("apps/Thing/{i:02}")).collect();
        assert_eq!(
            incomplete(&first_names(&names(2))).given_up(),
            "gave up deleting what was deployed, so apps/Thing/00, apps/Thing/01 may still be there: some kinds cannot be listed"
        );
        assert_eq!(
            incomplete(&first_names(&names(0))).given_up(),
            "gave up deleting what was deployed, so it may still be there: some kinds cannot be listed"
        );
        assert!(first_names(&names(23)).ends_with("apps/Thing/19 and 3 more"));
    }

    #[test]
    fn removal_ends_with_its_namespace_when_rights_or_kubeconfig_are_gone() {
        let ended =
            |error: &KubeconfigError| RemovalFailure::<()>::of_cluster(error).ended_by_namespace("apps");
        let (secret, why) = ("apps/target".to_owned(), "not found".to_owned());
        let lost = KubeconfigError::NotFound {
            secret: secret.clone(),
            why: why.clone(),
        };
        let message = ended(&lost).unwrap();
        let expected = "gave up deleting what was deployed, so it may still be there: namespace apps is being deleted, and the \
                        kubeconfig is gone with it: unable to read KubeConfig secret 'apps/target' error: not found";
        assert_eq!(message, expected);
        assert_eq!(ended(&KubeconfigError::Unreadable { secret, why }), None);
        let denied = RemovalFailure::<()> {
            denied: Some("other/ConfigMap/a".to_owned()),
            ..Fault::retry(Reason::Failed, "forbidden").into()
        };
        let message = denied.ended_by_namespace("apps").unwrap();
        assert!(message.ends_with("left are other/ConfigMap/a"), "{message}");
    }

    fn gap(group: &str, kind: Option<&str>, namespace: Option<&str>) -> Gap {
        Gap {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.map(str::to_owned),
            namespace: namespace.map(str::to_owned),
            forbidden: true,
            reason: "forbidden".to_owned(),
        }
    }

    fn object(group: &str, kind: &str, namespace: &str, name: &str) -> ObjectRef {
        ObjectRef {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
        }
    }

    #[test]
    fn known_objects_in_gaps_are_left() {
        let gaps = [gap("x.io", None, None), gap("", Some("Secret"), Some("apps"))];
        let known = [
            object("x.io", "Thing", "apps", "a"),
            object("", "Secret", "apps", "b"),
            object("", "Secret", "other", "c"),
            object("", "ConfigMap", "apps", "d"),
            // A kind and a namespace of an inventory.
            object("x.io", "Thing", "apps", ""),
        ];
        let remains = Remains {
            gaps: &gaps,
            errors: Vec::new(),
            known: &known,
        };
        assert_eq!(remains.left(), "apps/Secret/b, apps/Thing/a");
    }

    #[test]
    fn objects_are_left_for_lack_of_rights_only_if_nothing_else_failed() {
        let gaps = [gap("", Some("Secret"), Some("apps"))];
        let refused = object("", "ConfigMap", "other", "a");
        let left = |errors, own| {
            let remains = Remains {
                gaps: &gaps,
                errors,
                known: &[],
            };
            remains.left_for_lack_of_rights(own)
        };
        let of_namespace = left(Vec::new(), Some("apps"));
        assert_eq!(of_namespace.as_deref(), Some("no objects outside of it"));
        let denied = left(vec![(Some(&refused), true)], Some("apps"));
        assert_eq!(denied.as_deref(), Some("other/ConfigMap/a"));
        assert_eq!(left(vec![(Some(&refused), false)], Some("apps")), None);
        let searched = left(Vec::new(), None);
        assert!(searched.is_some_and(|text| text.starts_with("objects that could not be searched: ")));
    }
}
