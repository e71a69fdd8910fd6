//! The real process against a real control plane and real Git servers.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests, outside of test functions"
)]

mod artifacts;
mod bucket;
mod bucket_clouds;
mod bucket_failures;
mod consumers;
mod contents;
mod failures;
mod faults;
mod flags;
mod github;
mod helm_chart;
mod helm_chart_hostile;
mod helm_chart_waiting;
mod helm_repository;
mod hostile;
mod identities;
mod lifecycle;
mod notation;
mod objects;
mod oci;
mod progress;
mod shared;
mod shared_store;
mod signatures;
mod temp_files;
mod transports;
mod volumes;

use std::{sync::Arc, time::Duration};

use api::{condition_type as types, conditions, source::GitRepository};
use artifact::{ArtifactCache, Unpacked, fetch::Limits};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use testkit::{ControlPlane, Controller, controller::Launch, wait_for};
use tokio_util::sync::CancellationToken;
use tree::{Tree, TreePath};

const TIMEOUT: Duration = testkit::WAIT_TIMEOUT;

struct TestNamespace {
    plane: &'static ControlPlane,
    namespace: String,
    controller: Controller,
    api: Api<GitRepository>,
}

async fn plane() -> &'static ControlPlane {
    ControlPlane::shared_with_crds().await.unwrap()
}

impl TestNamespace {
    async fn start() -> Self {
        Self::start_with(|launch| launch).await
    }

    async fn start_with(change: impl FnOnce(Launch) -> Launch) -> Self {
        Self::start_of(|launch| change(launch.flag("--watch-all-namespaces=false"))).await
    }

    /// Starts one that watches all namespaces unless `change` says otherwise.
    async fn start_of(change: impl FnOnce(Launch) -> Launch) -> Self {
        let namespace = plane().await.namespace("source").await.unwrap();
        Self::start_in(namespace, change).await
    }

    /// Starts one in an existing namespace.
    async fn start_in(namespace: String, change: impl FnOnce(Launch) -> Launch) -> Self {
        let plane = plane().await;
        let launch = Controller::named("source-controller")
            .program(env!("CARGO_BIN_EXE_source-controller"))
            .run_by(plane.kubeconfig())
            .namespace(&namespace)
            .flag("--min-retry-delay=100ms")
            .flag("--max-retry-delay=1s");
        let controller = change(launch).start().await.unwrap();
        let api = Api::namespaced(plane.client().await.unwrap(), &namespace);
        Self {
            plane,
            namespace,
            controller,
            api,
        }
    }

    /// Applies a GitRepository with this spec and defaults.
    async fn apply(&self, name: &str, url: &str, spec: Value) {
        self.apply_version("v1", name, url, spec).await;
    }

    async fn apply_version(&self, version: &str, name: &str, url: &str, spec: Value) {
        let mut whole = json!({"url": url, "interval": "1h", "ref": {"branch": "main"}});
        whole
            .as_object_mut()
            .unwrap()
            .extend(spec.as_object().unwrap().clone());
        let object = json!({
            "apiVersion": format!("source.toolkit.fluxcd.io/{version}"), "kind": "GitRepository",
            "metadata": {"name": name, "namespace": self.namespace}, "spec": whole,
        });
        self.plane.apply(object).await.unwrap();
    }

    async fn secret(&self, name: &str, data: Value) {
        let object = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": name, "namespace": self.namespace}, "stringData": data,
        });
        self.plane.apply(object).await.unwrap();
    }

    async fn patch(&self, name: &str, patch: Value) {
        self.api
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap();
    }

    /// Requests a pass.
    async fn request(&self, name: &str, value: &str) {
        let annotations = json!({"reconcile.fluxcd.io/requestedAt": value});
        self.patch(name, json!({"metadata": {"annotations": annotations}}))
            .await;
    }

    async fn wait(
        &self,
        name: &str,
        what: &str,
        condition: impl FnMut(&GitRepository) -> bool,
    ) -> GitRepository {
        let waited = wait_for(&self.api, name, what, TIMEOUT, condition).await;
        waited.unwrap_or_else(|error| panic!("{error:#}\n{}", self.controller.log()))
    }

    async fn wait_ready(&self, name: &str) -> GitRepository {
        self.wait(name, "it to be ready", |object| {
            ready(object, "True") && is_done(object)
        })
        .await
    }

    /// Waits until the object failed with this reason and a message that contains this string.
    async fn wait_failed(&self, name: &str, reason: &str, text: &str) -> GitRepository {
        let what = format!("it to fail with {reason}: {text}");
        self.wait(name, &what, |object| {
            condition(object, types::READY).is_some_and(|ready| {
                ready.is_false() && ready.reason == reason && ready.message.contains(text)
            })
        })
        .await
    }

    /// Downloads the artifact of the status.
    async fn fetch(&self, object: &GitRepository) -> Files {
        fetch_artifact(&artifact_of(object)).await
    }

    async fn kubectl(&self, args: &[&str]) -> String {
        let args = [args, &["--namespace", &self.namespace]].concat();
        self.plane.kubectl(&args).await.unwrap()
    }

    /// Reasons and messages of the events on an object.
    async fn events(&self, name: &str) -> Vec<(String, String, String)> {
        let api: Api<k8s_openapi::api::core::v1::Event> =
            Api::namespaced(self.plane.client().await.unwrap(), &self.namespace);
        let listed = api.list(&kube::api::ListParams::default()).await.unwrap();
        let own = listed
            .items
            .into_iter()
            .filter(|event| event.involved_object.name.as_deref() == Some(name));
        own.map(|event| {
            let text = Option::unwrap_or_default;
            (text(event.type_), text(event.reason), text(event.message))
        })
        .collect()
    }

    async fn wait_event(&self, name: &str, reason: &str) -> (String, String, String) {
        testkit::eventually(&format!("an event {reason}"), TIMEOUT, || async {
            let events = self.events(name).await;
            let found = events.iter().find(|event| event.1 == reason).cloned();
            found.ok_or_else(|| anyhow::anyhow!("{events:?}"))
        })
        .await
        .unwrap()
    }

    /// The directory of an object's artifacts.
    fn dir(&self, name: &str) -> std::path::PathBuf {
        self.controller
            .storage_path()
            .join("gitrepository")
            .join(&self.namespace)
            .join(name)
    }
}

fn condition<'a>(object: &'a GitRepository, name: &str) -> Option<&'a api::Condition> {
    conditions::get(&object.status.as_ref()?.conditions, name)
}

fn ready(object: &GitRepository, status: &str) -> bool {
    condition(object, types::READY).is_some_and(|ready| ready.status.as_str() == status)
}

/// Returns true if nothing is in progress and the status is of this generation.
fn is_done(object: &GitRepository) -> bool {
    let observed = object
        .status
        .as_ref()
        .and_then(|status| status.observed_generation);
    observed == object.metadata.generation && condition(object, types::RECONCILING).is_none()
}

fn artifact_of(object: &GitRepository) -> api::Artifact {
    object.status.as_ref().unwrap().artifact.clone().unwrap()
}

fn revision(object: &GitRepository) -> String {
    object
        .status
        .as_ref()
        .and_then(|status| status.artifact.clone())
        .unwrap_or_default()
        .revision
}

async fn fetch_artifact(artifact: &api::Artifact) -> Files {
    let dir = tempfile::tempdir().unwrap();
    let policy = net::AddressPolicy::command_line();
    let fetcher = ArtifactCache::new(dir.path(), None, Limits::default(), policy).unwrap();
    let fetched = fetcher.fetch(artifact, TIMEOUT, &CancellationToken::new()).await;
    Files {
        unpacked: fetched.unwrap(),
        _dir: dir,
    }
}

struct Files {
    unpacked: Arc<Unpacked>,
    _dir: tempfile::TempDir,
}

impl Files {
    fn read(&self, path: &str) -> String {
        let bytes = self.unpacked.read(&TreePath::parse(path).unwrap()).unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    fn names(&self, dir: &str) -> Vec<String> {
        let listed = self.unpacked.list(&TreePath::parse(dir).unwrap()).unwrap();
        listed.into_iter().map(|entry| entry.name).collect()
    }
}
