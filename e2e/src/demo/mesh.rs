//! The demo's steps for Kustomizations: a service mesh, and a web app that depends on it, with manifests of 2021.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use api::kustomize::Kustomization;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Namespace};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams},
};
use testkit::{Repo, eventually, wait_for, wait_gone};

use super::eras;
use crate::{
    cluster::{NAMESPACE, TIMEOUT, TestCluster, inventory, ready_of, root},
    report::Report,
};

const ISTIO: &str = "istio";
const WEBAPP: [&str; 3] = ["webapp-common", "webapp-backend", "webapp-frontend"];
/// Namespace of the app.
const APP: &str = "webapp";
const BACKEND: &str = "webapp/backend/deployment.yaml";
const FRONTEND: &str = "webapp/frontend/deployment.yaml";

struct Mesh<'a> {
    cluster: &'a TestCluster,
    folder: PathBuf,
    istio: Repo,
    webapp: Repo,
}

/// Deploys the example `mesh`, changes and breaks it, and removes it. It needs the source-controller and the kustomize-controller.
pub async fn play(report: &mut Report, cluster: &TestCluster) -> Result<()> {
    eras::prepare(cluster).await?;
    let mesh = Mesh {
        cluster,
        folder: root().join("examples/mesh"),
        istio: cluster.git.repo("gitops-istio")?,
        webapp: cluster.git.repo("webapp-deploy")?,
    };
    report
        .step(
            "Kustomizations of 2021: a web app waits for a mesh",
            mesh.waiting(),
        )
        .await?;
    report
        .step(
            "the mesh defines kinds and uses them, and the app follows in its order",
            mesh.chain(),
        )
        .await?;
    report
        .step(
            "a commit changes one of its services, and no other",
            mesh.change(),
        )
        .await?;
    report
        .step(
            "one refused manifest, and nothing of its Kustomization is applied",
            mesh.refusal(),
        )
        .await?;
    report
        .step(
            "app and mesh are deleted with all that they applied",
            mesh.removal(),
        )
        .await
}

impl Mesh<'_> {
    async fn apply(&self, file: &str, repo: &Repo) -> Result<()> {
        let text = read(&self.folder.join(file))?;
        let placeholder = text.lines().find_map(|line| line.trim().strip_prefix("url: "));
        let placeholder = placeholder.with_context(|| format!("{file} has no source"))?;
        let text = text.replace(placeholder, &repo.url());
        self.cluster.plane.apply_yaml(&text).await
    }

    fn push(&self, repo: &Repo, folder: &str) -> Result<String> {
        repo.change("The example").copy(&self.folder.join(folder))?.push()
    }

    /// Pushes the app with one passage of a file replaced, and announces it.
    async fn edit(&self, path: &str, from: &str, to: &str) -> Result<String> {
        let text = read(&self.folder.join("webapp-deploy").join(path))?;
        ensure!(text.contains(from), "{path} doesn't contain {from:?}");
        let change = self
            .webapp
            .change("A change")
            .write(path, text.replacen(from, to, 1));
        let commit = change.push()?;
        self.cluster.announce("webapp").await?;
        Ok(commit)
    }

    fn workloads(&self, namespace: &str) -> Api<Deployment> {
        Api::namespaced(self.cluster.client.clone(), namespace)
    }

    async fn all_applied(&self, commit: &str) -> Result<Vec<Kustomization>> {
        let mut all = Vec::new();
        for name in WEBAPP {
            all.push(self.cluster.applied(name, commit).await?);
        }
        Ok(all)
    }

    async fn waiting(&self) -> Result<String> {
        self.push(&self.webapp, "webapp-deploy")?;
        self.apply("webapp.yaml", &self.webapp).await?;
        let object = self.not_ready(WEBAPP[0], "DependencyNotReady", ISTIO).await?;
        let namespaces: Api<Namespace> = Api::all(self.cluster.client.clone());
        ensure!(
            namespaces.get_opt(APP).await?.is_none(),
            "the app didn't wait for the mesh"
        );
        Ok(message(&object))
    }

    async fn not_ready(&self, name: &str, reason: &str, part: &str) -> Result<Kustomization> {
        let what = format!("{name} to say {reason}");
        wait_for(&self.cluster.kustomizations(), name, &what, TIMEOUT, |object| {
            let ready = object.status.as_ref().and_then(ready_of);
            ready.is_some_and(|ready| {
                ready.is_false() && ready.reason == reason && ready.message.contains(part)
            })
        })
        .await
    }

    async fn chain(&self) -> Result<String> {
        let commit = self.push(&self.istio, "gitops-istio")?;
        self.apply("istio.yaml", &self.istio).await?;
        let mesh = self.cluster.applied(ISTIO, &commit).await?;
        let of_mesh = inventory(&mesh);
        for id in [
            "_routes.mesh.example.com_apiextensions.k8s.io_CustomResourceDefinition",
            "_sidecar_mesh.example.com_MeshClass",
            "istio-system_public_mesh.example.com_Gateway",
        ] {
            ensure!(of_mesh.iter().any(|found| found == id), "no {id} in {of_mesh:?}");
        }
        let app = self.all_applied(&self.webapp.rev("main")?).await?;
        let [istiod, backend, frontend] = [("istio-system", "istiod"), (APP, "backend"), (APP, "frontend")];
        let mut created = Vec::new();
        for (namespace, name) in [istiod, backend, frontend] {
            let workload = self.workloads(namespace).get(name).await?;
            created.push(workload.creation_timestamp().context("no time")?);
        }
        ensure!(created.is_sorted(), "created in another order: {created:?}");
        let of_app: usize = app.iter().map(|object| inventory(object).len()).sum();
        Ok(format!(
            "{} objects of the mesh, {of_app} of the app",
            of_mesh.len()
        ))
    }

    async fn change(&self) -> Result<String> {
        let version = |workload: &Deployment| workload.metadata.resource_version.clone();
        let backend = version(&self.workloads(APP).get("backend").await?);
        let commit = self.edit(FRONTEND, "frontend:5.0.0", "frontend:5.1.0").await?;
        self.all_applied(&commit).await?;
        let frontend = self.workloads(APP).get("frontend").await?;
        ensure!(
            frontend.metadata.generation == Some(2),
            "the frontend has not changed"
        );
        let now = version(&self.workloads(APP).get("backend").await?);
        ensure!(now == backend, "the backend was written");
        Ok("the frontend is at 5.1.0; all three are Ready at the commit".to_owned())
    }

    async fn refusal(&self) -> Result<String> {
        let port = "webapp/backend/service.yaml";
        let text = read(&self.folder.join("webapp-deploy").join(port))?;
        self.webapp
            .change("Another port")
            .write(port, text.replace("9898", "9899"))
            .push()?;
        self.edit(BACKEND, "replicas: 2", "replicas: -2").await?;
        let refused = "Deployment/webapp/backend dry-run failed";
        let object = self
            .not_ready("webapp-backend", "ValidationFailed", refused)
            .await?;
        let services: Api<k8s_openapi::api::core::v1::Service> =
            Api::namespaced(self.cluster.client.clone(), APP);
        let ports = services
            .get("backend")
            .await?
            .spec
            .and_then(|spec| spec.ports)
            .unwrap_or_default();
        ensure!(
            ports.iter().all(|port| port.port == 9898),
            "the Service was applied: {ports:?}"
        );
        let commit = self.edit(BACKEND, "replicas: 2", "replicas: 3").await?;
        self.all_applied(&commit).await?;
        Ok(message(&object))
    }

    async fn removal(&self) -> Result<String> {
        for name in WEBAPP.iter().rev().chain([&ISTIO]) {
            self.cluster
                .kustomizations()
                .delete(name, &DeleteParams::default())
                .await?;
            wait_gone(&self.cluster.kustomizations(), name, TIMEOUT).await?;
        }
        for name in [ISTIO, "webapp"] {
            self.cluster
                .repositories()
                .delete(name, &DeleteParams::default())
                .await?;
        }
        let owned = format!("kustomize.toolkit.fluxcd.io/namespace={NAMESPACE}");
        let (all, of_all) = (ListParams::default(), ListParams::default().labels(&owned));
        eventually("the objects to be gone", TIMEOUT, || async {
            let workloads: Api<Deployment> = Api::all(self.cluster.client.clone());
            let namespaces: Api<Namespace> = Api::all(self.cluster.client.clone());
            let left = workloads.list(&of_all).await?.items.len();
            ensure!(left == 0, "{left} Deployments are left");
            let left = namespaces.list(&all).await?.items;
            let left = left
                .iter()
                .filter(|namespace| namespace.metadata.deletion_timestamp.is_none());
            let left: Vec<String> = left.map(|namespace| namespace.name_any()).collect();
            ensure!(
                !left.iter().any(|name| name == APP || name == "istio-system"),
                "{left:?}"
            );
            Ok(())
        })
        .await?;
        Ok("all are gone".to_owned())
    }
}

fn message(object: &Kustomization) -> String {
    let ready = object.status.as_ref().and_then(ready_of);
    ready.map(|ready| ready.message.clone()).unwrap_or_default()
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()))
}
