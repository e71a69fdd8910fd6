//! The demo's steps with the manifests that users of the originals have: three generations of them, changed in nothing but
//! the URL.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context as _, Result, ensure};
use api::{conditions, kluctl::gitops};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams},
};
use serde_json::{Value, json};
use testkit::{Repo, wait_for, wait_gone};

use crate::{
    cluster::{NAMESPACE, TIMEOUT, TestCluster, is_ready},
    report::Report,
};

/// Namespace of the KluctlDeployments of gitops.kluctl.io.
const SYSTEM: &str = "kluctl-system";
/// Directory of the project in the repository that the manifests name.
pub const PROJECT: &str = "microservices-demo/3-templating-and-multi-env";
pub const TARGETS: [&str; 2] = ["test", "prod"];

#[must_use]
pub fn repository(version: &str, url: &str) -> String {
    format!(
        "apiVersion: source.toolkit.fluxcd.io/{version}
kind: GitRepository
metadata:
  name: microservices-demo
  namespace: flux-system
spec:
  interval: 5m
  url: {url}
  ref:
    branch: main
"
    )
}

#[must_use]
pub fn flux_deployment(target: &str) -> String {
    format!(
        "apiVersion: flux.kluctl.io/v1alpha1
kind: KluctlDeployment
metadata:
  name: microservices-demo-{target}
  namespace: flux-system
spec:
  interval: 10m
  path: \"./{PROJECT}/\"
  sourceRef:
    kind: GitRepository
    name: microservices-demo
  timeout: 2m
  target: {target}
  prune: true
  renameContexts:
  - oldContext: default
    newContext: kind-kind
"
    )
}

#[must_use]
pub fn gitops_deployment(target: &str, url: &str) -> String {
    format!(
        "apiVersion: gitops.kluctl.io/v1beta1
kind: KluctlDeployment
metadata:
  name: microservices-demo-{target}
  namespace: kluctl-system
spec:
  interval: 10m
  source:
    git:
      url: {url}
      path: \"./{PROJECT}/\"
  timeout: 2m
  target: {target}
  context: default
  prune: true
"
    )
}

/// Creates the namespaces of the manifests and lets deployments that name no ServiceAccount do everything, as deploy/README.md
/// asks for with the default overlay.
pub async fn prepare(cluster: &TestCluster) -> Result<()> {
    cluster.plane.namespace_named(SYSTEM).await?;
    for namespace in [NAMESPACE, SYSTEM] {
        cluster.plane.apply(binding(namespace)).await?;
    }
    Ok(())
}

fn binding(namespace: &str) -> Value {
    let group = "rbac.authorization.k8s.io";
    json!({
        "apiVersion": format!("{group}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": {"name": format!("{namespace}-default")},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}],
    })
}

/// Creates a repository with a project where the manifests look for it, and returns it with its commit.
pub fn push(cluster: &TestCluster, project: &Path) -> Result<(Repo, String)> {
    let repo = cluster.git.repo("kluctl-examples")?;
    let change = repo.change("The examples").copy_to(project, PROJECT)?;
    let commit = change.push()?;
    Ok((repo, commit))
}

/// Plays all steps with a project. The controllers must be running, and nothing of the project deployed.
pub async fn play(report: &mut Report, cluster: &TestCluster, project: &Path) -> Result<()> {
    prepare(cluster).await?;
    let (repo, commit) = push(cluster, project)?;
    let url = repo.url();
    let mut before = BTreeMap::new();
    report
        .step(
            "manifests of 2021 deploy test and prod, with another URL only",
            async {
                apply_flux(cluster, "v1beta1", &url).await?;
                before = identities(cluster).await?;
                ensure!(!before.is_empty(), "they are Ready, but there are no Deployments");
                Ok(format!("{} Deployments", before.len()))
            },
        )
        .await?;
    report
        .step("those of 2022 replace them", async {
            apply_flux(cluster, "v1beta2", &url).await?;
            same(cluster, &before).await
        })
        .await?;
    report
        .step("deleting suspended ones leaves what they deployed", async {
            leave_objects(cluster).await?;
            same(cluster, &before).await
        })
        .await?;
    report
        .step("those of gitops.kluctl.io take over", async {
            apply_gitops(cluster, &url, &commit).await?;
            same(cluster, &before).await
        })
        .await?;
    remove(cluster).await
}

pub async fn apply_flux(cluster: &TestCluster, version: &str, url: &str) -> Result<()> {
    cluster.plane.apply_yaml(&repository(version, url)).await?;
    for target in TARGETS {
        cluster.plane.apply_yaml(&flux_deployment(target)).await?;
    }
    for target in TARGETS {
        wait_for(
            &cluster.deployments(),
            &name(target),
            "to be Ready",
            TIMEOUT,
            is_ready,
        )
        .await?;
    }
    Ok(())
}

async fn apply_gitops(cluster: &TestCluster, url: &str, commit: &str) -> Result<()> {
    for target in TARGETS {
        cluster.plane.apply_yaml(&gitops_deployment(target, url)).await?;
    }
    for target in TARGETS {
        wait_for(
            &gitops_deployments(cluster),
            &name(target),
            "to be Ready",
            TIMEOUT,
            |object| {
                object.status.as_ref().is_some_and(|status| {
                    conditions::is_true(&status.conditions, "Ready")
                        && status.observed_commit.as_deref() == Some(commit)
                })
            },
        )
        .await?;
    }
    Ok(())
}

/// Deletes the suspended objects of `flux.kluctl.io`, which leaves their deployed objects.
async fn leave_objects(cluster: &TestCluster) -> Result<()> {
    for target in TARGETS {
        let name = name(target);
        cluster
            .patch_deployment(&name, &json!({"spec": {"suspend": true}}))
            .await?;
        let deployments = cluster.deployments();
        deployments.delete(&name, &DeleteParams::default()).await?;
        wait_gone(&deployments, &name, TIMEOUT).await?;
    }
    let repositories = cluster.repositories();
    repositories
        .delete("microservices-demo", &DeleteParams::default())
        .await?;
    wait_gone(&repositories, "microservices-demo", TIMEOUT).await
}

/// Deletes the objects of `gitops.kluctl.io` with all that they deployed.
async fn remove(cluster: &TestCluster) -> Result<()> {
    let deployments = gitops_deployments(cluster);
    for target in TARGETS {
        let delete = kube::api::Patch::Merge(json!({"spec": {"delete": true}}));
        deployments
            .patch(&name(target), &kube::api::PatchParams::default(), &delete)
            .await?;
        deployments
            .delete(&name(target), &DeleteParams::default())
            .await?;
    }
    for target in TARGETS {
        wait_gone(&deployments, &name(target), TIMEOUT).await?;
    }
    testkit::eventually("the workloads to be gone", TIMEOUT, || async {
        let left = identities(cluster).await?;
        ensure!(left.is_empty(), "left: {left:?}");
        Ok(())
    })
    .await
}

fn name(target: &str) -> String {
    format!("microservices-demo-{target}")
}

fn gitops_deployments(cluster: &TestCluster) -> Api<gitops::KluctlDeployment> {
    Api::namespaced(cluster.client.clone(), SYSTEM)
}

/// Compares the UIDs of the workloads with earlier ones.
async fn same(cluster: &TestCluster, before: &BTreeMap<String, String>) -> Result<String> {
    let after = identities(cluster).await?;
    ensure!(*before == after, "before: {before:?}\nafter: {after:?}");
    Ok(format!("the same {} Deployments", after.len()))
}

/// Returns the UIDs of all Deployments with a discriminator, by namespace and name.
async fn identities(cluster: &TestCluster) -> Result<BTreeMap<String, String>> {
    let workloads: Api<Deployment> = Api::all(cluster.client.clone());
    let deployed = ListParams::default().labels("kluctl.io/discriminator");
    let listed = workloads.list(&deployed).await?;
    listed
        .items
        .into_iter()
        .map(|object| {
            let place = format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any());
            Ok((place, object.uid().context("a Deployment has no UID")?))
        })
        .collect()
}
