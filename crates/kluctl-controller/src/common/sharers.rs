//! Other objects that deploy with the same discriminator to the same cluster: to each of them, the objects of the others
//! look like orphans.

use std::{collections::BTreeMap, fmt};

use api::{Fault, KubeConfig, Reason, group, kluctl::KluctlDeployment};
use deployer::{ClusterIdentity, Clusters, objects};
use kube::{
    Client, ResourceExt,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use runtime::{ObjectKey, client::describe};
use serde::Deserialize;
use serde_json::Value;

/// A KluctlDeployment whose status says that it deploys with a discriminator, read field by field from the untyped
/// object: one that does not decode must not hide the others, and its claim counts all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    /// True for an object of `gitops.kluctl.io`.
    is_successor: bool,
    pub(crate) key: ObjectKey,
    pub(crate) target: ClaimedTarget,
    /// The ServiceAccount that it names.
    pub(crate) service_account: Option<String>,
}

/// The cluster that a claiming object deploys to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ClaimedTarget {
    /// The cluster of the controller.
    Local,
    /// The cluster of a kubeconfig.
    Remote(KubeConfig),
    /// Unknown: `spec.kubeConfig` does not decode.
    Unknown,
}

impl ClaimedTarget {
    fn read(object: &DynamicObject) -> Self {
        let value = object.data.pointer("/spec/kubeConfig");
        match value.filter(|value| !value.is_null()) {
            None => Self::Local,
            Some(value) => KubeConfig::deserialize(value).map_or(Self::Unknown, Self::Remote),
        }
    }
}

impl Claim {
    /// Reads the claim of an object. Returns `None` if it has another discriminator, or is being removed together with
    /// everything that it deployed.
    fn read(object: &DynamicObject, discriminator: &str) -> Option<Self> {
        let noted = object
            .data
            .pointer("/status/discriminator")
            .and_then(Value::as_str);
        (noted == Some(discriminator) && !goes_with_everything(object)).then(|| Self::of(object, false))
    }

    /// Reads the claim of an object that was deployed with all of these labels, by a release that had no discriminator. There may be
    /// others, too.
    fn read_labelled(object: &DynamicObject, labels: &BTreeMap<String, String>) -> Option<Self> {
        let noted = object.data.pointer("/status/commonLabels")?.as_object()?;
        let has = |(name, value): (&String, &String)| noted.get(name).and_then(Value::as_str) == Some(value);
        (labels.iter().all(has) && !goes_with_everything(object)).then(|| Self::of(object, false))
    }

    /// Reads the claim of an object of `gitops.kluctl.io`.
    fn read_successor(object: &DynamicObject, discriminator: &str) -> Option<Self> {
        let noted = object.data.pointer("/status/targetKey/discriminator");
        let is_set = |pointer: &str| object.data.pointer(pointer).and_then(Value::as_bool) == Some(true);
        let is_deleted = object.metadata.deletion_timestamp.is_some();
        if is_deleted && is_set("/spec/delete") && !is_set("/spec/suspend") {
            return None;
        }
        (noted.and_then(Value::as_str) == Some(discriminator)).then(|| Self::of(object, true))
    }

    fn of(object: &DynamicObject, is_successor: bool) -> Self {
        let account = object.data.pointer("/spec/serviceAccountName");
        Self {
            is_successor,
            key: ObjectKey::new(object.namespace().unwrap_or_default(), object.name_any()),
            target: ClaimedTarget::read(object),
            service_account: account.and_then(Value::as_str).map(str::to_owned),
        }
    }
}

/// Returns true for an object of `flux.kluctl.io` that is being removed together with everything that it deployed.
fn goes_with_everything(object: &DynamicObject) -> bool {
    let flag = |pointer: &str| object.data.pointer(pointer).and_then(Value::as_bool);
    let is_set = |pointer: &str| flag(pointer).unwrap_or_default();
    let deletes = flag("/spec/delete").unwrap_or_else(|| is_set("/spec/prune"));
    object.metadata.deletion_timestamp.is_some() && deletes && !is_set("/spec/suspend")
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_successor {
            write!(f, "KluctlDeployment.{} {}", group::GITOPS_KLUCTL, self.key)
        } else {
            write!(f, "KluctlDeployment {}", self.key)
        }
    }
}

/// Other objects of both groups that deploy with the same discriminator.
#[derive(Debug, Default)]
pub(crate) struct Sharers {
    /// Owners of the same namespace that may deploy to the same cluster, as `KluctlDeployment apps/shop`: while there is one,
    /// nothing is deleted.
    pub(crate) own: Vec<String>,
    /// Owners in [`Self::own`] whose cluster is unknown: it may be another one.
    pub(crate) uncertain: Vec<String>,
    /// Owners of other namespaces: they count only for objects that they have rights to ([`super::owners`]).
    pub(crate) foreign: Vec<Claim>,
}

/// The object that asks for its sharers.
#[derive(Debug, Clone)]
pub(crate) struct Claimant {
    pub(crate) key: ObjectKey,
    /// True for an object of `gitops.kluctl.io`. The one of the same name in `flux.kluctl.io` gave way to it, so it shares nothing.
    pub(crate) is_successor: bool,
}

/// Finds the other objects that deploy with a discriminator.
pub(crate) struct Sharing<'a> {
    pub(crate) client: &'a Client,
    /// The namespace that is searched; all if absent.
    pub(crate) namespace: Option<&'a str>,
    pub(crate) clusters: &'a Clusters,
}

impl Sharing<'_> {
    /// Lists the other objects that deploy with this discriminator, which the API server selects. They are read live: the objects of another owner must
    /// not be deleted.
    pub(crate) async fn sharers(
        &self,
        itself: &Claimant,
        discriminator: &str,
        own: &ClusterIdentity,
    ) -> Result<Sharers, Fault> {
        let what = format!("one has the discriminator '{discriminator}'");
        let unknown = |error: kube::Error| unlisted(&what, &error);
        let resource = ApiResource::erase::<KluctlDeployment>(&());
        let claim = |object: &DynamicObject| Claim::read(object, discriminator);
        let api = objects::api(self.client, &resource, self.namespace);
        let found = objects::list_with(&api, ("status.discriminator", discriminator), claim).await;
        let mut claims = objects::found(found).map_err(unknown)?.unwrap_or_default();
        let claim = |object: &DynamicObject| Claim::read_successor(object, discriminator);
        let api = objects::api(self.client, &successor(), self.namespace);
        let field = ("status.targetKey.discriminator", discriminator);
        let successors = objects::list_with(&api, field, claim).await;
        claims.extend(objects::found(successors).map_err(unknown)?.unwrap_or_default());
        Ok(self.sorted(itself, claims, own).await)
    }

    /// Lists the other objects of `flux.kluctl.io` that were deployed with all of these labels by releases without discriminators. They are
    /// read live.
    pub(crate) async fn sharers_of_labels(
        &self,
        itself: &Claimant,
        labels: &BTreeMap<String, String>,
        own: &ClusterIdentity,
    ) -> Result<Sharers, Fault> {
        let resource = ApiResource::erase::<KluctlDeployment>(&());
        let api = objects::api(self.client, &resource, self.namespace);
        let found = objects::list(&api, |object| Claim::read_labelled(object, labels)).await;
        let claims = objects::found(found).map_err(|error| unlisted("one has the same labels", &error))?;
        Ok(self.sorted(itself, claims.unwrap_or_default(), own).await)
    }

    /// Sorts the claims of others by their meaning for the object.
    async fn sorted(&self, itself: &Claimant, mut claims: Vec<Claim>, own: &ClusterIdentity) -> Sharers {
        claims.retain(|claim| !itself.is_or_replaces(claim));
        let mut sharers = Sharers::default();
        for claim in claims {
            if claim.key.namespace != itself.key.namespace {
                sharers.foreign.push(claim);
                continue;
            }
            let deploys = self.deploys_to(&claim, own).await;
            if deploys != Some(false) {
                sharers.own.push(claim.to_string());
            }
            if deploys.is_none() {
                sharers.uncertain.push(claim.to_string());
            }
        }
        sharers
    }

    /// Returns true if an object may deploy to a cluster; `None` if its own cluster is unknown, as long as its kubeconfig cannot be read.
    async fn deploys_to(&self, claim: &Claim, cluster: &ClusterIdentity) -> Option<bool> {
        let kube_config = match &claim.target {
            ClaimedTarget::Unknown => return None,
            ClaimedTarget::Local => None,
            ClaimedTarget::Remote(config) => Some(config),
        };
        let target = self.clusters.of(&claim.key.namespace, kube_config, None).await;
        Some(target.ok()?.identity.may_be(cluster))
    }
}

/// Returns the fault of a list that was to show if there are others.
fn unlisted(what: &str, error: &kube::Error) -> Fault {
    let message = format!(
        "cannot list other KluctlDeployments to see if {what}: {}",
        describe(error)
    );
    Fault::retry(Reason::Failed, message)
}

impl Sharers {
    /// Returns one that deploys to the same cluster for all that is known.
    pub(crate) fn certain(&self) -> Option<&String> {
        self.own.iter().find(|one| !self.uncertain.contains(one))
    }
}

impl Claimant {
    /// Returns true for the claim of the object itself, and of the one that it took over from.
    fn is_or_replaces(&self, claim: &Claim) -> bool {
        claim.key == self.key && (self.is_successor || !claim.is_successor)
    }
}

/// Returns the KluctlDeployment of `gitops.kluctl.io`.
pub(crate) fn successor() -> ApiResource {
    let kind = GroupVersionKind::gvk(group::GITOPS_KLUCTL, "v1beta1", "KluctlDeployment");
    ApiResource::from_gvk_with_plural(&kind, "kluctldeployments")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claim(change: impl FnOnce(&mut Value)) -> Option<ClaimedTarget> {
        let mut object = json!({
            "apiVersion": "flux.kluctl.io/v1alpha1",
            "kind": "KluctlDeployment",
            "metadata": { "name": "shop", "namespace": "apps" },
            "spec": { "interval": "5m", "prune": true },
            "status": { "discriminator": "shop" },
        });
        change(&mut object);
        let object: DynamicObject = serde_json::from_value(object).expect("decodes");
        let claim = Claim::read(&object, "shop")?;
        assert_eq!(claim.key, ObjectKey::new("apps", "shop"));
        Some(claim.target)
    }

    #[test]
    fn claim_holds_until_the_object_is_removed_with_everything_it_deployed() {
        let removed = |o: &mut Value| o["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let local = Some(ClaimedTarget::Local);
        assert_eq!(claim(|_| {}), local);
        assert_eq!(claim(|o| o["spec"]["suspend"] = json!(true)), local, "suspended");
        assert_eq!(
            claim(|o| o["status"]["discriminator"] = json!("x")),
            None,
            "another one"
        );
        assert_eq!(claim(|o| o["status"] = json!({})), None, "never deployed");
        assert_eq!(claim(removed), None);
        let kept = claim(|o| {
            removed(o);
            o["spec"]["delete"] = json!(false);
        });
        assert_eq!(kept, local, "removed without its objects");
        let suspended = claim(|o| {
            removed(o);
            o["spec"]["suspend"] = json!(true);
        });
        assert_eq!(suspended, local, "removed while suspended");
    }

    #[test]
    fn claim_by_labels_needs_all_of_them() {
        let labels = |labels: &[(&str, &str)]| -> BTreeMap<String, String> {
            labels
                .iter()
                .map(|&(name, value)| (name.to_owned(), value.to_owned()))
                .collect()
        };
        let claims = |noted: Value, change: &dyn Fn(&mut Value)| {
            let mut object = json!({
                "apiVersion": "flux.kluctl.io/v1alpha1", "kind": "KluctlDeployment",
                "metadata": { "name": "shop", "namespace": "apps" },
                "spec": { "interval": "5m", "prune": true }, "status": { "commonLabels": noted },
            });
            change(&mut object);
            let object: DynamicObject = serde_json::from_value(object).expect("decodes");
            Claim::read_labelled(&object, &labels(&[("a", "1"), ("b", "2")])).is_some()
        };
        let as_it_is: &dyn Fn(&mut Value) = &|_| {};
        assert!(claims(json!({ "a": "1", "b": "2" }), as_it_is));
        assert!(claims(json!({ "a": "1", "b": "2", "c": "3" }), as_it_is));
        assert!(!claims(json!({ "a": "1" }), as_it_is));
        assert!(!claims(json!({ "a": "1", "b": "3" }), as_it_is));
        assert!(!claims(Value::Null, as_it_is));
        let removed: &dyn Fn(&mut Value) =
            &|object| object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert!(!claims(json!({ "a": "1", "b": "2" }), removed));
    }

    #[test]
    fn sharer_whose_cluster_is_unknown_is_not_certain() {
        let sharers = |uncertain: &[&str]| Sharers {
            own: vec!["a".to_owned(), "b".to_owned()],
            uncertain: uncertain.iter().map(|name| (*name).to_owned()).collect(),
            foreign: Vec::new(),
        };
        assert_eq!(sharers(&[]).certain().map(String::as_str), Some("a"));
        assert_eq!(sharers(&["a"]).certain().map(String::as_str), Some("b"));
        assert_eq!(sharers(&["a", "b"]).certain(), None);
    }

    #[test]
    fn claim_of_an_object_that_does_not_decode_counts() {
        assert_eq!(
            claim(|o| o["spec"]["interval"] = json!("99999999999999h")),
            Some(ClaimedTarget::Local)
        );
        assert_eq!(
            claim(|o| o["spec"]["kubeConfig"] = json!({ "secretRef": 7 })),
            Some(ClaimedTarget::Unknown)
        );
        let remote = claim(|o| o["spec"]["kubeConfig"] = json!({ "secretRef": { "name": "remote" } }));
        assert!(matches!(remote, Some(ClaimedTarget::Remote(config)) if config.secret_ref.name == "remote"));
        assert_eq!(claim(|o| o["spec"] = Value::Null), Some(ClaimedTarget::Local));
    }
}
