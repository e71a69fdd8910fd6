//! Manifests of artifacts.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{Digest, Error};

pub(super) const ACCEPT: &str = "application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json";

/// Media type of the layer of a Helm chart.
pub const CHART_LAYER: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
/// Media type of charts from early versions of Helm's registry support.
const OLD_CHART: &str = "application/tar+gzip";
const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptor {
    pub media_type: String,
    pub digest: Digest,
    pub size: u64,
    pub annotations: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    pub digest: Digest,
    pub config: Descriptor,
    pub layers: Vec<Descriptor>,
    /// Pairs of key and value, sorted by key.
    pub annotations: Vec<(String, String)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    config: Option<RawDescriptor>,
    layers: Option<Vec<RawDescriptor>>,
    manifests: Option<Vec<serde_json::Value>>,
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawDescriptor {
    #[serde(default)]
    media_type: String,
    digest: String,
    size: u64,
    annotations: Option<BTreeMap<String, String>>,
}

impl RawDescriptor {
    pub(super) fn checked(self) -> Option<Descriptor> {
        Some(Descriptor {
            media_type: self.media_type,
            digest: Digest::parse(&self.digest)?,
            size: self.size,
            annotations: self.annotations.unwrap_or_default(),
        })
    }
}

impl Manifest {
    pub(crate) fn parse(body: &[u8], url: &str) -> Result<Self, Error> {
        let malformed = |why: &str| Error::malformed(url, why);
        let raw: Raw = serde_json::from_slice(body)
            .map_err(|error| Error::malformed(url, format!("the manifest can't be read: {error}")))?;
        if raw.manifests.is_some() {
            return Err(malformed(
                "it is an index of several manifests: name one of them by its digest",
            ));
        }
        let no_digest = || malformed("a descriptor of the manifest has no digest of sha256 or sha512");
        let config = raw
            .config
            .ok_or_else(|| malformed("the manifest has no config"))?;
        let layers = raw.layers.unwrap_or_default().into_iter();
        Ok(Self {
            digest: Digest::of(body),
            config: config.checked().ok_or_else(no_digest)?,
            layers: layers
                .map(RawDescriptor::checked)
                .collect::<Option<_>>()
                .ok_or_else(no_digest)?,
            annotations: raw.annotations.unwrap_or_default().into_iter().collect(),
        })
    }

    pub(super) fn chart_layer(&self) -> Result<&Descriptor, String> {
        if self.config.media_type != CONFIG {
            return Err(format!(
                "it is no chart: its config is {:?} instead of {CONFIG:?}",
                self.config.media_type
            ));
        }
        let of = |kind: &str| self.layers.iter().find(|layer| layer.media_type == kind);
        of(CHART_LAYER)
            .or_else(|| of(OLD_CHART))
            .ok_or_else(|| format!("manifest does not contain a layer with mediatype {CHART_LAYER}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(config: &str, layers: &[&str]) -> Manifest {
        let digest = Digest::of(b"");
        let descriptor =
            |kind: &str| format!("{{\"mediaType\": \"{kind}\", \"digest\": \"{digest}\", \"size\": 0}}");
        let layers: Vec<String> = layers.iter().map(|kind| descriptor(kind)).collect();
        let text = format!(
            "{{\"config\": {}, \"layers\": [{}]}}",
            descriptor(config),
            layers.join(",")
        );
        Manifest::parse(text.as_bytes(), "u").unwrap()
    }

    #[test]
    fn the_layer_of_a_chart_is_found_by_its_type() {
        let prov = "application/vnd.cncf.helm.chart.provenance.v1.prov";
        assert_eq!(
            manifest(CONFIG, &[prov, CHART_LAYER])
                .chart_layer()
                .unwrap()
                .media_type,
            CHART_LAYER
        );
        assert_eq!(
            manifest(CONFIG, &[OLD_CHART]).chart_layer().unwrap().media_type,
            OLD_CHART
        );
        assert!(
            manifest(CONFIG, &[prov])
                .chart_layer()
                .unwrap_err()
                .contains("mediatype")
        );
        assert!(
            manifest("x", &[CHART_LAYER])
                .chart_layer()
                .unwrap_err()
                .contains("no chart")
        );
    }

    #[test]
    fn invalid_manifests_are_named() {
        for (text, why) in [
            ("", "can't be read"),
            ("{}", "no config"),
            ("{\"manifests\": []}", "several manifests"),
            ("{\"config\": {\"digest\": \"md5:0\", \"size\": 1}}", "no digest"),
            ("{\"config\": {\"digest\": \"x\", \"size\": -1}}", "can't be read"),
        ] {
            let error = Manifest::parse(text.as_bytes(), "u").unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
