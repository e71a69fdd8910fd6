//! The trusted root of a sigstore: its certificate authorities, and the keys of its logs.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::PublicKey;

const MAX_ENTRIES: usize = 32;
const MAX_BYTES: usize = 1 << 20;

#[derive(Debug, Clone)]
pub struct TrustedRoot {
    pub(super) authorities: Vec<Authority>,
    pub(super) logs: Vec<Log>,
    pub(super) certificate_logs: Vec<Log>,
}

#[derive(Debug, Clone)]
pub(super) struct Authority {
    /// Certificates in DER; the signing one first, the root last.
    pub(super) chain: Vec<Vec<u8>>,
    pub(super) valid: Period,
}

#[derive(Debug, Clone)]
pub(super) struct Log {
    pub(super) id: [u8; 32],
    pub(super) key: PublicKey,
    pub(super) valid: Period,
}

/// A period in seconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(super) struct Period {
    from: i64,
    until: i64,
}

impl Period {
    pub(super) fn has(self, time: i64) -> bool {
        (self.from..=self.until).contains(&time)
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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    #[serde(default)]
    certificate_authorities: Vec<AuthorityDocument>,
    #[serde(default)]
    tlogs: Vec<LogDocument>,
    #[serde(default)]
    ctlogs: Vec<LogDocument>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AuthorityDocument {
    cert_chain: ChainDocument,
    #[serde(default)]
    valid_for: PeriodDocument,
}

#[derive(Deserialize)]
struct ChainDocument {
    certificates: Vec<Bytes>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogDocument {
    public_key: KeyDocument,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct KeyDocument {
    raw_bytes: String,
    #[serde(default)]
    valid_for: PeriodDocument,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Bytes {
    pub(super) raw_bytes: String,
}

#[derive(Deserialize, Default)]
struct PeriodDocument {
    start: Option<String>,
    end: Option<String>,
}

impl PeriodDocument {
    fn read(&self) -> Result<Period, InvalidTrustedRoot> {
        let seconds = |text: &Option<String>, default: i64| match text {
            None => Ok(default),
            Some(text) => {
                let time: Result<Timestamp, _> = text.parse();
                time.map(Timestamp::as_second)
                    .map_err(|_| InvalidTrustedRoot::Malformed)
            }
        };
        Ok(Period {
            from: seconds(&self.start, i64::MIN)?,
            until: seconds(&self.end, i64::MAX)?,
        })
    }
}

impl TrustedRoot {
    pub fn parse(text: &[u8]) -> Result<Self, InvalidTrustedRoot> {
        if text.len() > MAX_BYTES {
            return Err(InvalidTrustedRoot::TooLarge);
        }
        let document: Document = serde_json::from_slice(text).map_err(|_| InvalidTrustedRoot::Malformed)?;
        let lengths = [
            document.certificate_authorities.len(),
            document.tlogs.len(),
            document.ctlogs.len(),
        ];
        if lengths.iter().any(|length| *length > MAX_ENTRIES) {
            return Err(InvalidTrustedRoot::TooLarge);
        }
        let authorities = document.certificate_authorities.iter().map(|authority| {
            let chain = authority.cert_chain.certificates.iter().take(MAX_ENTRIES);
            let chain: Result<Vec<_>, _> = chain.map(|bytes| decoded(&bytes.raw_bytes)).collect();
            Ok(Authority {
                chain: chain?,
                valid: authority.valid_for.read()?,
            })
        });
        let found = Self {
            authorities: authorities.collect::<Result<_, _>>()?,
            logs: logs(&document.tlogs)?,
            certificate_logs: logs(&document.ctlogs)?,
        };
        let has_chains = found
            .authorities
            .iter()
            .all(|authority| !authority.chain.is_empty());
        match found.authorities.is_empty() || found.logs.is_empty() || !has_chains {
            true => Err(InvalidTrustedRoot::Incomplete),
            false => Ok(found),
        }
    }
}

fn logs(documents: &[LogDocument]) -> Result<Vec<Log>, InvalidTrustedRoot> {
    let logs = documents.iter().map(|log| {
        let der = decoded(&log.public_key.raw_bytes)?;
        Ok(Log {
            id: Sha256::digest(&der).into(),
            key: PublicKey::from_der(&der).map_err(|_| InvalidTrustedRoot::Key)?,
            valid: log.public_key.valid_for.read()?,
        })
    });
    logs.collect()
}

fn decoded(text: &str) -> Result<Vec<u8>, InvalidTrustedRoot> {
    STANDARD.decode(text).map_err(|_| InvalidTrustedRoot::Key)
}
