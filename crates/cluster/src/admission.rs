//! Admission control: the webhooks and policies of a cluster that see changes before they are stored.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{StreamExt as _, stream};
use limits::TenantCache;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use yaml::Value;

use crate::{Cluster, Error, ResourceKind};

const GROUP: &str = "admissionregistration.k8s.io";
/// Maximum age of the snapshot that the kinds are read from: they come and go with versions of the API server.
const KINDS_AGE: Duration = Duration::from_secs(600);
/// Maximum age of rules whose changes are watched, in case the watch missed one, or the identity lost the right to list them.
const WATCHED_AGE: Duration = Duration::from_secs(600);
/// Time after their last use for which the changes of rules are watched.
const USED_FOR: Duration = Duration::from_secs(300);
/// Maximum number of identities whose rules are cached.
const IDENTITIES: usize = 1_000;
/// Maximum number of objects of one kind; with more, every update counts as seen.
const MAX_OBJECTS: usize = 5_000;

/// Updates that the webhooks and policies of a cluster see. Their conditions on users and single objects are ignored, so an
/// update that none of them sees may count as seen.
#[derive(Debug, Clone, Default)]
pub struct Admission {
    rules: Vec<Rule>,
    unclear: bool,
}

#[derive(Debug, Clone)]
struct Rule {
    groups: Vec<String>,
    resources: Vec<String>,
}

impl Rule {
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
    /// Returns true if a webhook or policy may see updates of objects of this kind, and change, refuse or warn about them.
    #[must_use]
    pub fn sees_updates(&self, kind: &ResourceKind) -> bool {
        self.unclear || self.rules.iter().any(|rule| rule.sees(kind))
    }

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
            // Webhooks may have no rules; other objects without rules are unknown.
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

struct ReadRules {
    read: Instant,
    /// State of the watch when the read started.
    epoch: Option<u64>,
    rules: Arc<Admission>,
}

type RulesOfIdentity = Arc<tokio::sync::Mutex<Option<ReadRules>>>;

/// The rules that each identity on a cluster read last. They are never shared: an identity may not learn objects that it may
/// not list.
pub(crate) struct KnownRules {
    identities: Mutex<TenantCache<Option<Arc<str>>, RulesOfIdentity>>,
    watch: AdmissionWatch,
}

impl Default for KnownRules {
    fn default() -> Self {
        Self {
            identities: Mutex::new(TenantCache::new(IDENTITIES)),
            watch: AdmissionWatch::default(),
        }
    }
}

impl KnownRules {
    fn of(&self, tenant: &str, identity: Option<&str>) -> RulesOfIdentity {
        let identity: Option<Arc<str>> = identity.map(Arc::from);
        self.identities.lock().get_or_default(tenant, identity)
    }
}

/// Connects a watch of webhooks and policies with the users of their rules. Clones share it.
///
/// The watch only reports that something changed, so that it needs no rights of the identities that read the rules.
#[derive(Debug, Clone, Default)]
pub struct AdmissionWatch(Arc<WatchState>);

#[derive(Debug, Default)]
struct WatchState {
    inner: Mutex<WatchFacts>,
    asked: Notify,
}

#[derive(Debug, Default)]
struct WatchFacts {
    used: Option<Instant>,
    changes: u64,
    is_complete: bool,
}

impl AdmissionWatch {
    /// Waits until rules are needed.
    pub async fn asked(&self) {
        self.0.asked.notified().await;
    }

    #[must_use]
    pub fn is_used(&self) -> bool {
        self.facts().used.is_some_and(|used| used.elapsed() < USED_FOR)
    }

    /// Reports that webhooks or policies changed, and that later changes will be reported: all rules are read again.
    pub fn changed(&self) {
        let mut facts = self.facts();
        facts.changes += 1;
        facts.is_complete = true;
    }

    /// Reports that changes are no longer watched: rules expire after [`crate::Settings::admission_age`].
    pub fn ended(&self) {
        self.facts().is_complete = false;
    }

    /// Records a use, and returns the number of changes; `None` without a watch.
    fn epoch(&self) -> Option<u64> {
        let mut facts = self.facts();
        facts.used = Some(Instant::now());
        self.0.asked.notify_one();
        facts.is_complete.then_some(facts.changes)
    }

    fn facts(&self) -> MutexGuard<'_, WatchFacts> {
        self.0.inner.lock()
    }
}

/// Returns true if rules that were read `age` ago, in the state `then` of the watch, are current in the state `now`. Without a
/// watch they expire after `unwatched`.
fn is_current(age: Duration, then: Option<u64>, now: Option<u64>, unwatched: Duration) -> bool {
    then == now && age < if now.is_some() { WATCHED_AGE } else { unwatched }
}

impl Cluster {
    /// Returns the rules of webhooks and policies, which are not older than [`crate::Settings::admission_age`], unless a watch
    /// ([`Cluster::admission_watch`]) reported no change. If the identity may not list them, every update counts as seen.
    ///
    /// # Errors
    /// Fails when discovery fails, or the operation is cancelled.
    pub async fn admission(&self) -> Result<Arc<Admission>, Error> {
        let known = self.known_rules().of(self.tenant(), self.impersonated());
        let mut known = self.locked(&known).await;
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

    #[must_use]
    pub fn admission_watch(&self) -> AdmissionWatch {
        self.known_rules().watch.clone()
    }

    /// Returns the kinds of webhook configurations and policies.
    ///
    /// # Errors
    /// Fails when discovery fails, or the operation is cancelled.
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
                let list = self.list(&kind, None, MAX_OBJECTS).await;
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
    fn rules_are_current_until_a_change_is_reported_or_without_a_watch_for_a_while() {
        let (unwatched, seconds) = (Duration::from_secs(30), Duration::from_secs);
        for (age, then, now, expected) in [
            (29, None, None, true),
            (30, None, None, false),
            (599, Some(1), Some(1), true),
            (600, Some(1), Some(1), false),
            (0, Some(1), Some(2), false),
            // The watch started, or broke off: a change before may have been missed.
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
