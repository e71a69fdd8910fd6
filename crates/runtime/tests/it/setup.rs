//! A namespace with the kind Probe, and the controller that reconciles it.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams},
};
use serde_json::{Value, json};
use testkit::{ControlPlane, Controller, audit, controller::Launch, ready};

/// Timeout of every wait, long enough for a busy machine.
pub(crate) const TIMEOUT: Duration = testkit::WAIT_TIMEOUT;

pub(crate) struct TestNamespace {
    pub(crate) plane: &'static ControlPlane,
    pub(crate) namespace: String,
    pub(crate) client: Client,
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
        testkit::eventually("the kind Probe to be served", TIMEOUT, || async {
            Ok(setup.probes().list(&ListParams::default()).await.map(|_| ())?)
        })
        .await
        .unwrap();
        setup
    }

    pub(crate) fn probes(&self) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("weir.test", "v1", "Probe"));
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    pub(crate) async fn probe(&self, name: &str, spec: &Value) -> DynamicObject {
        let object = json!({
            "apiVersion": "weir.test/v1", "kind": "Probe",
            "metadata": {"name": name, "namespace": self.namespace}, "spec": spec,
        });
        self.plane.apply(object).await.unwrap()
    }

    pub(crate) async fn controller(&self, user: &str) -> Launch {
        self.controller_by(&self.kubeconfig(user).await)
    }

    pub(crate) fn controller_by(&self, kubeconfig: &Path) -> Launch {
        Controller::named("probe")
            .program(program())
            .run_by(kubeconfig)
            .namespace(&self.namespace)
            .flag("--watch-all-namespaces=false")
            .flag("--interval-jitter-percentage=0")
            .flag("--min-retry-delay=200ms")
    }

    /// The kubeconfig of a service account that may do anything.
    pub(crate) async fn kubeconfig(&self, user: &str) -> PathBuf {
        let binding: ClusterRoleBinding = serde_json::from_value(json!({
            "metadata": {"name": format!("{}-{user}", self.namespace)},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": user, "namespace": self.namespace}],
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

    pub(crate) async fn wait(
        &self,
        name: &str,
        what: &str,
        is: impl FnMut(&DynamicObject) -> bool,
    ) -> DynamicObject {
        testkit::wait_for(&self.probes(), name, what, TIMEOUT, is)
            .await
            .unwrap()
    }

    pub(crate) async fn wait_ready(&self, name: &str, status: &str, reason: &str) -> DynamicObject {
        self.wait(name, &format!("Ready={status} {reason}"), |object| {
            let ready = ready(object);
            ready["status"] == status
                && ready["reason"] == reason
                && ready["observedGeneration"] == json!(object.metadata.generation)
        })
        .await
    }

    pub(crate) fn writes(&self, user: &str, mark: testkit::audit::Mark) -> Vec<audit::Entry> {
        let user = format!("system:serviceaccount:{}:{user}", self.namespace);
        let mut entries = self.plane.audit_since(mark).unwrap();
        entries.retain(|entry| entry.user == user && entry.is_write() && entry.code < 300);
        entries
    }
}

/// The example lies beside the folder of the test binaries.
fn program() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let program = own.parent().unwrap().parent().unwrap().join("examples/probe");
    assert!(
        program.exists(),
        "the example isn't built: run `cargo build -p runtime --example probe`"
    );
    program
}

/// A schema that accepts anything, as after a downgrade.
fn definition() -> Value {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "probes.weir.test"},
        "spec": {
            "group": "weir.test", "scope": "Namespaced",
            "names": {"kind": "Probe", "plural": "probes", "singular": "probe"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}},
            }],
        },
    })
}
