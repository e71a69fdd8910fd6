//! A control plane with the controllers, a Git server and a webhook.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context as _, Result};
use api::{
    Condition, annotation, condition_type, conditions,
    kluctl::KluctlDeployment,
    kustomize::{Kustomization, KustomizationStatus},
    source::GitRepository,
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use testkit::{ControlPlane, Controller, GitServer, Options, WebhookSink, stack, wait_for};

pub use stack::{CONTROLLERS, NAMESPACE};

/// Timeout of everything that is waited for, on a busy machine.
pub const TIMEOUT: Duration = testkit::WAIT_TIMEOUT;

pub struct TestCluster {
    /// The started controllers, in the order of their start. They end before the control plane.
    pub controllers: Vec<Controller>,
    pub plane: ControlPlane,
    pub git: GitServer,
    pub sink: WebhookSink,
    pub client: Client,
}

impl std::fmt::Debug for TestCluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestCluster")
            .field("plane", &self.plane)
            .finish_non_exhaustive()
    }
}

impl TestCluster {
    /// Starts a control plane with CRDs and RBAC, and no controllers.
    pub async fn bare() -> Result<Self> {
        Self::with(Options::default()).await
    }

    /// Starts the same with options.
    pub async fn with(options: Options) -> Result<Self> {
        let plane = ControlPlane::start(options).await?;
        let (git, sink, client) = (GitServer::start()?, WebhookSink::start()?, plane.client().await?);
        stack::install(&plane).await?;
        Ok(Self {
            plane,
            git,
            sink,
            controllers: Vec::new(),
            client,
        })
    }

    /// Starts a controller as its own service account, with additional flags.
    pub async fn start(&mut self, name: &str, flags: &[&str]) -> Result<()> {
        let mut launch = stack::launch(&self.plane, name).await?;
        if let Some(notification) = self.find("notification-controller") {
            launch = launch.events_to(&notification.events_url());
        }
        for flag in flags {
            launch = launch.flag(flag);
        }
        let controller = launch
            .start()
            .await
            .with_context(|| format!("{name} didn't start"))?;
        self.controllers.push(controller);
        Ok(())
    }

    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Controller> {
        self.controllers
            .iter()
            .find(|controller| controller.name() == name)
    }

    pub fn controller(&self, name: &str) -> Result<&Controller> {
        self.find(name).with_context(|| format!("{name} wasn't started"))
    }

    #[must_use]
    pub fn deployments(&self) -> Api<KluctlDeployment> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    #[must_use]
    pub fn repositories(&self) -> Api<GitRepository> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    #[must_use]
    pub fn kustomizations(&self) -> Api<Kustomization> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub async fn apply_secret(&self, name: &str, data: Value) -> Result<()> {
        let object = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "stringData": data,
        });
        self.plane.apply(object).await.map(|_| ())
    }

    pub async fn apply_repository(&self, name: &str, url: &str, interval: &str) -> Result<()> {
        let object = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1",
            "kind": "GitRepository",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"interval": interval, "url": url, "ref": {"branch": "main"}},
        });
        self.plane.apply(object).await.map(|_| ())
    }

    /// Applies a KluctlDeployment that follows the GitRepository `source` and deploys as [`stack::DEPLOYER`]; `spec` adds to the spec.
    pub async fn apply_deployment(&self, name: &str, source: &str, spec: Value) -> Result<()> {
        let object = json!({
            "apiVersion": "flux.kluctl.io/v1alpha1",
            "kind": "KluctlDeployment",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": source}},
            "spec": following(source, spec),
        });
        self.plane.apply(object).await.map(|_| ())
    }

    pub async fn patch_deployment(&self, name: &str, patch: &Value) -> Result<()> {
        self.deployments()
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }

    /// Applies a Kustomization that follows the GitRepository `source` and deploys as [`stack::DEPLOYER`]; `spec` adds to the spec.
    pub async fn apply_kustomization(&self, name: &str, source: &str, spec: Value) -> Result<()> {
        let object = json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
            "kind": "Kustomization",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": following(source, spec),
        });
        self.plane.apply(object).await.map(|_| ())
    }

    pub async fn patch_kustomization(&self, name: &str, patch: &Value) -> Result<()> {
        self.kustomizations()
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }

    /// Asks for a pass over a GitRepository, as the webhook of a push does.
    pub async fn announce(&self, repository: &str) -> Result<()> {
        let now = jiff::Timestamp::now().to_string();
        let request = json!({"metadata": {"annotations": {annotation::RECONCILE_REQUESTED_AT: now}}});
        self.repositories()
            .patch(repository, &PatchParams::default(), &Patch::Merge(request))
            .await?;
        Ok(())
    }

    /// Waits until a Kustomization has applied this commit, and is Ready.
    pub async fn applied(&self, name: &str, commit: &str) -> Result<Kustomization> {
        let what = format!("Kustomization {name} to be Ready at commit {commit}");
        wait_for(&self.kustomizations(), name, &what, TIMEOUT, |object| {
            has_applied(object, commit)
        })
        .await
        .with_context(|| self.end_of_log("kustomize-controller"))
    }

    /// Returns the last lines of a controller's log.
    fn end_of_log(&self, name: &str) -> String {
        let log = self.find(name).map(Controller::log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(15).collect();
        let lines: Vec<&str> = lines.into_iter().rev().collect();
        format!("{name} last said:\n{}", lines.join("\n"))
    }

    pub async fn fetched(&self, name: &str, commit: &str) -> Result<GitRepository> {
        let what = format!("the artifact of commit {commit}");
        wait_for(&self.repositories(), name, &what, TIMEOUT, |repository| {
            revision_of(repository).is_some_and(|revision| revision.ends_with(commit))
        })
        .await
    }

    /// Waits until the source has an artifact of this commit, and returns its revision and size.
    pub async fn artifact(&self, name: &str, commit: &str) -> Result<String> {
        let status = self.fetched(name, commit).await?.status.unwrap_or_default();
        let artifact = status.artifact.context("no artifact")?;
        let size = artifact.size.unwrap_or_default();
        Ok(format!("{} ({size} bytes)", artifact.revision))
    }

    pub async fn ready(&self, name: &str, commit: &str) -> Result<KluctlDeployment> {
        let what = format!("KluctlDeployment {name} to be Ready at commit {commit}");
        wait_for(&self.deployments(), name, &what, TIMEOUT, |object| {
            is_ready(object) && is_at(object, commit)
        })
        .await
    }

    pub async fn ready_is(
        &self,
        name: &str,
        what: &str,
        mut predicate: impl FnMut(&Condition) -> bool,
    ) -> Result<KluctlDeployment> {
        wait_for(&self.deployments(), name, what, TIMEOUT, |object| {
            ready_condition(object).is_some_and(&mut predicate)
        })
        .await
    }

    /// Stops the controllers gracefully, then the control plane.
    pub async fn stop(self) -> Result<()> {
        for controller in self.controllers.iter().rev() {
            controller.terminate().await?;
        }
        self.stop_plane()
    }

    /// Stops the control plane only, for scenarios that stopped their controllers.
    pub fn stop_plane(self) -> Result<()> {
        drop(self.controllers);
        self.plane.stop()
    }
}

/// Returns the spec of an object that follows the GitRepository `source` and deploys as [`stack::DEPLOYER`], with the fields of `spec`.
fn following(source: &str, spec: Value) -> Value {
    let mut whole = json!({
        "interval": "5s",
        "retryInterval": "5s",
        "timeout": "2m",
        "prune": true,
        "sourceRef": {"kind": "GitRepository", "name": source},
        "serviceAccountName": stack::DEPLOYER,
    });
    if let (Some(whole), Value::Object(spec)) = (whole.as_object_mut(), spec) {
        whole.extend(spec);
    }
    whole
}

#[must_use]
pub fn revision_of(repository: &GitRepository) -> Option<&str> {
    repository
        .status
        .as_ref()?
        .artifact
        .as_ref()
        .map(|artifact| artifact.revision.as_str())
}

#[must_use]
pub fn ready_condition(object: &KluctlDeployment) -> Option<&Condition> {
    conditions::get(&object.status.as_ref()?.conditions, condition_type::READY)
}

#[must_use]
pub fn is_ready(object: &KluctlDeployment) -> bool {
    let observed = object
        .status
        .as_ref()
        .and_then(|status| status.observed_generation);
    observed == object.metadata.generation && ready_condition(object).is_some_and(Condition::is_true)
}

#[must_use]
pub fn is_at(object: &KluctlDeployment, commit: &str) -> bool {
    let revision = object
        .status
        .as_ref()
        .and_then(|status| status.last_attempted_revision.as_deref());
    revision.is_some_and(|revision| revision.ends_with(commit))
}

/// Returns true if a Kustomization is Ready in its newest generation, and this commit is applied.
#[must_use]
pub fn has_applied(object: &Kustomization, commit: &str) -> bool {
    let Some(status) = &object.status else {
        return false;
    };
    let revision = status.last_applied_revision.as_deref();
    status.observed_generation == object.metadata.generation
        && revision.is_some_and(|revision| revision.ends_with(commit))
        && conditions::is_true(&status.conditions, condition_type::READY)
}

/// Returns the identifiers in the inventory of a Kustomization.
#[must_use]
pub fn inventory(object: &Kustomization) -> Vec<String> {
    let inventory = object.status.clone().unwrap_or_default().inventory;
    let entries = inventory.unwrap_or_default().entries.into_iter();
    entries.map(|entry| entry.id).collect()
}

/// Returns the condition Ready of a Kustomization.
#[must_use]
pub fn ready_of(status: &KustomizationStatus) -> Option<&Condition> {
    conditions::get(&status.conditions, condition_type::READY)
}

#[must_use]
pub fn root() -> PathBuf {
    stack::repository()
}
