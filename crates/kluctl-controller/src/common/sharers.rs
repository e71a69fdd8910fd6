//! Other objects that deploy with the same discriminator to the same cluster: to each of them, the objects of the others
//! look like orphans.

use std::fmt;

use api::{Fault, KubeConfig, Reason, group, kluctl::KluctlDeployment};
use kube::{
    Client, ResourceExt,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use references::{ClusterIdentity, Clusters, objects};
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
        let field = |pointer: &str| object.data.pointer(pointer);
        let flag = |pointer: &str| field(pointer).and_then(Value::as_bool);
        if field("/status/discriminator").and_then(Value::as_str) != Some(discriminator) {
            return None;
        }
        let is_set = |pointer: &str| flag(pointer).unwrap_or_default();
        let deletes = flag("/spec/delete").unwrap_or_else(|| is_set("/spec/prune"));
        if object.metadata.deletion_timestamp.is_some() && deletes && !is_set("/spec/suspend") {
            return None;
        }
        Some(Self::of(object, false))
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
    /// Those of the same namespace that may deploy to the same cluster, as `KluctlDeployment apps/shop`: while there is one,
    /// nothing is deleted.
    pub(crate) own: Vec<String>,
    /// Those of other namespaces: they count only for objects that they have rights to ([`super::owners`]).
    pub(crate) foreign: Vec<Claim>,
}

/// The object that asks for its sharers.
#[derive(Debug, Clone)]
pub(crate) struct Claimant {
    pub(crate) key: ObjectKey,
    /// True for an object of `gitops.kluctl.io`. That of the same name in `flux.kluctl.io` gave way to it, so it shares nothing.
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
        let unknown = |error: kube::Error| {
            let message = format!(
                "cannot list other KluctlDeployments to see if one has the discriminator '{discriminator}': {}",
                describe(&error)
            );
            Fault::retry(Reason::Failed, message)
        };
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
        claims.retain(|claim| !itself.is_or_replaces(claim));

        let mut sharers = Sharers::default();
        for claim in claims {
            if claim.key.namespace != itself.key.namespace {
                sharers.foreign.push(claim);
            } else if self.may_deploy_to(&claim, own).await {
                sharers.own.push(claim.to_string());
            }
        }
        Ok(sharers)
    }

    /// Returns true if an object may deploy to a cluster. It may if its own cluster is unknown, as long as its
    /// kubeconfig cannot be read.
    async fn may_deploy_to(&self, claim: &Claim, cluster: &ClusterIdentity) -> bool {
        let kube_config = match &claim.target {
            ClaimedTarget::Unknown => return true,
            ClaimedTarget::Local => None,
            ClaimedTarget::Remote(config) => Some(config),
        };
        match self.clusters.of(&claim.key.namespace, kube_config, None).await {
            Ok(target) => target.identity.may_be(cluster),
            Err(_) => true,
        }
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
