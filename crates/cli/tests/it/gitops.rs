//! `weir gitops` against a real API server. Most tests play the controller, by its reads and writes there.

mod controller;
mod double;
mod local;
mod logs;
mod requests;
mod selecting;
mod suite;
mod suite_requests;
mod suite_sources;

use std::{path::Path, process::Output, time::Duration};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject},
    core::GroupVersionKind,
};
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use testkit::{ControlPlane, Options};
use tokio::sync::OnceCell;

use crate::{
    commands::{stderr, weir},
    program::files,
};

const TIMEOUT: Duration = testkit::WAIT_TIMEOUT;

static PLANE: OnceCell<ControlPlane> = OnceCell::const_new();

/// The control plane of these tests, with all definitions.
pub(crate) async fn plane() -> Result<&'static ControlPlane> {
    let start = || async {
        let plane = ControlPlane::start(Options::default()).await?;
        install_crds(&plane).await?;
        anyhow::Ok(plane)
    };
    PLANE.get_or_try_init(start).await
}

async fn install_crds(plane: &ControlPlane) -> Result<()> {
    let crds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds");
    plane.install_crds(&crds).await?;
    Ok(())
}

struct Fixture {
    plane: &'static ControlPlane,
    namespace: String,
    /// Namespace of the stored results.
    results: String,
    dir: TempDir,
    /// URL of the repository.
    url: String,
}

impl Fixture {
    /// Creates a namespace, and the checkout of a project with a ConfigMap in its directory `deploy`.
    async fn new(prefix: &str) -> Result<Self> {
        let namespace = plane().await?.namespace(prefix).await?;
        // No other test has it.
        let url = format!("https://example.invalid/team/{namespace}.git");
        Self::of_repository(plane().await?, namespace, url)
    }

    /// Creates the checkout of a project in a repository.
    fn of_repository(plane: &'static ControlPlane, namespace: String, url: String) -> Result<Self> {
        let map = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: '{{{{ args.name }}}}', namespace: {namespace}}}\ndata: {{a: '{{{{ args.a }}}}'}}\n"
        );
        let config = format!(
            "discriminator: {namespace}\nargs: [{{name: a, default: '1'}}, {{name: name, default: m}}]\n"
        );
        let dir = files(&[
            ("deploy/.kluctl.yaml", config.as_str()),
            ("deploy/deployment.yaml", "deployments: [{path: app}]"),
            ("deploy/app/m.yaml", &map),
        ]);
        let fixture = Self {
            plane,
            results: format!("{namespace}-results"),
            dir,
            namespace,
            url,
        };
        fixture.git(&["init", "-q"])?;
        fixture.git(&["remote", "add", "origin", &fixture.url])?;
        Ok(fixture)
    }

    fn git(&self, args: &[&str]) -> Result<()> {
        let mut command = std::process::Command::new("git");
        let status = command.args(args).current_dir(self.dir.path()).status()?;
        ensure!(status.success(), "git {args:?}");
        Ok(())
    }

    /// Creates a KluctlDeployment of the project.
    async fn deployment(&self, name: &str, spec: Json) -> Result<()> {
        let mut object = json!({
            "apiVersion": "gitops.kluctl.io/v1beta1", "kind": "KluctlDeployment",
            "metadata": {"name": name, "namespace": self.namespace, "labels": {"of": name}},
            "spec": {"interval": "1h", "source": {"git": {"url": self.url, "path": "deploy"}}},
        });
        if let (Some(all), Some(more)) = (object["spec"].as_object_mut(), spec.as_object()) {
            all.extend(more.clone());
        }
        self.plane.apply(object).await?;
        Ok(())
    }

    async fn live(&self, name: &str) -> Result<Json> {
        let live = deployments(self.plane, &self.namespace).await?.get(name).await?;
        Ok(serde_json::to_value(live)?)
    }

    async fn gitops(&self, words: &str) -> Result<Output> {
        self.run(&format!("gitops {words}")).await
    }

    async fn run(&self, words: &str) -> Result<Output> {
        let mut command = weir(&self.dir.path().join("deploy"), words);
        command.env("KUBECONFIG", self.plane.kubeconfig());
        // It ends with the test that waits for it.
        let mut command = tokio::process::Command::from(command);
        command.kill_on_drop(true).output().await.context("run weir")
    }
}

async fn deployments(plane: &ControlPlane, namespace: &str) -> Result<Api<DynamicObject>> {
    let kind = GroupVersionKind::gvk("gitops.kluctl.io", "v1beta1", "KluctlDeployment");
    let resource = ApiResource::from_gvk(&kind);
    Ok(Api::namespaced_with(plane.client().await?, namespace, &resource))
}

async fn config_map(plane: &ControlPlane, namespace: &str, name: &str) -> Result<Option<ConfigMap>> {
    let maps: Api<ConfigMap> = Api::namespaced(plane.client().await?, namespace);
    Ok(maps.get_opt(name).await?)
}

async fn delete_config_map(plane: &ControlPlane, namespace: &str, name: &str) -> Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(plane.client().await?, namespace);
    maps.delete(name, &DeleteParams::default()).await?;
    Ok(())
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn succeeded(output: &Output) -> Result<String> {
    ensure!(output.status.success(), "{}{}", stdout(output), stderr(output));
    Ok(stdout(output))
}

fn failed(output: &Output) -> Result<String> {
    ensure!(
        output.status.code() == Some(1),
        "{:?} {}{}",
        output.status,
        stdout(output),
        stderr(output)
    );
    Ok(stderr(output))
}
