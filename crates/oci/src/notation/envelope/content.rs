//! The content of an envelope, before it is verified.

use jiff::Timestamp;

use crate::notation::{
    key::Algorithm,
    rejected::{Rejected, bounded},
};

pub(super) const SCHEME: &str = "io.cncf.notary.signingScheme";
pub(super) const SIGNING_TIME: &str = "io.cncf.notary.signingTime";
pub(super) const AUTHENTIC_SIGNING_TIME: &str = "io.cncf.notary.authenticSigningTime";
pub(super) const EXPIRY: &str = "io.cncf.notary.expiry";
pub(super) const PLUGIN: &str = "io.cncf.notary.verificationPlugin";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::notation) enum Scheme {
    X509,
    /// A signing authority signs for others; its time is trusted.
    SigningAuthority,
}

/// The content of an envelope, before it is verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::notation) struct Envelope {
    pub(in crate::notation) message: Vec<u8>,
    pub(in crate::notation) signature: Vec<u8>,
    pub(in crate::notation) algorithm: Algorithm,
    pub(in crate::notation) chain: Vec<Vec<u8>>,
    pub(in crate::notation) content_type: String,
    pub(in crate::notation) payload: Vec<u8>,
    pub(in crate::notation) attributes: Attributes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::notation) struct Attributes {
    pub(in crate::notation) scheme: Scheme,
    pub(in crate::notation) signing_time: i64,
    pub(in crate::notation) expiry: Option<i64>,
    pub(in crate::notation) plugin: Option<String>,
    pub(in crate::notation) unknown: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Raw {
    pub(super) scheme: Option<String>,
    pub(super) signing_time: Option<i64>,
    pub(super) authentic_signing_time: Option<i64>,
    pub(super) expiry: Option<i64>,
    pub(super) plugin: Option<String>,
    pub(super) critical: Vec<String>,
}

impl Raw {
    /// Checks that the attributes fit their scheme, and that the critical ones are marked.
    pub(super) fn checked(self) -> Result<Attributes, Rejected> {
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
            plugin: self.plugin.as_deref().map(bounded),
            unknown: unknown.map(|name| bounded(name)),
        })
    }
}

pub(super) fn time(text: &str) -> Option<i64> {
    let time: Timestamp = text.parse().ok()?;
    Some(time.as_second())
}
