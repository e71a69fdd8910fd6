//! The manifests in an OCI artifact, such as the one of a release.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use oci::{Reference, Wanted};
use remote::artifacts::{self, LayerFiles};
use tokio::runtime::Runtime;
use tree::{Limits, Tree, TreePath};

use crate::logins::{AccessFlags, Logins};

/// Maximum depth of directories in an artifact.
const MAX_DEPTH: usize = 8;

/// Checks the address of an artifact: the user trusts its digest.
pub(super) fn check(url: &str) -> Result<()> {
    ensure!(
        url.starts_with("oci://"),
        "--manifests-oci {url}: write oci://HOST/PATH@sha256:DIGEST"
    );
    let reference = Reference::parse(url)?;
    ensure!(
        matches!(reference.wanted(), Wanted::Digest(_)),
        "--manifests-oci {url}: a tag can be moved to other manifests, so write the digest: oci://HOST/PATH@sha256:DIGEST"
    );
    Ok(())
}

/// Pulls an artifact, and returns the content of its YAML files by the order of their names. Its manifest and content are verified by
/// the digest.
///
/// # Errors
/// If the address has no digest, the registry can't be reached, or the content has another digest.
pub(super) fn pull(url: &str, timeout: Duration) -> Result<Vec<String>> {
    check(url)?;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut logins = Logins::of_user()?;
    // Blocks while it asks a registry on a loopback address for plain HTTP.
    let access = logins.access(url)?;
    // The command has no flags that an error could name.
    logins.flags = AccessFlags::None;
    let servers = logins.servers();
    let runtime = Runtime::new().context("start the async runtime")?;
    let pulled = runtime.block_on(async {
        let layer = artifacts::layer(&servers, url, access, None);
        tokio::time::timeout(timeout, layer).await
    });
    let layer = pulled.with_context(|| format!("pull {url}: it took too long"))?;
    let layer = layer.map_err(|error| anyhow!("pull {}", servers.explain_oci(url, &error)))?;
    let LayerFiles::Pulled(bytes) = layer.files else {
        bail!("pull {url}: the artifact has no content");
    };
    let files = artifacts::unpack(&bytes, &Limits::default(), &artifact::FetchLimits::default())?;
    let mut texts = Vec::new();
    collect(&files, &TreePath::root(), 0, &mut texts)?;
    ensure!(!texts.is_empty(), "{url}: the artifact has no YAML files");
    Ok(texts)
}

fn collect(files: &dyn Tree, dir: &TreePath, depth: usize, texts: &mut Vec<String>) -> Result<()> {
    ensure!(depth < MAX_DEPTH, "{dir}: directories are nested too deeply");
    let mut entries = files.list(dir)?;
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    for entry in entries.into_iter().filter(|entry| !entry.is_link) {
        let path = dir.join(&entry.name)?;
        if entry.is_dir {
            collect(files, &path, depth + 1, texts)?;
        } else if entry.name.ends_with(".yaml") || entry.name.ends_with(".yml") {
            let text = String::from_utf8(files.read(&path)?.to_vec());
            texts.push(text.with_context(|| format!("{path} is no text"))?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_needs_a_digest() {
        let digest = format!("oci://ghcr.io/org/manifests@sha256:{}", "a".repeat(64));
        assert!(check(&digest).is_ok());
        for (url, expected) in [
            ("oci://ghcr.io/org/manifests:v1", "so write the digest"),
            ("oci://ghcr.io/org/manifests", "so write the digest"),
            (
                "https://ghcr.io/org/manifests",
                "write oci://HOST/PATH@sha256:DIGEST",
            ),
        ] {
            let error = check(url).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
