//! The short story, for any kluctl project: deploy, push, delete.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use api::kluctl::KluctlDeployment;
use kube::ResourceExt as _;
use serde_json::json;
use testkit::wait_gone;

use crate::{
    stage::Stage,
    world::{PATIENCE, World, is_at},
};

/// Somebody's kluctl project.
#[derive(Debug)]
pub struct Project<'a> {
    /// The folder that becomes the Git repository.
    pub example: &'a Path,
    /// The folder of the project in it.
    pub path: &'a str,
    /// The targets to deploy.
    pub targets: Vec<&'a str>,
}

/// Plays the story. The controllers run already.
///
/// # Errors
/// When a step isn't observed.
pub async fn play(stage: &mut Stage, world: &World, project: &Project<'_>) -> Result<()> {
    let repo = world.git.repo("example")?;
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

    stage
        .step("a GitRepository becomes an artifact", async {
            world.apply_repository("example", &repo.url(), "2s").await?;
            world.artifact("example", &first).await
        })
        .await?;
    for (target, name) in project.targets.iter().zip(&names) {
        stage
            .step(&format!("target {target} is deployed and healthy"), async {
                let mut spec = json!({"path": project.path, "target": target});
                if let Some(context) = &context {
                    spec["renameContexts"] = json!([{"oldContext": "default", "newContext": context}]);
                }
                world.apply_deployment(name, "example", spec).await?;
                let object = world.ready(name, &first).await?;
                let count = objects(world, &object).await?.len();
                ensure!(
                    count > 0,
                    "{name} is Ready, but nothing in the cluster carries its discriminator"
                );
                Ok(format!("{count} objects"))
            })
            .await?;
    }
    stage
        .step("a pushed commit is noticed", async {
            let second = repo
                .change("A note")
                .write("WEIR-DEMO.md", "pushed by the demo\n")
                .push()?;
            for name in &names {
                let what = format!("{name} to reach commit {second}");
                testkit::wait_for(&world.deployments(), name, &what, PATIENCE, |object| {
                    is_at(object, &second)
                })
                .await?;
                world.ready(name, &second).await?;
            }
            Ok(format!("all at {second}"))
        })
        .await?;
    for name in &names {
        stage
            .step(&format!("deleting {name} removes its objects"), async {
                let object = world.deployments().get(name).await?;
                let before = objects(world, &object).await?;
                world.deployments().delete(name, &Default::default()).await?;
                wait_gone(&world.deployments(), name, PATIENCE).await?;
                testkit::eventually("the objects to be gone", PATIENCE, || async {
                    let left = objects(world, &object).await?;
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

/// The context that the project's targets name; the controllers know theirs as `default`.
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

/// Names all objects in the cluster that carry the discriminator of the deployment.
///
/// # Errors
/// When the API server can't be asked.
pub async fn objects(world: &World, object: &KluctlDeployment) -> Result<Vec<String>> {
    let status = object.status.as_ref();
    let discriminator = status.and_then(|status| status.discriminator.as_deref());
    let discriminator =
        discriminator.with_context(|| format!("{} has no discriminator", object.name_any()))?;
    labelled(world, discriminator).await
}

/// Names all objects that carry this discriminator.
///
/// # Errors
/// When the API server can't be asked.
pub async fn labelled(world: &World, discriminator: &str) -> Result<Vec<String>> {
    let kinds = world
        .plane
        .kubectl(&["api-resources", "--verbs=list,delete", "-o", "name"])
        .await?;
    // Events aren't listed by label, and pods and replica sets belong to their owners.
    let kinds: Vec<&str> = kinds.lines().filter(|kind| !kind.starts_with("events")).collect();
    let selector = format!("kluctl.io/discriminator={discriminator}");
    let found = world
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
