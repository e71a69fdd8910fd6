//! The trusted root of a sigstore: its certificate authorities, logs and timestamp authorities.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use sigstore_verify::{Verifier, trust_root};

use super::provider;

const MAX_ENTRIES: usize = 32;
const MAX_BYTES: usize = 1 << 20;

#[derive(Clone)]
pub struct TrustedRoot {
    pub(super) verifier: Arc<Verifier>,
    /// Without such logs, certificates need no promise of one.
    pub(super) has_certificate_logs: bool,
}

impl std::fmt::Debug for TrustedRoot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TrustedRoot").finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTrustedRoot {
    #[error("it is not a trusted root of sigstore in JSON")]
    Malformed,
    #[error("it is larger than 1 MiB, or has more than 32 authorities or logs")]
    TooLarge,
    #[error("a key or certificate in it cannot be read")]
    Key,
    #[error("it has no certificateAuthorities or no tlogs")]
    Incomplete,
}

impl TrustedRoot {
    pub fn parse(document: &[u8]) -> Result<Self, InvalidTrustedRoot> {
        if document.len() > MAX_BYTES {
            return Err(InvalidTrustedRoot::TooLarge);
        }
        let mut document: Value =
            serde_json::from_slice(document).map_err(|_| InvalidTrustedRoot::Malformed)?;
        complete(&mut document)?;
        let root: trust_root::TrustedRoot =
            serde_json::from_value(document).map_err(|_| InvalidTrustedRoot::Malformed)?;
        let chains = root.certificate_authorities.iter().map(|ca| &ca.cert_chain);
        let chains = chains.chain(root.timestamp_authorities.iter().map(|tsa| &tsa.cert_chain));
        let lengths: Vec<usize> = chains.map(|chain| chain.certificates.len()).collect();
        if root.certificate_authorities.is_empty() || root.tlogs.is_empty() || lengths.contains(&0) {
            return Err(InvalidTrustedRoot::Incomplete);
        }
        if lengths.iter().any(|length| *length > MAX_ENTRIES) {
            return Err(InvalidTrustedRoot::TooLarge);
        }
        provider::install();
        let verifier = Verifier::new(&root).map_err(|_| InvalidTrustedRoot::Key)?;
        Ok(Self {
            verifier: Arc::new(verifier),
            has_certificate_logs: !root.ctlogs.is_empty(),
        })
    }
}

/// Adds fields that JSON of protobuf leaves out if they are empty, and the IDs of logs, and checks the length of lists.
fn complete(document: &mut Value) -> Result<(), InvalidTrustedRoot> {
    let document = document.as_object_mut().ok_or(InvalidTrustedRoot::Malformed)?;
    document.entry("mediaType").or_insert_with(|| json!(""));
    for list in [
        "tlogs",
        "ctlogs",
        "certificateAuthorities",
        "timestampAuthorities",
    ] {
        let Some(entries) = document.get_mut(list) else {
            continue;
        };
        let entries = entries.as_array_mut().ok_or(InvalidTrustedRoot::Malformed)?;
        if entries.len() > MAX_ENTRIES {
            return Err(InvalidTrustedRoot::TooLarge);
        }
        for entry in entries {
            let entry = entry.as_object_mut().ok_or(InvalidTrustedRoot::Malformed)?;
            match list {
                "tlogs" | "ctlogs" => complete_log(entry),
                _ => {
                    entry.entry("uri").or_insert_with(|| json!(""));
                    complete_period(entry);
                }
            }
        }
    }
    Ok(())
}

fn complete_log(log: &mut Map<String, Value>) {
    for (name, default) in [("baseUrl", ""), ("hashAlgorithm", "SHA2_256")] {
        log.entry(name).or_insert_with(|| json!(default));
    }
    let Some(key) = log.get_mut("publicKey").and_then(Value::as_object_mut) else {
        return;
    };
    key.entry("keyDetails").or_insert_with(|| json!(""));
    complete_period(key);
    let key = key.get("rawBytes").and_then(Value::as_str);
    if let Some(key) = key.and_then(|key| STANDARD.decode(key).ok()) {
        let id = json!({"keyId": STANDARD.encode(Sha256::digest(key))});
        log.entry("logId").or_insert(id);
    }
}

fn complete_period(entry: &mut Map<String, Value>) {
    if let Some(period) = entry.get_mut("validFor").and_then(Value::as_object_mut) {
        period
            .entry("start")
            .or_insert_with(|| json!("0001-01-01T00:00:00Z"));
    }
}
