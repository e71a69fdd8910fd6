//! Pushes the images and artifacts of a release to a registry.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use oci::{Client, Digest, Reference, Registry, Wanted};

use crate::{
    Layout, SigningKey,
    image::{INDEX, MANIFEST},
    layout::{self, list, text},
    sign,
};

/// Pushes all layouts in a folder, each to the repository that its name says, below `registry`, with signatures if there is a key. Returns their
/// references with digests.
///
/// # Errors
/// If there is no layout, one can't be read, or the registry refuses it.
pub async fn push(
    client: &Client,
    dir: &Path,
    registry: &str,
    key: Option<&SigningKey>,
) -> Result<Vec<String>> {
    let mut pushed = Vec::new();
    for (name, path) in layout::find_all(dir)? {
        let layout = Layout::open(&path)?;
        let repository = format!("{registry}/{}", repository(&name));
        let reference = format!("{repository}:{}", layout.tag);
        let target = Registry::new(client, Reference::parse(&reference)?);
        let at = Wanted::Tag(layout.tag.clone());
        Box::pin(push_manifest(&target, &layout, &layout.root, &at))
            .await
            .with_context(|| format!("cannot push {reference}"))?;
        if let Some(key) = key {
            push_signature(&target, key, &repository, &layout.root)
                .await
                .with_context(|| format!("cannot push the signature of {reference}"))?;
        }
        pushed.push(format!("{reference}@{}", layout.root));
    }
    Ok(pushed)
}

/// Returns the repository of a layout: charts have a path of their own, since it ends in the name of the chart.
fn repository(name: &str) -> String {
    match name.strip_suffix("-chart") {
        Some(chart) => format!("charts/{chart}"),
        None => name.to_owned(),
    }
}

async fn push_signature(registry: &Registry, key: &SigningKey, repository: &str, digest: &str) -> Result<()> {
    let layout = sign::image(key, repository, digest)?;
    let at = Wanted::Tag(layout.tag.clone());
    push_manifest(registry, &layout, &layout.root, &at).await
}

/// Pushes a manifest or index after everything that it refers to.
async fn push_manifest(registry: &Registry, layout: &Layout, digest: &str, at: &Wanted) -> Result<()> {
    let manifest = layout.json(digest)?;
    for child in list(&manifest, "manifests") {
        let digest = text(child, "digest")?;
        let at = Wanted::Digest(Digest::parse(digest).context("a digest is invalid")?);
        Box::pin(push_manifest(registry, layout, digest, &at)).await?;
    }
    for blob in manifest
        .get("config")
        .into_iter()
        .chain(list(&manifest, "layers"))
    {
        let content = layout.blob(text(blob, "digest")?)?.to_vec();
        registry.push_blob(&content.into()).await?;
    }
    let media_type = match text(&manifest, "mediaType")? {
        MANIFEST => MANIFEST,
        INDEX => INDEX,
        other => bail!("{digest} has the media type {other}"),
    };
    let content = layout.blob(digest)?.to_vec();
    registry.push_manifest(at, media_type, content.into()).await?;
    Ok(())
}
