//! The checks of a signature, in the order of the original. Pure.

use jiff::Timestamp;
use serde::Deserialize;

use super::{
    certificate::{self, BrokenRule, Certificate},
    envelope::{Envelope, Scheme},
    policy::{Action, Check, Rules, StoreType},
    rejected::{Rejected, bounded},
    store::TrustStore,
};
use crate::Descriptor;

const PAYLOAD: &str = "application/vnd.cncf.notary.payload.v1+json";

/// A failed check that the policy only logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    pub check: Check,
    pub why: Rejected,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Payload {
    target_artifact: Target,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Target {
    media_type: String,
    digest: String,
    size: u64,
}

/// Checks an artifact's signature at a time in seconds since 1970. Returns the failed checks that the policy does not enforce.
pub(super) fn check(
    envelope: &Envelope,
    rules: &Rules,
    store: &TrustStore,
    target: &Descriptor,
    now: i64,
) -> Result<Vec<Warning>, Rejected> {
    let chain = check_integrity(envelope)?;
    // Whatever the policy says, nobody else would verify these.
    if let Some(plugin) = &envelope.attributes.plugin {
        return Err(Rejected::Plugin(plugin.clone()));
    }
    if let Some(name) = &envelope.attributes.unknown {
        return Err(Rejected::Critical(name.clone()));
    }
    let mut warnings = Vec::new();
    for (check, result) in [
        (Check::Authenticity, check_signer(envelope, &chain, rules, store)),
        (Check::Expiry, check_expiry(envelope, now)),
        (
            Check::AuthenticTimestamp,
            check_time(envelope, &chain, rules, now),
        ),
        (Check::Revocation, check_revocation(&chain)),
    ] {
        match (result, rules.action(check)) {
            (Ok(()), _) | (Err(_), Action::Skip) => {}
            (Err(why), Action::Enforce) => return Err(why),
            (Err(why), Action::Log) => warnings.push(Warning { check, why }),
        }
    }
    check_target(&envelope.payload, target)?;
    Ok(warnings)
}

fn check_integrity(envelope: &Envelope) -> Result<Vec<Certificate<'_>>, Rejected> {
    let chain = certificate::chain(&envelope.chain)?;
    let signer = chain.first().ok_or(BrokenRule::Length)?;
    if signer.signature_algorithm() != Some(envelope.algorithm) {
        return Err(Rejected::OtherAlgorithm);
    }
    if !signer.signed(&envelope.message, &envelope.signature) {
        return Err(Rejected::Signature);
    }
    match envelope.content_type.as_str() {
        PAYLOAD => Ok(chain),
        other => Err(Rejected::PayloadType(bounded(other))),
    }
}

/// Checks that a certificate of the chain is trusted, and the signer's name.
fn check_signer(
    envelope: &Envelope,
    chain: &[Certificate<'_>],
    rules: &Rules,
    store: &TrustStore,
) -> Result<(), Rejected> {
    let (needed, name) = match envelope.attributes.scheme {
        Scheme::X509 => (StoreType::Authorities, "ca"),
        Scheme::SigningAuthority => (StoreType::SigningAuthorities, "signingAuthority"),
    };
    if !rules.stores.contains(&needed) {
        return Err(Rejected::NoStore(name));
    }
    if !chain.iter().any(|certificate| store.has(certificate)) {
        return Err(Rejected::Untrusted);
    }
    let Some(identities) = &rules.identities else {
        return Ok(());
    };
    let signer = chain.first().ok_or(BrokenRule::Length)?;
    let name = signer.name().map_err(Rejected::Subject)?;
    match identities.iter().any(|identity| identity.is_part_of(&name)) {
        true => Ok(()),
        false => Err(Rejected::Identity),
    }
}

fn check_expiry(envelope: &Envelope, now: i64) -> Result<(), Rejected> {
    match envelope.attributes.expiry {
        Some(expiry) if now >= expiry => Err(Rejected::Expired(timestamp(expiry))),
        _ => Ok(()),
    }
}

/// Checks that all certificates are valid: now, or at the time that a trusted authority states.
fn check_time(
    envelope: &Envelope,
    chain: &[Certificate<'_>],
    rules: &Rules,
    now: i64,
) -> Result<(), Rejected> {
    let at = match envelope.attributes.scheme {
        Scheme::SigningAuthority => envelope.attributes.signing_time,
        Scheme::X509 => {
            let has_expired = chain.iter().any(|certificate| now > certificate.valid.1);
            let needs_timestamp = rules.stores.contains(&StoreType::TimestampAuthorities)
                && (has_expired || !rules.timestamp_after_expiry);
            if needs_timestamp {
                return Err(Rejected::Timestamp);
            }
            now
        }
    };
    let is_valid = |certificate: &Certificate<'_>| (certificate.valid.0..=certificate.valid.1).contains(&at);
    match chain.iter().all(is_valid) {
        true => Ok(()),
        false => Err(Rejected::NotValid(timestamp(at))),
    }
}

/// Checks that no certificate below the root can be revoked: no service is asked.
fn check_revocation(chain: &[Certificate<'_>]) -> Result<(), Rejected> {
    let below = chain.split_last().map_or(&[][..], |(_, below)| below);
    match below.iter().any(|certificate| certificate.is_revocable) {
        true => Err(Rejected::Revocation),
        false => Ok(()),
    }
}

fn check_target(payload: &[u8], target: &Descriptor) -> Result<(), Rejected> {
    let Payload {
        target_artifact: named,
    } = serde_json::from_slice(payload).map_err(|_| Rejected::Payload)?;
    let is_same = named.digest == target.digest.to_string()
        && named.size == target.size
        && named.media_type == target.media_type;
    match is_same {
        true => Ok(()),
        false => Err(Rejected::Target),
    }
}

fn timestamp(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap_or_default()
}
