//! Signatures in the formats of cosign, by a key.

use std::{fmt, fs, path::Path};

use anyhow::{Context as _, Result, anyhow};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair},
};
use serde_json::json;

use crate::{
    Layout,
    image::{Blob, MANIFEST, Manifest},
    output::CHECKSUMS,
};

const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";

/// A private key: ECDSA on the curve P-256, as `openssl genpkey` writes it.
pub struct SigningKey {
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").finish_non_exhaustive()
    }
}

impl SigningKey {
    /// # Errors
    /// If it is not such a key. The error doesn't repeat it.
    pub fn from_pem(pem: &str) -> Result<Self> {
        let body = pem.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(END));
        let (body, _) = body.with_context(|| format!("the key is not in the format PEM ({BEGIN})"))?;
        let body: String = body.split_whitespace().collect();
        let der = STANDARD.decode(body).ok().context("the key is not base64")?;
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &der, &random);
        let pair = pair.map_err(|_| anyhow!("the key is not ECDSA on the curve P-256 in PKCS #8"))?;
        Ok(Self { pair, random })
    }

    fn sign(&self, bytes: &[u8]) -> Result<String> {
        let signature = self.pair.sign(&self.random, bytes);
        let signature = signature.map_err(|_| anyhow!("the key can't sign: there is no randomness"))?;
        Ok(STANDARD.encode(signature))
    }
}

/// Returns the signature of the manifest or index with this digest: an artifact under the tag where cosign looks for it.
pub(crate) fn image(key: &SigningKey, repository: &str, digest: &str) -> Result<Layout> {
    let payload = json!({
        "critical": {
            "identity": { "docker-reference": repository },
            "image": { "docker-manifest-digest": digest },
            "type": "cosign container image signature",
        },
        "optional": null,
    });
    let payload = Blob::json(SIMPLE_SIGNING, &payload);
    let config = Blob::json(CONFIG, &json!({}));
    let mut layer = payload.descriptor();
    if let Some(fields) = layer.as_object_mut() {
        let signature = key.sign(&payload.content)?;
        fields.insert("annotations".to_owned(), json!({ SIGNATURE: signature }));
    }
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config.descriptor(),
        "layers": [layer],
    });
    let signature = Manifest {
        root: Blob::json(MANIFEST, &manifest),
        blobs: vec![config, payload],
    };
    Ok(Layout::of(signature, format!("{}.sig", digest.replace(':', "-"))))
}

/// Writes the signature of the checksums, and so of all files, beside them. Returns the name of its file.
///
/// # Errors
/// If the folder has no checksums.
pub fn sign_checksums(key: &SigningKey, dir: &Path) -> Result<String> {
    let path = dir.join(CHECKSUMS);
    let sums = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let name = format!("{CHECKSUMS}.sig");
    let signature = key.sign(&sums)? + "\n";
    fs::write(dir.join(&name), signature).with_context(|| format!("cannot write {name}"))?;
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_keys_are_refused_without_being_repeated() {
        let secret = STANDARD.encode("a secret that is not a key");
        for (pem, why) in [
            (secret.clone(), "not in the format PEM"),
            (format!("{BEGIN}\n?{secret}\n{END}\n"), "not base64"),
            (format!("{BEGIN}\n{secret}\n{END}\n"), "not ECDSA"),
        ] {
            let error = format!("{:#}", SigningKey::from_pem(&pem).unwrap_err());
            assert!(error.contains(why) && !error.contains(&secret), "{error}");
        }
    }
}
