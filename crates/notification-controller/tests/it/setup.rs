//! A namespace with its own controller, and a sink for notifications.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Secret};
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use testkit::{ControlPlane, Controller, WebhookSink, controller::Launch, ready};

/// Timeout of all waits, for a busy machine.
pub(crate) const TIMEOUT: Duration = testkit::WAIT_TIMEOUT;
const API: &str = "notification.toolkit.fluxcd.io/v1beta3";

pub(crate) struct TestNamespace {
    pub(crate) plane: &'static ControlPlane,
    pub(crate) namespace: String,
    pub(crate) client: Client,
    pub(crate) http: reqwest::Client,
    pub(crate) controller: Controller,
    pub(crate) sink: WebhookSink,
}

impl TestNamespace {
    pub(crate) async fn new(name: &str) -> Self {
        Self::with(name, |launch| launch).await
    }

    pub(crate) async fn with(name: &str, flags: impl FnOnce(Launch) -> Launch) -> Self {
        let plane = ControlPlane::shared_with_crds().await.unwrap();
        Self::with_namespace(plane.namespace(name).await.unwrap(), flags).await
    }

    /// Starts the controller in an existing namespace.
    pub(crate) async fn with_namespace(namespace: String, flags: impl FnOnce(Launch) -> Launch) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let plane = ControlPlane::shared_with_crds().await.unwrap();
        let launch = launch().run_by(plane.kubeconfig()).namespace(&namespace);
        Self {
            plane,
            client: plane.client().await.unwrap(),
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
            controller: flags(launch).start().await.unwrap(),
            sink: WebhookSink::start().unwrap(),
            namespace,
        }
    }

    async fn apply(&self, kind: &str, name: &str, spec: &Value) -> DynamicObject {
        self.apply_annotated(kind, name, &json!({}), spec).await
    }

    async fn apply_annotated(
        &self,
        kind: &str,
        name: &str,
        annotations: &Value,
        spec: &Value,
    ) -> DynamicObject {
        let metadata = json!({"name": name, "namespace": self.namespace, "annotations": annotations});
        let object = json!({"apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec});
        self.plane.apply(object).await.unwrap()
    }

    /// Applies an alert like [`TestNamespace::generic`], with annotations, and its provider; both known to the controller.
    pub(crate) async fn extended(&self, name: &str, annotations: &Value, more: &Value) {
        self.provider(name, &json!({"type": "generic", "address": self.sink.url(name)}))
            .await;
        self.apply_annotated("Alert", name, annotations, &alert_spec(name, more))
            .await;
        self.wait_ready("Alert", name, "True").await;
        self.wait_ready("Provider", name, "True").await;
    }

    pub(crate) async fn provider(&self, name: &str, spec: &Value) -> DynamicObject {
        self.apply("Provider", name, spec).await
    }

    /// Applies an alert for every GitRepository in the namespace, sent to `provider`, with `more` in its spec.
    pub(crate) async fn alert(&self, name: &str, provider: &str, more: &Value) -> DynamicObject {
        self.apply("Alert", name, &alert_spec(provider, more)).await
    }

    pub(crate) async fn secret(&self, name: &str, data: &Value) {
        let secret: Secret =
            serde_json::from_value(json!({"metadata": {"name": name}, "stringData": data})).unwrap();
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        api.create(&PostParams::default(), &secret).await.unwrap();
    }

    pub(crate) async fn wait_ready(&self, kind: &str, name: &str, status: &str) -> Value {
        let metadata = json!({"name": name, "namespace": self.namespace});
        let (api, _) = self
            .plane
            .api_for(json!({"apiVersion": API, "kind": kind, "metadata": metadata}))
            .await
            .unwrap();
        let what = format!("Ready={status}");
        let object = testkit::wait_for(&api, name, &what, TIMEOUT, |object| {
            let ready = ready(object);
            ready["status"] == status && ready["observedGeneration"] == json!(object.metadata.generation)
        });
        ready(&object.await.unwrap())
    }

    /// Deletes an object and its finalizer.
    pub(crate) async fn vanish(&self, kind: &str, name: &str) {
        let metadata = json!({"name": name, "namespace": self.namespace});
        let (api, _) = self
            .plane
            .api_for(json!({"apiVersion": API, "kind": kind, "metadata": metadata}))
            .await
            .unwrap();
        // An object without a finalizer is gone with the second request.
        let patch = json!({"metadata": {"finalizers": null}});
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap();
        api.delete(name, &DeleteParams::default()).await.unwrap();
        testkit::wait_gone(&api, name, TIMEOUT).await.unwrap();
    }

    /// Applies a provider of type `generic` at a path of the sink, and an alert for it; both known to the controller.
    pub(crate) async fn generic(&self, name: &str, alert: &Value) {
        self.provider(name, &json!({"type": "generic", "address": self.sink.url(name)}))
            .await;
        self.alert(name, name, alert).await;
        self.wait_ready("Alert", name, "True").await;
        self.wait_ready("Provider", name, "True").await;
    }

    /// Returns an event about the GitRepository `shop` of the namespace.
    pub(crate) fn event(&self, message: &str) -> Value {
        json!({
            "involvedObject": {
                "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "name": "shop",
                "namespace": self.namespace, "uid": "u-1", "resourceVersion": "7",
            },
            "severity": "info", "timestamp": "2026-11-21T10:00:00Z", "message": message, "reason": "NewArtifact",
            "metadata": {
                "source.toolkit.fluxcd.io/revision": "main@sha1:1", "source.toolkit.fluxcd.io/digest": "sha256:2",
                "other.io/x": "y",
            },
            "reportingController": "source-controller", "reportingInstance": "source-controller-0",
        })
    }

    pub(crate) async fn post(&self, event: &Value) -> reqwest::Response {
        self.http
            .post(self.controller.events_url())
            .json(event)
            .send()
            .await
            .unwrap()
    }

    pub(crate) async fn accepted(&self, event: &Value) {
        assert_eq!(self.post(event).await.status(), 202);
    }

    pub(crate) fn bodies(&self, path: &str) -> Vec<Value> {
        let path = format!("/{path}");
        self.sink
            .received()
            .iter()
            .filter(|request| request.path == path)
            .map(|request| request.json())
            .collect()
    }

    pub(crate) async fn wait_message(&self, path: &str, message: &str) -> testkit::Received {
        let path = format!("/{path}");
        let what = format!("{message} at {path}");
        self.sink
            .wait_for(&what, TIMEOUT, |request| {
                request.path == path && String::from_utf8_lossy(&request.body).contains(message)
            })
            .await
            .unwrap()
    }

    /// Waits for a Kubernetes Event with this reason on an object.
    pub(crate) async fn warning(&self, object: &str, reason: &str) -> Event {
        self.warning_on("", object, reason).await
    }

    /// Waits for a Kubernetes Event with this reason on an object of this kind; of any kind if that is empty.
    pub(crate) async fn warning_on(&self, kind: &str, object: &str, reason: &str) -> Event {
        let api: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        testkit::eventually(&format!("{reason} on {object}"), TIMEOUT, || async {
            let all = api.list(&ListParams::default()).await?.items;
            let mut fits = all.into_iter().filter(|event| {
                event.involved_object.name.as_deref() == Some(object)
                    && (kind.is_empty() || event.involved_object.kind.as_deref() == Some(kind))
                    && event.reason.as_deref() == Some(reason)
            });
            fits.next().ok_or_else(|| anyhow::anyhow!("there is none"))
        })
        .await
        .unwrap()
    }
}

fn alert_spec(provider: &str, more: &Value) -> Value {
    let mut spec = json!({
        "providerRef": {"name": provider}, "eventSources": [{"kind": "GitRepository", "name": "*"}],
    });
    spec.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    spec
}

pub(crate) fn launch() -> Launch {
    Controller::named("notification-controller")
        .program(env!("CARGO_BIN_EXE_notification-controller"))
        .flag("--watch-all-namespaces=false")
}
