//! The rules of statuses, broken by a controller that the test plays itself.

use std::panic::{AssertUnwindSafe, catch_unwind};

use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::json;
use testkit::{ControlPlane, Controller, FaultProxy, eventually};

const TIMEOUT: std::time::Duration = testkit::WAIT_TIMEOUT;

/// A source in a namespace that a controller watches alone.
struct Source {
    plane: &'static ControlPlane,
    api: Api<DynamicObject>,
    namespace: String,
}

impl Source {
    async fn new() -> Self {
        let plane = ControlPlane::shared().await.expect("starts");
        let crd = serde_json::to_value(api::crd::git_repository()).expect("is JSON");
        plane.apply(crd).await.expect("is applied");
        let namespace = plane.namespace("statuses").await.expect("is made");
        let object = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"name": "shop", "namespace": namespace},
            "spec": {"url": "https://h/r", "interval": "1m"},
        });
        let applied = eventually("the kind", TIMEOUT, || plane.apply(object.clone()));
        applied.await.expect("is applied");
        let (api, _) = plane.api_for(object).await.expect("is known");
        Self {
            plane,
            api,
            namespace,
        }
    }

    fn controller(&self, kubeconfig: &std::path::Path) -> Controller {
        Controller::named("source-controller")
            .program(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/stand-in.sh"))
            .run_by(kubeconfig)
            .namespace(&self.namespace)
            .flag("--watch-all-namespaces=false")
            .spawn()
            .expect("starts")
    }

    async fn write(&self, manager: &str, ready: &str) {
        let condition = json!({
            "type": "Ready", "status": ready, "reason": "Succeeded", "message": "m", "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let status = json!({"status": {"observedGeneration": 1, "conditions": [condition]}});
        let params = PatchParams {
            field_manager: Some(manager.to_owned()),
            ..PatchParams::default()
        };
        let patch = Patch::Merge(status);
        let written = self.api.patch_status("shop", &params, &patch).await;
        written.expect("is written");
    }
}

/// Ends a controller, and returns the message if that panics.
fn end(controller: Controller) -> Option<String> {
    let ended = catch_unwind(AssertUnwindSafe(|| drop(controller)));
    let panicked = ended.err()?;
    panicked.downcast_ref::<String>().cloned()
}

#[tokio::test]
async fn controller_that_writes_a_bad_status_fails_its_test() {
    let source = Source::new().await;
    let mark = source.plane.audit_mark();
    let controller = source.controller(source.plane.kubeconfig());
    source.write("source-controller", "Unknown").await;
    // The last status is sound, but each one counts.
    source.write("source-controller", "True").await;
    let message = end(controller).expect("panics");
    assert!(
        message.contains("GitRepository statuses-") && message.contains("FAIL0011 by Ready"),
        "{message}"
    );
    let mut asked = source.plane.audit_since(mark).expect("is read");
    // The controller-manager watches every kind, too, some time after it appears, and other tests the objects of their namespace.
    asked.retain(|entry| entry.verb == "watch" && entry.resource == "gitrepositories");
    asked.retain(|entry| entry.user == "admin" && entry.namespace.is_empty());
    assert_eq!(asked, [], "the watch is not in the audit log");
}

#[tokio::test]
async fn sound_statuses_and_those_of_others_pass() {
    let source = Source::new().await;
    let controller = source.controller(source.plane.kubeconfig());
    source.write("source-controller", "True").await;
    source.write("somebody", "Unknown").await;
    assert_eq!(end(controller), None);
}

#[tokio::test]
async fn controller_behind_a_proxy_is_checked_too() {
    let source = Source::new().await;
    let proxy = FaultProxy::start(source.plane).expect("starts");
    let kubeconfig = proxy.kubeconfig(source.plane.kubeconfig()).expect("is written");
    let controller = source.controller(&kubeconfig);
    source.write("source-controller", "Unknown").await;
    assert!(end(controller).is_some());
}
