//! Envelopes of signatures: JWS and COSE.

mod cose;
mod jws;

use jiff::Timestamp;

use super::{Rejected, key::Algorithm};

pub(super) use cose::COSE;
pub(super) use jws::JWS;

const SCHEME: &str = "io.cncf.notary.signingScheme";
const SIGNING_TIME: &str = "io.cncf.notary.signingTime";
const AUTHENTIC_SIGNING_TIME: &str = "io.cncf.notary.authenticSigningTime";
const EXPIRY: &str = "io.cncf.notary.expiry";
const PLUGIN: &str = "io.cncf.notary.verificationPlugin";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    X509,
    /// A signing authority signs for others; its time is trusted.
    SigningAuthority,
}

/// The content of an envelope, before it is verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Envelope {
    pub(super) message: Vec<u8>,
    pub(super) signature: Vec<u8>,
    pub(super) algorithm: Algorithm,
    pub(super) chain: Vec<Vec<u8>>,
    pub(super) content_type: String,
    pub(super) payload: Vec<u8>,
    pub(super) attributes: Attributes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) scheme: Scheme,
    pub(super) signing_time: i64,
    pub(super) expiry: Option<i64>,
    pub(super) plugin: Option<String>,
    pub(super) unknown: Option<String>,
}

impl Envelope {
    pub(super) fn parse(media_type: &str, bytes: &[u8]) -> Result<Self, Rejected> {
        match media_type {
            JWS => jws::parse(bytes),
            COSE => cose::parse(bytes),
            _ => Err(Rejected::MediaType(super::bounded(media_type))),
        }
    }
}

#[derive(Debug, Default)]
struct Raw {
    scheme: Option<String>,
    signing_time: Option<i64>,
    authentic_signing_time: Option<i64>,
    expiry: Option<i64>,
    plugin: Option<String>,
    critical: Vec<String>,
}

impl Raw {
    /// Checks that the attributes fit their scheme, and that the critical ones are marked.
    fn checked(self) -> Result<Attributes, Rejected> {
        let (scheme, time, other) = match self.scheme.as_deref() {
            Some("notary.x509") => (Scheme::X509, self.signing_time, self.authentic_signing_time),
            Some("notary.x509.signingAuthority") => (
                Scheme::SigningAuthority,
                self.authentic_signing_time,
                self.signing_time,
            ),
            _ => return Err(Rejected::Attributes("the signing scheme is missing or unknown")),
        };
        let signing_time = time.ok_or(Rejected::Attributes("the signing time is missing"))?;
        if other.is_some() {
            return Err(Rejected::Attributes("it has the signing time of another scheme"));
        }
        if self.expiry.is_some_and(|expiry| expiry <= signing_time) {
            return Err(Rejected::Attributes("it expires before it was signed"));
        }
        let is_critical = |name: &str| self.critical.iter().any(|found| found == name);
        let is_marked = is_critical(SCHEME)
            && (scheme == Scheme::X509 || is_critical(AUTHENTIC_SIGNING_TIME))
            && (self.expiry.is_none() || is_critical(EXPIRY));
        if !is_marked {
            return Err(Rejected::Attributes("a mandatory attribute is not critical"));
        }
        let known = [SCHEME, SIGNING_TIME, AUTHENTIC_SIGNING_TIME, EXPIRY];
        let unknown = self.critical.iter().find(|name| !known.contains(&name.as_str()));
        Ok(Attributes {
            scheme,
            signing_time,
            expiry: self.expiry,
            plugin: self.plugin.as_deref().map(super::bounded),
            unknown: unknown.map(|name| super::bounded(name)),
        })
    }
}

fn time(text: &str) -> Option<i64> {
    let time: Timestamp = text.parse().ok()?;
    Some(time.as_second())
}
