//! The repositories and objects of a load.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use testkit::{Repo, git::Commit};

use super::Load;
use crate::cluster::TestCluster;

pub(crate) fn name(index: usize) -> String {
    format!("pair-{index}")
}

/// Returns the objects that a pair deploys: a ConfigMap with a value, and with three objects a Service and a Deployment; or as many
/// ConfigMaps as asked for.
pub(super) fn objects(load: Load, index: usize, value: u32) -> Vec<Value> {
    let name = name(index);
    let config = |name: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"},
               "data": {"value": value.to_string(), "target": "only"}})
    };
    if load.objects == 3 {
        return vec![config(&name), service(&name), workload(&name)];
    }
    (0..load.objects)
        .map(|count| match count {
            0 => config(&name),
            count => config(&format!("{name}-{count}")),
        })
        .collect()
}

fn service(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"},
           "spec": {"selector": {"app": name}, "ports": [{"port": 80, "protocol": "TCP"}]}})
}

fn workload(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "app", "image": "registry.invalid/app:1"}]},
            },
        },
    })
}

/// Returns the repositories of a load: one for each pair, or one with a directory for each deployment.
pub(super) fn repositories(cluster: &TestCluster, load: Load) -> Result<Vec<Repo>> {
    let indexes = 0..load.sources();
    indexes.map(|index| repository(cluster, load, index)).collect()
}

pub(crate) fn repository(cluster: &TestCluster, load: Load, index: usize) -> Result<Repo> {
    let name = name(index);
    let repo = cluster.git.repo(&name)?;
    let project = format!("discriminator: {name}\ntargets:\n  - name: only\n    context: default\n");
    let change = repo
        .change("A small project")
        .write(".kluctl.yaml", project)
        .write("deployment.yaml", "deployments:\n  - path: app\n");
    with_objects(change, load, index, 1).push()?;
    Ok(repo)
}

/// Writes the objects of all deployments that follow the repository with this index.
fn with_objects(change: Commit, load: Load, index: usize, value: u32) -> Commit {
    let of_source = (0..load.pairs).filter(|deployment| load.source_of(*deployment) == index);
    of_source.fold(change, |change, deployment| {
        let path = format!("{}/objects.yaml", load.directory(deployment));
        change.write(&path, documents(&objects(load, deployment, value)))
    })
}

/// Returns the newest commit for each deployment.
pub(super) fn heads(load: Load, repos: &[Repo]) -> Result<BTreeMap<String, String>> {
    let commits: Vec<String> = repos.iter().map(|repo| repo.rev("main")).collect::<Result<_>>()?;
    let head = |index| {
        let commit = commits
            .get(load.source_of(index))
            .context("a repository is missing")?;
        Ok((name(index), commit.clone()))
    };
    (0..load.pairs).map(head).collect()
}

pub(super) fn announcement(number: u32) -> Value {
    let requested = format!("push {number}");
    json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": requested}}})
}

/// Pushes another value, which is one more than the number of the push, to the repository with this index.
pub(super) fn push(load: Load, index: usize, number: u32, repo: &Repo) -> Result<()> {
    let change = repo.change("Another value");
    with_objects(change, load, index, number + 1).push()?;
    Ok(())
}

fn documents(objects: &[Value]) -> String {
    let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
    texts.join("\n---\n")
}
