//! What a source produces: a gzip-compressed tarball that is served over HTTP.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Time, schema};

/// A stored tarball and where to get it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// Path of the file, relative to the root of the storage.
    pub path: String,
    /// Address to download the file from.
    pub url: String,
    /// Revision of the source, as in `main@sha1:<hash>`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// Algorithm and digest of the file, as in `sha256:<hex>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::DIGEST))]
    pub digest: Option<String>,
    /// SHA-256 of the file in hex, for readers that do not know `digest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// When the file was stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Time>,
    /// Length of the file in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    /// Annotations of the producer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}
