//! The artifact of a source: a gzip-compressed tarball that is served over HTTP.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Time, schema};

/// A stored gzip-compressed tarball, and its URL.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// Path of the file in the storage, as in `<kind>/<namespace>/<name>/<file>`.
    pub path: String,
    /// URL of the file, with the same path as in the storage.
    pub url: String,
    /// Revision of the source, as in `main@sha1:<commit>`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// Algorithm and digest of the file, as in `sha256:<hex>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::DIGEST))]
    pub digest: Option<String>,
    /// SHA-256 of the file in hex, for readers that do not know `digest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// Time at which the file was stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Time>,
    /// Size of the file in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    /// Metadata of the producer, as in the annotations of an OCI artifact.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}
