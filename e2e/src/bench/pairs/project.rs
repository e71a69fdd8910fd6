//! The repositories and objects of a load.

use anyhow::Result;
use serde_json::{Value, json};
use testkit::Repo;

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

pub(crate) fn repository(cluster: &TestCluster, load: Load, index: usize) -> Result<Repo> {
    let name = name(index);
    let repo = cluster.git.repo(&name)?;
    let project = format!("discriminator: {name}\ntargets:\n  - name: only\n    context: default\n");
    repo.change("A small project")
        .write(".kluctl.yaml", project)
        .write("deployment.yaml", "deployments:\n  - path: app\n")
        .write("app/objects.yaml", documents(&objects(load, index, 1)))
        .push()?;
    Ok(repo)
}

pub(super) fn announcement(number: u32) -> Value {
    let requested = format!("push {number}");
    json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": requested}}})
}

/// Pushes another value, which is one more than the number of the push, to the repository of a pair, and returns the commit.
pub(super) fn push(load: Load, index: usize, number: u32, repo: &Repo) -> Result<String> {
    let change = repo.change("Another value");
    change
        .write("app/objects.yaml", documents(&objects(load, index, number + 1)))
        .push()
}

fn documents(objects: &[Value]) -> String {
    let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
    texts.join("\n---\n")
}
