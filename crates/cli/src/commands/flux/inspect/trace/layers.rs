//! The layers of a delivery: the object that applied another one, and the sources that it comes from.

use anyhow::{Context as _, Result};
use api::group;
use cluster::Selection;
use fleet::{
    Kind, Object, Reference,
    kind::{self, HELM_GROUP},
    report::Block,
};
use yaml::Value;

use super::{
    super::read::{self, text},
    Owner,
};
use crate::commands::flux::Flux;

/// Column of values in blocks about Kustomizations and their sources, and about HelmReleases.
const WIDE: usize = 17;
const NARROW: usize = 16;
/// Annotations of an OCI artifact that name its origin.
const ORIGINS: [(&str, &str); 2] = [
    ("Origin Revision", "org.opencontainers.image.revision"),
    ("Origin Source", "org.opencontainers.image.source"),
];

pub(super) async fn of(flux: &Flux, owner: &Owner) -> Result<Vec<Block>> {
    match owner.group {
        group::KUSTOMIZE => kustomization(flux, owner).await,
        HELM_GROUP => release(flux, owner).await,
        _ => kluctl(flux, &owner.name).await,
    }
}

async fn kustomization(flux: &Flux, owner: &Owner) -> Result<Vec<Block>> {
    let object = read::get(flux, &kind::KUSTOMIZATION, &owner.namespace, &owner.name)
        .await
        .context("failed to find kustomization")?;
    let decoded = read::decode(&object)?;
    let mut block = titled(WIDE, "Kustomization", &object);
    block.add_some("Target", text(&object, &["spec", "targetNamespace"]));
    block.add("Path", text(&object, &["spec", "path"]));
    block.add("Revision", &decoded.status.last_applied_revision);
    block.add_ready(decoded.ready(), false);
    let mut blocks = vec![block];
    if let Some(reference) = decoded.source() {
        blocks.extend(source(flux, &reference, WIDE, true).await?);
    }
    Ok(blocks)
}

async fn release(flux: &Flux, owner: &Owner) -> Result<Vec<Block>> {
    let object = read::get(flux, &kind::HELM_RELEASE, &owner.namespace, &owner.name)
        .await
        .context("failed to find HelmRelease")?;
    let decoded = read::decode(&object)?;
    let mut block = titled(NARROW, "HelmRelease", &object);
    block.add_some("Target", text(&object, &["spec", "targetNamespace"]));
    block.add("Revision", &decoded.status.last_attempted_revision);
    block.add_ready(decoded.ready(), false);
    let mut blocks = vec![block];
    if let Some((namespace, name)) = text(&object, &["status", "helmChart"]).split_once('/') {
        let chart = read::get(flux, &kind::HELM_CHART, namespace, name)
            .await
            .context("failed to find HelmChart")?;
        let decoded = read::decode(&chart)?;
        let mut block = titled(NARROW, "HelmChart", &chart);
        block.add("Chart", text(&chart, &["spec", "chart"]));
        block.add("Version", text(&chart, &["spec", "version"]));
        block.add_some("Revision", revision(&decoded));
        block.add_ready(decoded.ready(), false);
        blocks.push(block);
    }
    if let Some(reference) = decoded.source() {
        // Artifacts have wider labels.
        let width = if reference.kind.ends_with("Artifact") || reference.kind == "OCIRepository" {
            WIDE
        } else {
            NARROW
        };
        blocks.extend(source(flux, &reference, width, false).await?);
    }
    Ok(blocks)
}

/// Returns the layers of the KluctlDeployment with a discriminator.
async fn kluctl(flux: &Flux, discriminator: &str) -> Result<Vec<Block>> {
    for (kind, field) in [
        (
            &kind::GITOPS_KLUCTL_DEPLOYMENT,
            &["status", "targetKey", "discriminator"][..],
        ),
        (&kind::FLUX_KLUCTL_DEPLOYMENT, &["status", "discriminator"]),
    ] {
        let Ok(resource) = flux.served(kind).await else {
            continue;
        };
        let mut found = None;
        let search = |json: &str| -> Result<(), anyhow::Error> {
            if found.is_none() && json.contains(discriminator) {
                let object = Value::from_json(serde_json::from_str(json)?);
                found = (text(&object, field) == discriminator).then_some(object);
            }
            Ok(())
        };
        flux.cluster
            .each_object(&resource, &Selection::default(), search)
            .await?;
        let Some(object) = found else { continue };
        let decoded = read::decode(&object)?;
        let mut block = titled(WIDE, "KluctlDeployment", &object);
        block.add_some("Target", text(&object, &["spec", "target"]));
        block.add_some("URL", decoded.url());
        let status = &decoded.status;
        block.add_some("Revision", &status.last_attempted_revision);
        block.add_some("Revision", &status.observed_commit);
        block.add_ready(decoded.ready(), true);
        let mut blocks = vec![block];
        if let Some(reference) = decoded.source() {
            blocks.extend(source(flux, &reference, WIDE, true).await?);
        }
        return Ok(blocks);
    }
    anyhow::bail!(
        "it was deployed by kluctl with the discriminator {discriminator}, which no KluctlDeployment has"
    )
}

async fn source(flux: &Flux, reference: &Reference, width: usize, has_origin: bool) -> Result<Option<Block>> {
    let Some(kind) = Kind::find(group::SOURCE, &reference.kind) else {
        return Ok(None);
    };
    let object = read::get(flux, kind, &reference.namespace, &reference.name)
        .await
        .with_context(|| format!("failed to find {}", kind.kind))?;
    let decoded = read::decode(&object)?;
    let mut block = titled(width, kind.kind, &object);
    match kind.kind {
        "ExternalArtifact" => {
            let from = decoded.source().unwrap_or_default();
            block.add(
                "Source",
                &format!("{}/{}/{}", from.kind, from.namespace, from.name),
            );
        }
        "Bucket" => block.add("Endpoint", text(&object, &["spec", "endpoint"])),
        _ => block.add("URL", &decoded.spec.url),
    }
    let of_reference = |field: &str| text(&object, &["spec", "ref", field]);
    let used = [
        ("Tag", "tag"),
        ("Tag", "semver"),
        ("Branch", "branch"),
        ("Digest", "digest"),
    ]
    .into_iter()
    .find(|(_, field)| !of_reference(field).is_empty());
    if let Some((label, field)) = used {
        block.add(label, of_reference(field));
    }
    block.add_some("Revision", revision(&decoded));
    if let (true, Some(artifact)) = (has_origin, &decoded.status.artifact) {
        for (label, key) in ORIGINS {
            block.add_some(
                label,
                artifact.metadata.get(key).map(String::as_str).unwrap_or_default(),
            );
        }
    }
    block.add_ready(decoded.ready(), true);
    Ok(Some(block))
}

fn revision(object: &Object) -> &str {
    let artifact = object.status.artifact.as_ref();
    artifact
        .map(|artifact| artifact.revision.as_str())
        .unwrap_or_default()
}

fn titled(width: usize, label: &str, object: &Value) -> Block {
    let mut block = Block::new(width);
    block.add(label, text(object, &["metadata", "name"]));
    block.add("Namespace", text(object, &["metadata", "namespace"]));
    block
}
