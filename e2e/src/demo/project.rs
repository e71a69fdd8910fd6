//! The demo's steps for any kluctl project: deploy, push, delete.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use api::kluctl::KluctlDeployment;
use kube::ResourceExt as _;
use serde_json::json;
use testkit::wait_gone;

use crate::{
    cluster::{TIMEOUT, TestCluster, is_at},
    report::Report,
};

#[derive(Debug)]
pub struct Project<'a> {
    /// Folder that becomes the Git repository.
    pub example: &'a Path,
    pub path: &'a str,
    pub targets: Vec<&'a str>,
}

pub async fn play(report: &mut Report, cluster: &TestCluster, project: &Project<'_>) -> Result<()> {
    let repo = cluster.git.repo("example")?;
    let first = repo
        .change("The project as it is")
        .copy(project.example)?
        .push()?;
    let names: Vec<String> = project
        .targets
        .iter()
        .map(|target| format!("example-{target}"))
        .collect();
    let context = context_of(project)?;

    report
        .step("a GitRepository becomes an artifact", async {
            cluster.apply_repository("example", &repo.url(), "2s").await?;
            cluster.artifact("example", &first).await
        })
        .await?;
    for (target, name) in project.targets.iter().zip(&names) {
        report
            .step(&format!("target {target} is deployed and healthy"), async {
                let mut spec = json!({"path": project.path, "target": target});
                if let Some(context) = &context {
                    spec["renameContexts"] = json!([{"oldContext": "default", "newContext": context}]);
                }
                cluster.apply_deployment(name, "example", spec).await?;
                let object = cluster.ready(name, &first).await?;
                let count = objects(cluster, &object).await?.len();
                ensure!(
                    count > 0,
                    "{name} is Ready, but nothing in the cluster carries its discriminator"
                );
                Ok(format!("{count} objects"))
            })
            .await?;
    }
    report
        .step("a pushed commit is noticed", async {
            let second = repo
                .change("A note")
                .write("WEIR-DEMO.md", "pushed by the demo\n")
                .push()?;
            for name in &names {
                let what = format!("{name} to reach commit {second}");
                testkit::wait_for(&cluster.deployments(), name, &what, TIMEOUT, |object| {
                    is_at(object, &second)
                })
                .await?;
                cluster.ready(name, &second).await?;
            }
            Ok(format!("all at {second}"))
        })
        .await?;
    for name in &names {
        report
            .step(&format!("deleting {name} removes its objects"), async {
                let object = cluster.deployments().get(name).await?;
                let before = objects(cluster, &object).await?;
                cluster.deployments().delete(name, &Default::default()).await?;
                wait_gone(&cluster.deployments(), name, TIMEOUT).await?;
                testkit::eventually("the objects to be gone", TIMEOUT, || async {
                    let left = objects(cluster, &object).await?;
                    ensure!(left.is_empty(), "{} are left: {}", left.len(), left.join(", "));
                    Ok(())
                })
                .await?;
                Ok(format!("{} objects are gone", before.len()))
            })
            .await?;
    }
    Ok(())
}

/// Returns the context of the project's targets. The controllers call their own context `default`.
fn context_of(project: &Project<'_>) -> Result<Option<String>> {
    let dir = project.example.join(project.path);
    let file = [".kluctl.yaml", ".kluctl.yml"]
        .iter()
        .map(|name| dir.join(name))
        .find(|file| file.is_file());
    let file = file.with_context(|| format!("{} holds no .kluctl.yaml: is PROJECT right?", dir.display()))?;
    let text = std::fs::read_to_string(&file)?;
    let contexts = text
        .lines()
        .filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix("context:"));
    let mut contexts: Vec<String> = contexts
        .map(|context| context.trim().trim_matches(['"', '\'']).to_owned())
        .collect();
    contexts.dedup();
    ensure!(
        contexts.len() < 2,
        "{} names more than one context: {}",
        file.display(),
        contexts.join(", ")
    );
    Ok(contexts.pop())
}

pub async fn objects(cluster: &TestCluster, object: &KluctlDeployment) -> Result<Vec<String>> {
    let status = object.status.as_ref();
    let discriminator = status.and_then(|status| status.discriminator.as_deref());
    let discriminator =
        discriminator.with_context(|| format!("{} has no discriminator", object.name_any()))?;
    labelled(cluster, discriminator).await
}

pub async fn labelled(cluster: &TestCluster, discriminator: &str) -> Result<Vec<String>> {
    let kinds = cluster
        .plane
        .kubectl(&["api-resources", "--verbs=list,delete", "-o", "name"])
        .await?;
    // Events aren't listed by label, and pods and replica sets belong to their owners.
    let kinds: Vec<&str> = kinds.lines().filter(|kind| !kind.starts_with("events")).collect();
    let selector = format!("kluctl.io/discriminator={discriminator}");
    let found = cluster
        .plane
        .kubectl(&[
            "get",
            &kinds.join(","),
            "-A",
            "-l",
            &selector,
            "-o",
            "name",
            "--ignore-not-found",
        ])
        .await?;
    let mut found: Vec<String> = found.lines().map(str::to_owned).collect();
    found.sort();
    found.dedup();
    Ok(found)
}
