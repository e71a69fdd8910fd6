//! Inspects artifacts and downloads their layers as a stream.

use std::{collections::BTreeMap, io::Write};

use reqwest::header::CONTENT_TYPE;
use serde::Deserialize;

use super::{Registry, manifest::RawDescriptor, next_page, promised, read_json};
use crate::{Descriptor, Digest, Error, Wanted, client::safe_url};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const REFERRERS: usize = 100;
const PAGES: usize = 10;

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
    pub async fn digest(&self, wanted: &Wanted) -> Result<Digest, Error> {
        let url = self.manifest_url(wanted)?;
        let headers = match self.request(&url, super::manifest::ACCEPT, true).await {
            Ok(answer) => promised(answer.response.headers()),
            // Registries without HEAD answer in many ways.
            Err(Error::Status { .. }) => None,
            Err(error) => return Err(error),
        };
        match headers {
            Some(digest) => Ok(digest),
            None => Ok(self.manifest(wanted).await?.digest),
        }
    }

    /// Downloads a blob into `out` piece by piece, and verifies it against its descriptor. The caller discards the output after
    /// a failure.
    pub async fn download(
        &self,
        descriptor: &Descriptor,
        limit: u64,
        out: &mut (impl Write + Send),
    ) -> Result<(), Error> {
        let url = self.url(&format!("blobs/{}", descriptor.digest))?;
        let too_large = || Error::TooLarge {
            url: safe_url(&url),
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
                .map_err(Error::disk("write the layer of", safe_url(&url)))?;
        }
        let found = hasher.finish();
        if found != descriptor.digest {
            return Err(Error::DigestMismatch {
                url: safe_url(&url),
                wanted: descriptor.digest.to_string(),
                found: found.to_string(),
            });
        }
        Ok(())
    }

    pub async fn descriptor(&self, digest: &Digest) -> Result<Descriptor, Error> {
        let url = self.url(&format!("manifests/{digest}"))?;
        let answer = self.get(&url, super::manifest::ACCEPT).await?;
        let header = answer.response.headers().get(CONTENT_TYPE);
        let header = header.and_then(|value| value.to_str().ok()).unwrap_or_default();
        let media_type = header.split(';').next().unwrap_or_default().trim().to_owned();
        let body = answer.bytes(self.client.limits().document_bytes).await?;
        digest.verify(&safe_url(&url), &body)?;
        Ok(Descriptor {
            media_type,
            digest: digest.clone(),
            size: body.len() as u64,
            annotations: BTreeMap::new(),
        })
    }

    /// Returns the digests and types of the artifacts that refer to a manifest, at most 100; of one type, if it is given.
    ///
    /// # Errors
    /// Fails when the registry refuses access or the list is malformed. A registry without support for referrers has none.
    pub async fn referrers(
        &self,
        digest: &Digest,
        wanted: Option<&str>,
    ) -> Result<Vec<(Descriptor, String)>, Error> {
        let mut url = self.url(&format!("referrers/{digest}"))?;
        if let Some(wanted) = wanted {
            url.query_pairs_mut().append_pair("artifactType", wanted);
        }
        let mut answer = match self.get(&url, INDEX).await {
            Ok(answer) => answer,
            Err(Error::NotFound { .. } | Error::Status { .. }) => {
                url = self.url(&format!("manifests/{}", digest.to_string().replace(':', "-")))?;
                match self.get(&url, INDEX).await {
                    Ok(answer) => answer,
                    Err(Error::NotFound { .. }) => return Ok(Vec::new()),
                    Err(error) => return Err(error),
                }
            }
            Err(error) => return Err(error),
        };
        let mut found = Vec::new();
        for _ in 0..PAGES {
            let next = next_page(&url, answer.response.headers()).ok().flatten();
            let index: Index = read_json(answer, self.client.limits().document_bytes).await?;
            // Registries need not filter.
            let all = index.manifests.unwrap_or_default().into_iter();
            let all = all.filter(|entry| wanted.is_none_or(|wanted| entry.artifact_type == wanted));
            let checked = all.filter_map(|entry| Some((entry.descriptor.checked()?, entry.artifact_type)));
            found.extend(checked.take(REFERRERS - found.len()));
            url = match next {
                Some(next) if found.len() < REFERRERS => next,
                _ => break,
            };
            answer = self.get(&url, INDEX).await?;
        }
        Ok(found)
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
