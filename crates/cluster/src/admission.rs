//! Admission control: the webhooks and policies of a cluster that see changes before they are stored.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use futures::{StreamExt as _, stream};
use tokio::sync::Notify;
use yaml::Value;

use crate::{Cluster, Error, ResourceKind};

/// The API group of webhook configurations and policies.
const GROUP: &str = "admissionregistration.k8s.io";
/// Maximum age of the snapshot that the kinds are read from: they come and go with versions of the API server.
const KINDS_AGE: Duration = Duration::from_secs(600);
/// Maximum age of rules whose changes are watched, in case the watch missed one, or the identity lost the right to list them.
const WATCHED_AGE: Duration = Duration::from_secs(600);
/// Time after their last use for which the changes of rules are watched.
const USED_FOR: Duration = Duration::from_secs(300);
/// Maximum number of identities whose rules are kept.
const IDENTITIES: usize = 1_000;
/// Maximum number of objects of one kind; with more, every update counts as seen.
const MOST: usize = 5_000;

/// The updates that the webhooks and policies of a cluster see. Their conditions on users and single objects are
/// ignored, so an update that none of them sees may count as seen.
#[derive(Debug, Clone, Default)]
pub struct Admission {
    rules: Vec<Rule>,
    /// True if the rules of some webhooks or policies are unknown.
    unclear: bool,
}

/// The resources of one rule.
#[derive(Debug, Clone)]
struct Rule {
    groups: Vec<String>,
    resources: Vec<String>,
}

impl Rule {
    /// A resource that is named is meant in every group: it may be served in several.
    fn sees(&self, kind: &ResourceKind) -> bool {
        let everything = self
            .resources
            .iter()
            .any(|resource| matches!(resource.as_str(), "*" | "*/*"));
        let group = self
            .groups
            .iter()
            .any(|group| group == "*" || *group == kind.group);
        everything && group || self.resources.contains(&kind.plural)
    }
}

impl Admission {
    /// Returns true if a webhook or policy may see updates of objects of this kind, and change, refuse or warn
    /// about them.
    #[must_use]
    pub fn sees_updates(&self, kind: &ResourceKind) -> bool {
        self.unclear || self.rules.iter().any(|rule| rule.sees(kind))
    }

    /// Adds the rules of a webhook configuration or policy.
    fn add(&mut self, object: &Value) {
        let rules: Option<Vec<&Value>> = match object.get("webhooks") {
            Some(webhooks) => Some(
                items(Some(webhooks))
                    .flat_map(|webhook| items(webhook.get("rules")))
                    .collect(),
            ),
            None if object.pointer(&["spec", "matchConstraints"]).is_some() => {
                Some(items(object.pointer(&["spec", "matchConstraints", "resourceRules"])).collect())
            }
            // Webhooks may be without any; what else has no rules is not understood.
            None => object
                .get("kind")
                .and_then(Value::as_str)
                .is_some_and(|kind| kind.ends_with("WebhookConfiguration"))
                .then(Vec::new),
        };
        let Some(rules) = rules else {
            self.unclear = true;
            return;
        };
        for rule in rules {
            let texts = |field| -> Vec<String> {
                let texts = items(rule.get(field)).filter_map(Value::as_str);
                texts.map(str::to_owned).collect()
            };
            if texts("operations")
                .iter()
                .any(|operation| operation == "*" || operation == "UPDATE")
            {
                self.rules.push(Rule {
                    groups: texts("apiGroups"),
                    resources: texts("resources"),
                });
            }
        }
    }
}

fn items(list: Option<&Value>) -> impl Iterator<Item = &Value> {
    list.and_then(Value::as_seq).unwrap_or_default().iter()
}

/// The rules that an identity read.
struct ReadRules {
    read: Instant,
    /// The state of the watch when the read began.
    epoch: Option<u64>,
    rules: Arc<Admission>,
}

/// The rules that one identity read last.
type RulesOfIdentity = Arc<tokio::sync::Mutex<Option<ReadRules>>>;

/// The rules that each identity on a cluster read last. They are never shared: what one identity may not list is unknown to
/// it, whatever others may.
#[derive(Default)]
pub(crate) struct KnownRules {
    identities: Mutex<HashMap<Option<Arc<str>>, RulesOfIdentity>>,
    watch: AdmissionWatch,
}

impl KnownRules {
    fn of(&self, identity: Option<&str>) -> RulesOfIdentity {
        let identity: Option<Arc<str>> = identity.map(Arc::from);
        let mut known = self.identities.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= IDENTITIES && !known.contains_key(&identity) {
            known.clear();
        }
        Arc::clone(known.entry(identity).or_default())
    }
}

/// The news of a watch of webhooks and policies for those who use their rules, and its need to know of their use. Clones are the same.
///
/// The watch only says that something changed, so that whoever watches needs no rights of the identities that read the rules.
#[derive(Debug, Clone, Default)]
pub struct AdmissionWatch(Arc<WatchState>);

#[derive(Debug, Default)]
struct WatchState {
    inner: Mutex<WatchFacts>,
    asked: Notify,
}

#[derive(Debug, Default)]
struct WatchFacts {
    /// Time at which rules were asked for last.
    used: Option<Instant>,
    /// Number of changes that were told.
    changes: u64,
    /// True while every change is told.
    is_complete: bool,
}

impl AdmissionWatch {
    /// Waits until somebody asks for the rules.
    pub async fn asked(&self) {
        self.0.asked.notified().await;
    }

    /// Returns true if somebody asked for the rules in the last minutes.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.facts().used.is_some_and(|used| used.elapsed() < USED_FOR)
    }

    /// Tells that webhooks or policies changed, and that later changes will be told: all rules are read again.
    pub fn changed(&self) {
        let mut facts = self.facts();
        facts.changes += 1;
        facts.is_complete = true;
    }

    /// Tells that changes are no longer told: rules expire after [`crate::Settings::admission_age`].
    pub fn ended(&self) {
        self.facts().is_complete = false;
    }

    /// Notes a use, and returns the number of changes; `None` if nobody tells of them.
    fn epoch(&self) -> Option<u64> {
        let mut facts = self.facts();
        facts.used = Some(Instant::now());
        self.0.asked.notify_one();
        facts.is_complete.then_some(facts.changes)
    }

    fn facts(&self) -> MutexGuard<'_, WatchFacts> {
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if rules that were read `age` ago, in the state `then` of the watch, are current in the state `now`. Without a watch they
/// expire after `unwatched`.
fn is_current(age: Duration, then: Option<u64>, now: Option<u64>, unwatched: Duration) -> bool {
    then == now && age < if now.is_some() { WATCHED_AGE } else { unwatched }
}

impl Cluster {
    /// Returns the rules of webhooks and policies, which are not older than [`crate::Settings::admission_age`], unless a watch
    /// ([`Cluster::admission_watch`]) told of no change. If the identity may not list them, every update counts as seen.
    ///
    /// # Errors
    /// Fails when discovery fails, or the work is cancelled.
    pub async fn admission(&self) -> Result<Arc<Admission>, Error> {
        let known = self.known_rules().of(self.impersonated());
        let mut known = known.lock().await;
        let epoch = match self.admission_age() {
            Duration::ZERO => None,
            _ => self.known_rules().watch.epoch(),
        };
        if let Some(known) = known.as_ref()
            && is_current(known.read.elapsed(), known.epoch, epoch, self.admission_age())
        {
            return Ok(Arc::clone(&known.rules));
        }
        let read = Instant::now();
        let rules = Arc::new(self.read_admission().await?);
        *known = Some(ReadRules {
            read,
            epoch,
            rules: Arc::clone(&rules),
        });
        Ok(rules)
    }

    /// Returns where a watch tells of changes of the webhooks and policies of this cluster.
    #[must_use]
    pub fn admission_watch(&self) -> AdmissionWatch {
        self.known_rules().watch.clone()
    }

    /// Returns the kinds of webhook configurations and policies.
    ///
    /// # Errors
    /// Fails when discovery fails, or the work is cancelled.
    pub async fn admission_kinds(&self) -> Result<Vec<ResourceKind>, Error> {
        let snapshot = self.recent_snapshot(KINDS_AGE).await?;
        let kinds = snapshot
            .listable()
            .filter(|kind| kind.group == GROUP && !kind.kind.ends_with("Binding"));
        Ok(kinds.cloned().collect())
    }

    async fn read_admission(&self) -> Result<Admission, Error> {
        let kinds = self.admission_kinds().await?;
        let mut lists = stream::iter(kinds)
            .map(|kind| async move {
                let list = self.list(&kind, None, MOST).await;
                (kind, list)
            })
            .buffer_unordered(4);
        let mut admission = Admission::default();
        while let Some((_, list)) = lists.next().await {
            match list {
                Ok(list) => items(list.get("items")).for_each(|object| admission.add(object)),
                Err(Error::Cancelled) => return Err(Error::Cancelled),
                Err(error) if error.is_not_found() => {}
                Err(_) => admission.unclear = true,
            }
        }
        Ok(admission)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value as Json, json};

    fn kind(group: &str, plural: &str) -> ResourceKind {
        ResourceKind {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: "Thing".to_owned(),
            plural: plural.to_owned(),
            namespaced: true,
            listable: true,
            deletable: true,
            preferred: true,
            status: false,
        }
    }

    fn sees(object: Json, group: &str, plural: &str) -> bool {
        let mut admission = Admission::default();
        admission.add(&Value::from_json(object));
        admission.sees_updates(&kind(group, plural))
    }

    #[test]
    fn sees_updates_follows_operations_groups_and_resources() {
        for (operations, groups, resources, expected) in [
            (json!(["UPDATE"]), json!([""]), json!(["configmaps"]), true),
            (json!(["CREATE", "*"]), json!(["*"]), json!(["*"]), true),
            (json!(["UPDATE"]), json!(["x.io"]), json!(["configmaps"]), true),
            (json!(["UPDATE"]), json!([""]), json!(["*/*"]), true),
            (json!(["UPDATE"]), json!(["x.io"]), json!(["*"]), false),
            (json!(["CREATE", "DELETE"]), json!(["*"]), json!(["*"]), false),
            (
                json!(["UPDATE"]),
                json!([""]),
                json!(["pods", "*/scale", "configmaps/*"]),
                false,
            ),
        ] {
            let rule = json!({"operations": operations, "apiGroups": groups, "apiVersions": ["v1"], "resources": resources});
            for object in [
                json!({"kind": "MutatingWebhookConfiguration", "webhooks": [{"rules": []}, {"rules": [rule]}]}),
                json!({"kind": "ValidatingAdmissionPolicy", "spec": {"matchConstraints": {"resourceRules": [rule]}}}),
            ] {
                assert_eq!(sees(object.clone(), "", "configmaps"), expected, "{object}");
            }
        }
    }

    #[test]
    fn sees_updates_is_true_for_unknown_rules() {
        assert!(!sees(
            json!({"kind": "ValidatingWebhookConfiguration"}),
            "",
            "pods"
        ));
        assert!(sees(
            json!({"kind": "ValidatingAdmissionPolicy", "spec": {}}),
            "",
            "pods"
        ));
        assert!(sees(json!({"kind": "SomethingNew", "rules": []}), "", "pods"));
    }

    #[test]
    fn rules_are_current_until_a_change_is_told_or_without_a_watch_for_a_while() {
        let (unwatched, seconds) = (Duration::from_secs(30), Duration::from_secs);
        for (age, then, now, expected) in [
            (29, None, None, true),
            (30, None, None, false),
            (599, Some(1), Some(1), true),
            (600, Some(1), Some(1), false),
            (0, Some(1), Some(2), false),
            // The watch began, or broke off: a change before may have been missed.
            (0, None, Some(1), false),
            (0, Some(1), None, false),
        ] {
            let found = is_current(seconds(age), then, now, unwatched);
            assert_eq!(found, expected, "{age} s, {then:?}, {now:?}");
        }
        let watch = AdmissionWatch::default();
        assert!(!watch.is_used() && watch.epoch().is_none() && watch.is_used());
        watch.changed();
        let first = watch.epoch();
        watch.changed();
        assert!(first.is_some() && watch.epoch() != first);
        watch.ended();
        assert_eq!(watch.epoch(), None);
    }
}
