//! Pushes an artifact to a registry.

use std::{collections::BTreeMap, io::Read as _};

use bytes::Bytes;
use flate2::read::GzDecoder;
use reqwest::{
    Method, StatusCode, Url,
    header::{HeaderMap, LOCATION},
};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::{Registry, promised};
use crate::{
    Digest, Error, Wanted,
    client::{Answer, Upload, safe_url},
};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.cncf.flux.config.v1+json";
const CONTENT: &str = "application/vnd.cncf.flux.content.v1.tar+gzip";

const ACTIONS: &str = "pull,push";

/// An artifact with a gzipped tarball as its only layer, in the media types of Flux and kluctl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    layer: Bytes,
    config: Bytes,
    annotations: BTreeMap<String, String>,
}

impl Artifact {
    /// Creates an artifact of a tarball, with the annotations of its manifest. The same input always gives the same digest.
    pub fn new(tarball: Bytes, annotations: BTreeMap<String, String>) -> Result<Self, Error> {
        let unpacked = digest_of_unpacked(&tarball)
            .map_err(|error| Error::malformed("the tarball", error.to_string()))?;
        // The fields that libraries of container images expect.
        let config = json!({
            "architecture": "",
            "config": {},
            "os": "",
            "rootfs": {"type": "layers", "diff_ids": [unpacked]},
        });
        Ok(Self {
            layer: tarball,
            config: config.to_string().into(),
            annotations,
        })
    }

    fn manifest(&self) -> String {
        let descriptor = |kind: &str, blob: &Bytes| json!({"mediaType": kind, "digest": Digest::of(blob).to_string(), "size": blob.len()});
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": descriptor(CONFIG, &self.config),
            "layers": [descriptor(CONTENT, &self.layer)],
            "annotations": self.annotations,
        });
        manifest.to_string()
    }
}

fn digest_of_unpacked(tarball: &[u8]) -> std::io::Result<String> {
    let mut unpacked = GzDecoder::new(tarball);
    let mut hasher = Sha256::new();
    let mut buffer = [0; 64 << 10];
    loop {
        let read = unpacked.read(&mut buffer)?;
        let Some(piece) = buffer.get(..read).filter(|piece| !piece.is_empty()) else {
            return Ok(format!("sha256:{}", hex::encode(hasher.finalize())));
        };
        hasher.update(piece);
    }
}

impl Registry {
    /// Pushes an artifact under the tag of the reference, default `latest`. Returns the digest of its manifest. Blobs that the
    /// registry already has are not sent again.
    ///
    /// # Errors
    /// Fails when the reference has a digest, the registry refuses the artifact, or reports another digest.
    pub async fn push(&self, artifact: &Artifact) -> Result<Digest, Error> {
        let Wanted::Tag(tag) = self.reference().wanted() else {
            return Err(Error::InvalidUrl {
                url: self.reference().to_string(),
                why: "an artifact is pushed to a tag, not to a digest".to_owned(),
            });
        };
        self.push_blob(&artifact.config).await?;
        self.push_blob(&artifact.layer).await?;
        let manifest = artifact.manifest().into();
        self.push_manifest(&Wanted::Tag(tag), MANIFEST, manifest).await
    }

    /// Pushes a manifest or an index, whose blobs and manifests the registry has, and returns its digest.
    ///
    /// # Errors
    /// Fails when the registry refuses it, or reports another digest.
    pub async fn push_manifest(
        &self,
        at: &Wanted,
        media_type: &'static str,
        manifest: Bytes,
    ) -> Result<Digest, Error> {
        let digest = Digest::of(&manifest);
        let url = self.manifest_url(at)?;
        let answer = self.put(&url, media_type, manifest).await?;
        match promised(answer.response.headers()) {
            Some(found) if found != digest => Err(Error::DigestMismatch {
                url: safe_url(&url),
                wanted: digest.to_string(),
                found: found.to_string(),
            }),
            _ => Ok(digest),
        }
    }

    /// Pushes a blob, unless the registry already has it.
    ///
    /// # Errors
    /// Fails when the registry refuses it.
    pub async fn push_blob(&self, blob: &Bytes) -> Result<(), Error> {
        let digest = Digest::of(blob);
        let known = self.url(&format!("blobs/{digest}"))?;
        let upload = Upload::new(Method::HEAD, &known);
        // Any other answer than success means that it must be sent.
        if self.send(upload, &known).await?.response.status() == StatusCode::OK {
            return Ok(());
        }
        let begin = self.url("blobs/uploads/")?;
        let answer = self.send(Upload::new(Method::POST, &begin), &begin).await?;
        let answer = answer.ok(self.credentials.is_some())?;
        let mut url = location(&begin, answer.response.headers())
            .map_err(|why| Error::malformed(safe_url(&begin), why))?;
        url.query_pairs_mut().append_pair("digest", &digest.to_string());
        self.put(&url, "application/octet-stream", blob.clone()).await?;
        Ok(())
    }

    async fn put(&self, url: &Url, media_type: &'static str, body: Bytes) -> Result<Answer, Error> {
        let upload = Upload {
            media_type: Some(media_type),
            body,
            ..Upload::new(Method::PUT, url)
        };
        let home = self.url("")?;
        self.send(upload, &home).await?.ok(self.credentials.is_some())
    }

    async fn send(&self, upload: Upload<'_>, home: &Url) -> Result<Answer, Error> {
        let answer = self
            .client
            .upload(&upload, home, self.authorization().as_ref())
            .await?;
        let Some(challenge) = super::challenge(&answer) else {
            return Ok(answer);
        };
        let header = self.authorize(home, &challenge, ACTIONS).await?;
        self.authorization.lock().clone_from(&header);
        self.client.upload(&upload, home, header.as_ref()).await
    }
}

fn location(begin: &Url, headers: &HeaderMap) -> Result<Url, &'static str> {
    let location = headers.get(LOCATION).ok_or("it names no address to upload to")?;
    let location = location
        .to_str()
        .map_err(|_| "the address to upload to is invalid")?;
    let url = begin
        .join(location)
        .map_err(|_| "the address to upload to is invalid")?;
    match begin.scheme() == "https" && url.scheme() != "https" {
        true => Err("the address to upload to is not encrypted"),
        false => Ok(url),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};
    use reqwest::header::HeaderValue;

    use super::*;

    #[test]
    fn artifact_has_media_types_of_flux_and_a_stable_manifest() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(b"files").unwrap();
        let packed = Bytes::from(packed.finish().unwrap());
        let annotations =
            BTreeMap::from([("b".to_owned(), "2".to_owned()), ("a".to_owned(), "1".to_owned())]);
        let artifact = Artifact::new(packed.clone(), annotations.clone()).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&artifact.manifest()).unwrap();
        assert_eq!(manifest["config"]["mediaType"], CONFIG);
        assert_eq!(manifest["layers"][0]["mediaType"], CONTENT);
        assert_eq!(manifest["layers"][0]["digest"], Digest::of(&packed).to_string());
        assert_eq!(manifest["annotations"], json!({"a": "1", "b": "2"}));
        let config: serde_json::Value = serde_json::from_slice(&artifact.config).unwrap();
        assert_eq!(
            config["rootfs"]["diff_ids"],
            json!([Digest::of(b"files").to_string()])
        );
        assert_eq!(Artifact::new(packed, annotations).unwrap(), artifact);
        assert!(Artifact::new(Bytes::from_static(b"no gzip"), BTreeMap::new()).is_err());
    }

    #[test]
    fn uploads_stay_encrypted() {
        let begin = Url::parse("https://h/v2/a/blobs/uploads/").unwrap();
        let to = |location: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(LOCATION, HeaderValue::from_static(location));
            super::location(&begin, &headers).map(String::from)
        };
        assert_eq!(
            to("/v2/a/blobs/uploads/1?_state=x").unwrap(),
            "https://h/v2/a/blobs/uploads/1?_state=x"
        );
        assert!(to("http://h/x").is_err());
        assert!(super::location(&begin, &HeaderMap::new()).is_err());
    }
}
