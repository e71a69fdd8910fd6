//! Other objects that deploy with the same discriminator to the same cluster: to each of them, the objects of the others
//! look like orphans.

use std::collections::BTreeMap;

use api::{Fault, Reason, group, kluctl::KluctlDeployment};
use deployer::{
    ClusterIdentity, Clusters,
    claims::{Claim, ClaimWords, Sharers},
    objects,
};
use kube::{
    Client,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use results::deployed;
use runtime::{ObjectKey, client::describe};
use serde_json::Value;

/// Reads the claim of an object. Returns `None` if it has another discriminator, or is being removed together with
/// everything that it deployed.
fn read(object: &DynamicObject, discriminator: &str) -> Option<Claim> {
    let noted = object
        .data
        .pointer("/status/discriminator")
        .and_then(Value::as_str);
    (noted == Some(discriminator) && !goes_with_everything(object)).then(|| claim(object))
}

/// Reads the claim of an object that was deployed with all of these labels, by a release that had no discriminator. There may be
/// others, too.
fn read_labelled(object: &DynamicObject, labels: &BTreeMap<String, String>) -> Option<Claim> {
    let noted = object.data.pointer("/status/commonLabels")?.as_object()?;
    let has = |(name, value): (&String, &String)| noted.get(name).and_then(Value::as_str) == Some(value);
    let is_claim = labels.iter().all(has) && !goes_with_everything(object);
    is_claim.then(|| claim(object))
}

fn claim(object: &DynamicObject) -> Claim {
    Claim::of(object, WORDS.kind, deployed::flux::has_applied(&object.data))
}

fn read_successor(object: &DynamicObject, discriminator: &str) -> Option<Claim> {
    let noted = object.data.pointer("/status/targetKey/discriminator");
    let is_set = |pointer: &str| object.data.pointer(pointer).and_then(Value::as_bool) == Some(true);
    let is_deleted = object.metadata.deletion_timestamp.is_some();
    if is_deleted && is_set("/spec/delete") && !is_set("/spec/suspend") {
        return None;
    }
    (noted.and_then(Value::as_str) == Some(discriminator)).then(|| {
        let kind = format!("KluctlDeployment.{}", group::GITOPS_KLUCTL);
        Claim::of(object, &kind, deployed::gitops::has_applied(&object.data))
    })
}

/// Returns true for an object of `flux.kluctl.io` that is being removed together with everything that it deployed.
fn goes_with_everything(object: &DynamicObject) -> bool {
    let flag = |pointer: &str| object.data.pointer(pointer).and_then(Value::as_bool);
    let is_set = |pointer: &str| flag(pointer).unwrap_or_default();
    let deletes = flag("/spec/delete").unwrap_or_else(|| is_set("/spec/prune"));
    object.metadata.deletion_timestamp.is_some() && deletes && !is_set("/spec/suspend")
}

pub(crate) const WORDS: ClaimWords = ClaimWords {
    kind: "KluctlDeployment",
    mark: "discriminator",
};

#[derive(Debug, Clone)]
pub(crate) struct Claimant {
    pub(crate) key: ObjectKey,
    /// True for an object of `gitops.kluctl.io`. The one of the same name in `flux.kluctl.io` gave way to it, so it shares nothing.
    pub(crate) is_successor: bool,
}

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
        let claim = |object: &DynamicObject| read(object, discriminator);
        let api = objects::api(self.client, &resource, self.namespace);
        let found = objects::list_with(&api, ("status.discriminator", discriminator), claim).await;
        let mut claims = itself.others(objects::found(found).map_err(unknown)?);
        let claim = |object: &DynamicObject| read_successor(object, discriminator);
        let api = objects::api(self.client, &successor(), self.namespace);
        let field = ("status.targetKey.discriminator", discriminator);
        let successors = objects::list_with(&api, field, claim).await;
        let successors = objects::found(successors).map_err(unknown)?.unwrap_or_default();
        claims.extend(
            successors
                .into_iter()
                .filter(|claim| claim.key != itself.key || !itself.is_successor),
        );
        Ok(Sharers::sort(claims, &itself.key.namespace, self.clusters, own).await)
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
        let found = objects::list(&api, |object| read_labelled(object, labels)).await;
        let claims = objects::found(found).map_err(|error| unlisted("one has the same labels", &error))?;
        Ok(Sharers::sort(itself.others(claims), &itself.key.namespace, self.clusters, own).await)
    }
}

fn unlisted(what: &str, error: &kube::Error) -> Fault {
    let message = format!(
        "cannot list other KluctlDeployments to see if {what}: {}",
        describe(error)
    );
    Fault::retry(Reason::Failed, message)
}

impl Claimant {
    /// Returns the claims of others in `flux.kluctl.io`: not of the object itself, and not of the one that it took over from.
    fn others(&self, claims: Option<Vec<Claim>>) -> Vec<Claim> {
        let mut claims = claims.unwrap_or_default();
        claims.retain(|claim| claim.key != self.key);
        claims
    }
}

pub(crate) fn successor() -> ApiResource {
    let kind = GroupVersionKind::gvk(group::GITOPS_KLUCTL, "v1beta1", "KluctlDeployment");
    ApiResource::from_gvk_with_plural(&kind, "kluctldeployments")
}

#[cfg(test)]
mod tests {
    use deployer::claims::ClaimedTarget;
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
        let claim = read(&object, "shop")?;
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
            read_labelled(&object, &labels(&[("a", "1"), ("b", "2")])).is_some()
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
