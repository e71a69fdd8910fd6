//! The crate against a real control plane.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    reason = "helpers of tests"
)]

mod assumed;
mod completeness;
mod deletion;
#[path = "../../examples/apply.rs"]
#[allow(dead_code, unreachable_pub, reason = "the main function of the example")]
mod example;
mod health;
mod immutable;
mod inventory;
mod label;
mod markers;
mod outcomes;
mod reconcile;
mod requests;
mod stages;
mod takeover;
mod wait;

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use apply::WaitTarget;
use cluster::{Cluster, access};
use objects::ObjectRef;
use serde_json::{Value as Json, json};
use testkit::ControlPlane;
use yaml::Value;

/// Timeout for anything on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A namespace of the shared cluster for one test.
pub(crate) struct Fixture {
    pub(crate) plane: &'static ControlPlane,
    pub(crate) cluster: Cluster,
    /// The namespace; its name is the owner's label value too.
    pub(crate) namespace: String,
}

impl Fixture {
    pub(crate) async fn new(name: &str) -> Result<Self> {
        let plane = ControlPlane::shared().await?;
        let namespace = plane.namespace(name).await?;
        Ok(Self {
            plane,
            cluster: access::connect(&std::fs::read(plane.kubeconfig())?).await?,
            namespace,
        })
    }

    /// Returns a ConfigMap with the label of the example's owner.
    pub(crate) fn config_map(&self, name: &str, data: Json) -> Value {
        self.object("v1", "ConfigMap", name, json!({"data": data}))
    }

    /// Returns an object with the label of the example's owner.
    pub(crate) fn object(&self, api_version: &str, kind: &str, name: &str, rest: Json) -> Value {
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {
            "name": name, "namespace": self.namespace, "labels": {"example.com/owner": self.namespace}}});
        object
            .as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        Value::from_json(object)
    }

    /// Returns the live state of an object.
    pub(crate) async fn live(&self, manifest: &Value) -> Result<Option<Json>> {
        let live = self.cluster.get(&ObjectRef::of(manifest)?).await?;
        Ok(live.map(|object| object.to_json()))
    }

    /// Returns the definition of a kind of the namespace's own group.
    pub(crate) fn definition(&self) -> Value {
        let group = self.group();
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object"},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
        let version = json!({"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": schema}});
        Value::from_json(
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("things.{group}"), "labels": {"example.com/owner": self.namespace}},
            "spec": {"group": group, "scope": "Namespaced", "versions": [version],
                "names": {"kind": "Thing", "listKind": "ThingList", "plural": "things", "singular": "thing"}}}),
        )
    }

    fn group(&self) -> String {
        format!("{}.example.com", self.namespace)
    }

    /// Returns an object of the own kind.
    pub(crate) fn thing(&self, name: &str, rest: Json) -> Value {
        self.object(&format!("{}/v1", self.group()), "Thing", name, rest)
    }

    /// Returns a thing as kubectl names it.
    pub(crate) fn thing_name(&self, name: &str) -> String {
        format!("things.{}/{name}", self.group())
    }

    /// Returns targets with their live states.
    pub(crate) async fn live_targets(&self, targets: &[WaitTarget]) -> Result<Vec<WaitTarget>> {
        let mut live = Vec::new();
        for target in targets {
            let known = self.cluster.get(&target.reference).await?.map(Arc::new);
            live.push(WaitTarget {
                known,
                ..target.clone()
            });
        }
        Ok(live)
    }

    /// Merges a patch into an object, or into its status.
    pub(crate) async fn patch(&self, object: &str, status: bool, patch: Json) -> Result<()> {
        let (namespace, patch) = (self.namespace.as_str(), patch.to_string());
        let mut args = vec!["patch", object, "-n", namespace, "--type=merge", "-p", &patch];
        if status {
            args.push("--subresource=status");
        }
        self.plane.kubectl(&args).await?;
        Ok(())
    }

    /// Returns the requests for objects in the namespace since a mark, as in `patch configmaps/a`.
    pub(crate) fn requests(&self, mark: testkit::audit::Mark) -> Result<Vec<String>> {
        let entries = self.plane.audit_since(mark)?.into_iter();
        let own = entries
            .filter(|entry| entry.namespace == self.namespace && !entry.user_agent.starts_with("kubectl"));
        Ok(own
            .map(|entry| format!("{} {}/{}", entry.verb, entry.resource, entry.name))
            .collect())
    }

    /// Returns an identity with the role `admin` in the namespace, and no other rights.
    pub(crate) async fn tenant(&self) -> Result<Cluster> {
        let account = format!("--serviceaccount={}:tenant", self.namespace);
        let namespace = self.namespace.as_str();
        let args = [
            "create",
            "rolebinding",
            "tenant",
            "-n",
            namespace,
            "--clusterrole=admin",
            &account,
        ];
        self.plane.kubectl(&args).await?;
        let user = access::service_account(namespace, "tenant");
        Ok(self.cluster.impersonate(&user))
    }
}
