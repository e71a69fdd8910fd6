//! Helpers for KluctlDeployments of gitops.kluctl.io: a Git server with a project, and requests.

use anyhow::{Context as _, Result};
use api::kluctl::gitops::{KluctlDeployment, KluctlDeploymentStatus, ManualRequestResult};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use testkit::{GitServer, git::Repo, wait_for};

use crate::fixture::{Fixture, TIMEOUT, grant, plane};

/// A fixture with a Git repository.
pub(crate) struct Gitops {
    pub(crate) fixture: Fixture,
    pub(crate) server: GitServer,
    pub(crate) repo: Repo,
}

impl Gitops {
    /// Starts a controller, and a Git server with an empty repository.
    pub(crate) async fn new(prefix: &str) -> Result<Self> {
        Self::with(prefix, &[]).await
    }

    /// Starts a controller with these flags.
    pub(crate) async fn with(prefix: &str, more: &[&str]) -> Result<Self> {
        let results = format!("--command-result-namespace={prefix}-results");
        let all = [&[results.as_str()], more].concat();
        Self::of(Fixture::new(prefix, &all).await?)
    }

    /// Starts a controller with exactly the flags of the original's end-to-end suite, and all rights.
    pub(crate) async fn original(prefix: &str) -> Result<Self> {
        let plane = plane().await?;
        let namespace = plane.namespace(prefix).await?;
        grant(plane, &namespace, "controller", &namespace).await?;
        let results = format!("{namespace}-results");
        Self::of(Fixture::original(plane, namespace, &results, &[]).await?)
    }

    /// Adds a Git server with an empty repository to a running controller.
    pub(crate) fn of(fixture: Fixture) -> Result<Self> {
        let server = GitServer::start()?;
        let repo = server.repo("shop")?;
        Ok(Self {
            fixture,
            server,
            repo,
        })
    }

    /// Stores values in a Secret.
    pub(crate) async fn secret(&self, name: &str, values: Value) -> Result<()> {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "namespace": self.fixture.namespace },
            "stringData": values,
        });
        self.fixture.plane.apply(secret).await?;
        Ok(())
    }

    /// Requests a reconciliation, and waits for it. Returns status, reason and message of Ready, and the error of the preparation.
    pub(crate) async fn outcome(&self, name: &str) -> Result<(String, String, String)> {
        let status = self.reconcile(name).await?;
        let (reason, message) = ready_of(&status);
        let error = status.last_prepare_error.clone().unwrap_or_default();
        Ok((reason.to_owned(), message.to_owned(), error))
    }

    pub(crate) fn api(&self) -> Api<KluctlDeployment> {
        Api::namespaced(self.fixture.client.clone(), &self.fixture.namespace)
    }

    /// Replaces the project by one with these ConfigMaps, and returns the commit.
    pub(crate) fn push(&self, maps: &[(&str, &str)]) -> Result<String> {
        self.push_files(&self.fixture.maps(maps), &[])
    }

    /// Replaces the project by these files, of which the second list wins.
    pub(crate) fn push_files(&self, files: &[(String, String)], more: &[(&str, &str)]) -> Result<String> {
        let mut change = self.repo.change("change").clear();
        for (path, text) in files {
            change = change.write(path, text);
        }
        for (path, text) in more {
            change = change.write(path, text);
        }
        change.push()
    }

    /// Creates an object with this spec, besides source, target and interval.
    pub(crate) async fn create(&self, name: &str, spec: Value) -> Result<()> {
        self.create_with(name, json!({}), spec).await
    }

    /// Creates an object like [`Gitops::create`], with annotations.
    pub(crate) async fn create_with(&self, name: &str, annotations: Value, spec: Value) -> Result<()> {
        let mut whole = json!({
            "interval": "1h", "retryInterval": "1h", "target": "test", "context": "default",
            "source": { "git": { "url": self.repo.url() } },
        });
        for (key, value) in spec.as_object().context("a map")? {
            whole[key] = value.clone();
        }
        let whole = whole.as_object_mut().context("a map")?;
        whole.retain(|_, value| !value.is_null());
        let object = json!({
            "apiVersion": "gitops.kluctl.io/v1beta1", "kind": "KluctlDeployment",
            "metadata": { "name": name, "namespace": self.fixture.namespace, "annotations": annotations },
            "spec": whole,
        });
        self.fixture.plane.apply(object).await?;
        Ok(())
    }

    /// Changes fields of the spec.
    pub(crate) async fn change(&self, name: &str, spec: Value) -> Result<()> {
        let patch = Patch::Merge(json!({ "spec": spec }));
        self.api().patch(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Waits until Ready has this reason for the newest generation.
    pub(crate) async fn ready(&self, name: &str, reason: &str) -> Result<KluctlDeploymentStatus> {
        let what = format!("Ready with {reason}");
        let api = self.api();
        let found = wait_for(&api, name, &what, TIMEOUT, |object| {
            let status = object.status.as_ref();
            let observed = status.and_then(|status| status.observed_generation);
            observed == object.metadata.generation
                && status.is_some_and(|status| ready_of(status).0 == reason)
        });
        found.await?.status.context("a status")
    }

    /// Requests something with these overrides, and waits for the result.
    pub(crate) async fn request(
        &self,
        name: &str,
        kind: &str,
        overrides: Value,
    ) -> Result<(KluctlDeploymentStatus, ManualRequestResult)> {
        let value = format!("{:x}", fastrand::u64(..));
        let mut request = json!({ "requestValue": value });
        if !overrides.is_null() {
            request["overridesPatch"] = json!({ "spec": overrides });
        }
        let annotation = format!("kluctl.io/request-{kind}");
        let patch =
            Patch::Merge(json!({ "metadata": { "annotations": { annotation: request.to_string() } } }));
        self.api().patch(name, &PatchParams::default(), &patch).await?;
        let result = |object: &KluctlDeployment| {
            let status = object.status.as_ref()?;
            let result = match kind {
                "reconcile" => status.reconcile_request_result.as_ref()?,
                "diff" => status.diff_request_result.as_ref()?,
                "deploy" => status.deploy_request_result.as_ref()?,
                "prune" => status.prune_request_result.as_ref()?,
                _ => status.validate_request_result.as_ref()?,
            };
            let is_done = result.request.request_value == value && result.end_time.is_some();
            is_done.then(|| result.clone())
        };
        let what = format!("the result of {kind}");
        let found = wait_for(&self.api(), name, &what, TIMEOUT, |object| {
            result(object).is_some()
        })
        .await?;
        let found_result = result(&found).context("a result")?;
        Ok((found.status.context("a status")?, found_result))
    }

    /// Requests a reconciliation, and waits for it.
    pub(crate) async fn reconcile(&self, name: &str) -> Result<KluctlDeploymentStatus> {
        Ok(self.request(name, "reconcile", Value::Null).await?.0)
    }

    /// Returns the value in a ConfigMap; `None` if there is none.
    pub(crate) async fn value(&self, name: &str) -> Result<Option<String>> {
        let map = self.fixture.config_maps().get_opt(name).await?;
        Ok(map.and_then(|map| map.data?.get("value").cloned()))
    }
}

/// Returns reason and message of Ready.
pub(crate) fn ready_of(status: &KluctlDeploymentStatus) -> (&str, &str) {
    let ready = status
        .conditions
        .iter()
        .find(|condition| condition.type_ == "Ready");
    ready.map_or(("", ""), |ready| (ready.reason.as_str(), ready.message.as_str()))
}
