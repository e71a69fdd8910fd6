//! A signer of artifacts, as cosign with a key.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use rcgen::{KeyPair, SigningKey as _};
use serde_json::{Value, json};

use super::Registry;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const EMPTY: &str = "application/vnd.oci.empty.v1+json";
const STATEMENT: &str = "application/vnd.in-toto+json";
pub(crate) const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

#[derive(Debug)]
pub struct Signer(KeyPair);

impl Signer {
    pub fn new() -> Result<Self> {
        Ok(Self(KeyPair::generate()?))
    }

    #[must_use]
    pub fn public_pem(&self) -> String {
        self.0.public_key_pem()
    }

    /// Signs the artifact with this digest: pushes the tag `sha256-<hex>.sig`.
    pub async fn sign(&self, registry: &Registry, repository: &str, digest: &str) -> Result<()> {
        let payload = payload(digest);
        let signature = STANDARD.encode(self.0.sign(payload.as_bytes())?);
        let annotations = BTreeMap::from([(SIGNATURE.to_owned(), signature)]);
        push_simple(registry, repository, digest, payload.as_bytes(), &annotations).await
    }

    /// Signs the artifact with this digest in the form of newer releases: pushes a bundle that refers to it, and the
    /// list of referrers under the tag that registries without support for them have.
    pub async fn attach(&self, registry: &Registry, repository: &str, digest: &str) -> Result<()> {
        let (statement, signed) = statement(digest)?;
        let signature = self.0.sign(&signed)?;
        let bundle = bundle(&statement, &signature, &json!({"publicKey": {"hint": "key"}}));
        push_bundle(registry, repository, digest, &bundle).await
    }
}

/// Returns the payload that cosign signs for an artifact.
pub(crate) fn payload(digest: &str) -> String {
    json!({
        "critical": {
            "identity": {"docker-reference": "registry/repository"},
            "image": {"docker-manifest-digest": digest},
            "type": "cosign container image signature",
        },
        "optional": null,
    })
    .to_string()
}

/// Returns the statement about an artifact, and the bytes that newer releases sign for it.
pub(crate) fn statement(digest: &str) -> Result<(String, Vec<u8>)> {
    let hex = digest.strip_prefix("sha256:").context("a digest is a SHA-256")?;
    let statement = json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"digest": {"sha256": hex}}],
        "predicateType": "https://sigstore.dev/cosign/sign/v1",
    })
    .to_string();
    let signed = format!(
        "DSSEv1 {} {STATEMENT} {} {statement}",
        STATEMENT.len(),
        statement.len()
    );
    Ok((statement, signed.into_bytes()))
}

/// Returns a bundle of a statement, its signature and the material to verify it.
pub(crate) fn bundle(statement: &str, signature: &[u8], material: &Value) -> Vec<u8> {
    json!({
        "mediaType": BUNDLE,
        "verificationMaterial": material,
        "dsseEnvelope": {
            "payload": STANDARD.encode(statement),
            "payloadType": STATEMENT,
            "signatures": [{"sig": STANDARD.encode(signature)}],
        },
    })
    .to_string()
    .into_bytes()
}

pub(crate) async fn push_simple(
    registry: &Registry,
    repository: &str,
    digest: &str,
    payload: &[u8],
    annotations: &BTreeMap<String, String>,
) -> Result<()> {
    let kind = "application/vnd.dev.cosign.simplesigning.v1+json";
    let mut layer = registry.push_blob(repository, kind, payload).await?;
    let fields = layer.as_object_mut().context("a descriptor is a map")?;
    fields.insert("annotations".to_owned(), json!(annotations));
    let kind = "application/vnd.oci.image.config.v1+json";
    let config = registry.push_blob(repository, kind, b"{}").await?;
    let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer]});
    let tag = format!("{}.sig", digest.replace(':', "-"));
    registry.push_manifest(repository, &tag, &manifest).await?;
    Ok(())
}

pub(crate) async fn push_bundle(
    registry: &Registry,
    repository: &str,
    digest: &str,
    bundle: &[u8],
) -> Result<()> {
    let layer = registry.push_blob(repository, BUNDLE, bundle).await?;
    let config = registry.push_blob(repository, EMPTY, b"{}").await?;
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": BUNDLE, "config": config, "layers": [layer],
    });
    let size = manifest.to_string().len();
    let own = registry.push_manifest(repository, "", &manifest).await?;
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{"mediaType": MANIFEST, "artifactType": BUNDLE, "digest": own, "size": size}],
    });
    registry
        .push_manifest(repository, &digest.replace(':', "-"), &index)
        .await?;
    Ok(())
}
