//! The crate against a real control plane.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    reason = "helpers of tests"
)]

mod completeness;
#[path = "../../examples/apply.rs"]
#[allow(dead_code, unreachable_pub, reason = "the main function of the example")]
mod example;
mod inventory;
mod label;

use std::time::Duration;

use anyhow::Result;
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
