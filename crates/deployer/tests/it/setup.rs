//! A namespace with the kind ManifestSet, and the controller that reconciles it.

use std::{path::PathBuf, time::Duration};

use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use testkit::{ControlPlane, Controller, controller::Launch, ready};

/// Timeout of every wait, long enough for a busy machine.
pub(crate) const TIMEOUT: Duration = testkit::WAIT_TIMEOUT;

pub(crate) struct TestNamespace {
    plane: &'static ControlPlane,
    namespace: String,
    client: Client,
}

/// Returns the manifest of a ConfigMap with one value.
pub(crate) fn config_map(name: &str, value: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "value": value } })
}

/// Returns the value of a ConfigMap.
pub(crate) fn data_of(map: &DynamicObject) -> &str {
    map.data["data"]["value"].as_str().unwrap_or_default()
}

impl TestNamespace {
    pub(crate) async fn new(name: &str) -> Self {
        let plane = ControlPlane::shared().await.unwrap();
        let client = plane.client().await.unwrap();
        plane.apply(definition()).await.unwrap();
        let namespace = plane.namespace(name).await.unwrap();
        let setup = Self {
            plane,
            namespace,
            client,
        };
        testkit::eventually("the kind ManifestSet to be served", TIMEOUT, || async {
            Ok(setup.sets().list(&ListParams::default()).await.map(|_| ())?)
        })
        .await
        .unwrap();
        setup
    }

    fn api(&self, group: &str, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    pub(crate) fn sets(&self) -> Api<DynamicObject> {
        self.api("weir.test", "ManifestSet")
    }

    pub(crate) fn config_maps(&self) -> Api<DynamicObject> {
        self.api("", "ConfigMap")
    }

    /// Creates or changes a ManifestSet; its manifests are of its namespace.
    pub(crate) async fn set(&self, name: &str, spec: &Value) {
        let mut spec = spec.clone();
        for manifest in spec["manifests"].as_array_mut().unwrap() {
            manifest["metadata"]["namespace"] = json!(self.namespace);
        }
        spec["interval"] = json!("2s");
        let object = json!({
            "apiVersion": "weir.test/v1", "kind": "ManifestSet",
            "metadata": { "name": name, "namespace": self.namespace }, "spec": spec,
        });
        let params = PatchParams::apply("test").force();
        self.sets()
            .patch(name, &params, &Patch::Apply(object))
            .await
            .unwrap();
    }

    /// Returns the names of all ConfigMaps that carry an owner label.
    pub(crate) async fn names(&self) -> Vec<String> {
        let params = ListParams::default().labels("weir.test/name");
        let found = self.config_maps().list(&params).await.unwrap();
        found.iter().map(|map| map.name_any()).collect()
    }

    pub(crate) async fn value(&self, name: &str) -> String {
        data_of(&self.config_maps().get(name).await.unwrap()).to_owned()
    }

    pub(crate) async fn controller(&self, user: &str) -> Launch {
        Controller::named("manifest-set")
            .program(program())
            .run_by(&self.kubeconfig(user).await)
            .namespace(&self.namespace)
            .flag("--watch-all-namespaces=false")
            .flag("--interval-jitter-percentage=0")
            .flag("--min-retry-delay=200ms")
    }

    /// The kubeconfig of a service account that may do anything.
    async fn kubeconfig(&self, user: &str) -> PathBuf {
        let binding: ClusterRoleBinding = serde_json::from_value(json!({
            "metadata": { "name": format!("{}-{user}", self.namespace) },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
            "subjects": [{ "kind": "ServiceAccount", "name": user, "namespace": self.namespace }],
        }))
        .unwrap();
        Api::<ClusterRoleBinding>::all(self.client.clone())
            .create(&Default::default(), &binding)
            .await
            .unwrap();
        self.plane
            .service_account_kubeconfig(&self.namespace, user)
            .await
            .unwrap()
    }

    /// Waits until Ready has a status and a reason for the newest generation.
    pub(crate) async fn wait_ready(&self, name: &str, status: &str, reason: &str) -> DynamicObject {
        let what = format!("Ready={status} {reason}");
        testkit::wait_for(&self.sets(), name, &what, TIMEOUT, |object| {
            let ready = ready(object);
            ready["status"] == status
                && ready["reason"] == reason
                && ready["observedGeneration"] == json!(object.metadata.generation)
        })
        .await
        .unwrap()
    }
}

/// The example lies beside the folder of the test binaries.
fn program() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let program = own
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .join("examples/manifest_set");
    assert!(
        program.exists(),
        "the example isn't built: run `cargo build -p deployer --example manifest_set`"
    );
    program
}

/// A schema that accepts anything.
fn definition() -> Value {
    let anything = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "manifestsets.weir.test" },
        "spec": {
            "group": "weir.test", "scope": "Namespaced",
            "names": { "kind": "ManifestSet", "plural": "manifestsets", "singular": "manifestset" },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": anything, "status": anything } } },
            }],
        },
    })
}
