//! Looking at artifacts and downloading their layers, without holding a layer in memory.

use std::io::Write;

use serde::Deserialize;

use super::{Registry, manifest::RawDescriptor, promised, read_json};
use crate::{Descriptor, Digest, Error, Wanted, client::shown};

/// Media type of an index of manifests.
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// The most artifacts that refer to another and are looked at.
const REFERRERS: usize = 100;

#[derive(Deserialize)]
struct Index {
    manifests: Option<Vec<Referrer>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Referrer {
    #[serde(default)]
    artifact_type: String,
    #[serde(flatten)]
    descriptor: RawDescriptor,
}

impl Registry {
    /// Returns the digest of a manifest without downloading it, if the registry reports it.
    ///
    /// # Errors
    /// Fails when there is no such manifest, or the registry refuses access.
    pub async fn digest(&self, wanted: &Wanted) -> Result<Digest, Error> {
        let url = self.url(&format!("manifests/{wanted}"))?;
        let headers = match self.request(&url, super::manifest::ACCEPT, true).await {
            Ok(answer) => promised(answer.response.headers()),
            // Registries that know no HEAD answer in many ways.
            Err(Error::Status { .. }) => None,
            Err(error) => return Err(error),
        };
        match headers {
            Some(digest) => Ok(digest),
            None => Ok(self.manifest(wanted).await?.digest),
        }
    }

    /// Downloads a blob into `out` piece by piece, and verifies it against its descriptor. What was written before a failure is
    /// to be thrown away.
    ///
    /// # Errors
    /// Fails when the blob cannot be downloaded, is larger than `limit` bytes, does not match its descriptor, or `out` cannot
    /// be written.
    pub async fn download(
        &self,
        descriptor: &Descriptor,
        limit: u64,
        out: &mut (impl Write + Send),
    ) -> Result<(), Error> {
        let url = self.url(&format!("blobs/{}", descriptor.digest))?;
        let too_large = || Error::TooLarge {
            url: shown(&url),
            what: "bytes",
            limit: limit.min(descriptor.size),
        };
        if descriptor.size > limit {
            return Err(too_large());
        }
        let mut answer = self.get(&url, "*/*").await?;
        let mut hasher = descriptor.digest.hasher();
        let mut left = descriptor.size;
        while let Some(piece) = answer.next().await? {
            left = left.checked_sub(piece.len() as u64).ok_or_else(too_large)?;
            hasher.update(&piece);
            out.write_all(&piece)
                .map_err(Error::disk("write the layer of", shown(&url)))?;
        }
        let found = hasher.finish();
        if found != descriptor.digest {
            return Err(Error::DigestMismatch {
                url: shown(&url),
                wanted: descriptor.digest.to_string(),
                found: found.to_string(),
            });
        }
        Ok(())
    }

    /// Returns the digests and types of the artifacts that refer to a manifest, at most 100.
    ///
    /// # Errors
    /// Fails when the registry refuses access or the list is malformed. A registry that doesn't know referrers has none.
    pub async fn referrers(&self, digest: &Digest) -> Result<Vec<(Descriptor, String)>, Error> {
        let asked = self.url(&format!("referrers/{digest}"))?;
        let fallback = format!("manifests/{}", digest.to_string().replace(':', "-"));
        let answer = match self.get(&asked, INDEX).await {
            Ok(answer) => answer,
            Err(Error::NotFound { .. } | Error::Status { .. }) => {
                match self.get(&self.url(&fallback)?, INDEX).await {
                    Ok(answer) => answer,
                    Err(Error::NotFound { .. }) => return Ok(Vec::new()),
                    Err(error) => return Err(error),
                }
            }
            Err(error) => return Err(error),
        };
        let index: Index = read_json(answer, self.client.limits().document_bytes).await?;
        let all = index.manifests.unwrap_or_default().into_iter().take(REFERRERS);
        let checked = all.filter_map(|found| Some((found.descriptor.checked()?, found.artifact_type)));
        Ok(checked.collect())
    }

    /// Returns true if the registry answers over TLS with a certificate that the client trusts.
    ///
    /// # Errors
    /// Fails when it answers over TLS, but not as a registry.
    pub async fn speaks_tls(&self) -> Result<bool, Error> {
        match self.ask(&self.base()?, "*/*", false).await {
            Ok(_) => Ok(true),
            Err(Error::Network { .. } | Error::Tls { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
