//! Objects of one kind of source in a namespace with a controller: applying them, and waiting for their statuses.

use std::fmt::Debug;

use api::{Artifact, Condition, condition_type as types, conditions};
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams},
    core::NamespaceResourceScope,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use testkit::wait_for;

use super::{TIMEOUT, TestNamespace};

pub(super) struct Objects<'a, K> {
    pub(super) setup: &'a TestNamespace,
    pub(super) api: Api<K>,
}

impl<'a, K> Objects<'a, K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static,
{
    pub(super) async fn of(setup: &'a TestNamespace) -> Self {
        let client = setup.plane.client().await.unwrap();
        Self {
            setup,
            api: Api::namespaced(client, &setup.namespace),
        }
    }

    /// Applies an object with this spec, and an interval of an hour unless it names one.
    pub(super) async fn apply(&self, name: &str, spec: Value) {
        self.apply_version("v1", name, spec).await;
    }

    pub(super) async fn apply_version(&self, version: &str, name: &str, spec: Value) {
        let mut whole = json!({"interval": "1h"});
        whole
            .as_object_mut()
            .unwrap()
            .extend(spec.as_object().unwrap().clone());
        let object = json!({
            "apiVersion": format!("{}/{version}", K::group(&())), "kind": K::kind(&()),
            "metadata": {"name": name, "namespace": self.setup.namespace}, "spec": whole,
        });
        self.setup.plane.apply(object).await.unwrap();
    }

    /// Requests a pass, and waits until it has ended.
    pub(super) async fn reconcile(&self, name: &str, value: &str) -> K {
        let patch = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": value}}});
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        self.api.patch(name, &params, &patch).await.unwrap();
        self.wait(name, "the request to be handled", |object| {
            status(object)["lastHandledReconcileAt"] == value
                && condition(object, types::RECONCILING).is_none()
        })
        .await
    }

    pub(super) async fn wait(&self, name: &str, what: &str, found: impl FnMut(&K) -> bool) -> K {
        let waited = wait_for(&self.api, name, what, TIMEOUT, found).await;
        waited.unwrap_or_else(|error| panic!("{error:#}\n{}", self.setup.controller.log()))
    }

    pub(super) async fn wait_ready(&self, name: &str) -> K {
        self.wait(name, "it to be ready", |object| {
            status(object)["observedGeneration"].as_i64() == object.meta().generation
                && condition(object, types::READY).is_some_and(|ready| ready.is_true())
                && condition(object, types::RECONCILING).is_none()
        })
        .await
    }

    /// Waits until the object failed with this reason and a message that contains this string.
    pub(super) async fn wait_failed(&self, name: &str, reason: &str, text: &str) -> K {
        let what = format!("it to fail with {reason}: {text}");
        self.wait(name, &what, |object| {
            condition(object, types::READY).is_some_and(|ready| {
                ready.is_false() && ready.reason == reason && ready.message.contains(text)
            })
        })
        .await
    }

    pub(super) fn dir(&self, name: &str) -> std::path::PathBuf {
        let kind = K::kind(&()).to_lowercase();
        let storage = self.setup.controller.storage_path();
        storage.join(kind).join(&self.setup.namespace).join(name)
    }
}

/// Returns the status of an object; null if it has none.
pub(super) fn status<K: Serialize>(object: &K) -> Value {
    let object = serde_json::to_value(object).unwrap();
    object["status"].clone()
}

pub(super) fn condition<K: Serialize>(object: &K, name: &str) -> Option<Condition> {
    let all: Vec<Condition> =
        serde_json::from_value(status(object)["conditions"].clone()).unwrap_or_default();
    conditions::get(&all, name).cloned()
}

pub(super) fn artifact<K: Serialize + ResourceExt>(object: &K) -> Artifact {
    let artifact = serde_json::from_value(status(object)["artifact"].clone());
    artifact.unwrap_or_else(|error| panic!("{}: {error}", object.name_any()))
}
