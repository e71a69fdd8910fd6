//! Manifests of an installation, as clients of Flux know them.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use testkit::controller::find_program;
use tokio::process::Command;

/// Objects of an installation of Flux with our controllers that other tools refer to by name.
const OBJECTS: [&str; 16] = [
    "Namespace/flux-system",
    "ResourceQuota/critical-pods-flux-system",
    "NetworkPolicy/allow-egress",
    "NetworkPolicy/allow-scraping",
    "NetworkPolicy/allow-webhooks",
    "ClusterRole/flux-edit-flux-system",
    "ClusterRole/flux-view-flux-system",
    "ServiceAccount/source-controller",
    "ServiceAccount/kustomize-controller",
    "ServiceAccount/notification-controller",
    "Service/source-controller",
    "Service/notification-controller",
    "Service/webhook-receiver",
    "Deployment/source-controller",
    "Deployment/kustomize-controller",
    "Deployment/notification-controller",
];
/// Arguments of Deployments, in the order of Flux.
const ARGUMENTS: [&str; 3] = ["--events-addr=", "--watch-all-namespaces=", "--log-level="];

/// Returns the documents of a stream, by kind and name.
fn documents(stream: &str) -> Result<BTreeMap<String, &str>> {
    let documents = stream
        .split("\n---\n")
        .filter(|document| document.contains("\nkind: "));
    documents
        .map(|document| {
            let kind = document.lines().find_map(|line| line.strip_prefix("kind: "));
            let metadata = document.split_once("\nmetadata:\n");
            let name =
                metadata.and_then(|(_, rest)| rest.lines().find_map(|line| line.strip_prefix("  name: ")));
            let name = name.with_context(|| format!("no name in {document}"))?;
            Ok((format!("{}/{name}", kind.context("no kind")?), document))
        })
        .collect()
}

#[tokio::test]
async fn installation_has_the_objects_labels_and_arguments_of_flux() -> Result<()> {
    let install = ["install", "--export"];
    let output = Command::new(find_program("weir")?).args(install).output().await?;
    ensure!(output.status.success(), "{output:?}");
    let stream = format!("\n{}", String::from_utf8(output.stdout)?);
    let documents = documents(&stream)?;
    for name in OBJECTS {
        let document = documents.get(name).with_context(|| format!("no {name}"))?;
        for label in ["instance: flux-system", "part-of: flux", "version: v"] {
            let label = format!("\n    app.kubernetes.io/{label}");
            ensure!(document.contains(&label), "{name}: no {label}");
        }
        let Some(component) = name.strip_prefix("Deployment/") else {
            continue;
        };
        let label = format!("\n    app.kubernetes.io/component: {component}\n");
        ensure!(document.contains(&label), "{name}: no {label}");
        let takes_events = component == "notification-controller";
        let wanted = ARGUMENTS.into_iter().skip(usize::from(takes_events));
        let found: Vec<usize> = wanted.filter_map(|argument| document.find(argument)).collect();
        ensure!(
            found.len() >= 2 && found.is_sorted(),
            "{name}: the order of arguments"
        );
    }
    let definitions = documents
        .iter()
        .filter(|(name, _)| name.starts_with("CustomResourceDefinition/"));
    for (name, document) in definitions {
        ensure!(
            document.contains("app.kubernetes.io/part-of: flux"),
            "{name} has no labels"
        );
    }
    Ok(())
}
