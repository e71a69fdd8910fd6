//! Certificates of signers: their chain, the signer's identity, and the proof that they are in a log of certificates.

use std::time::Duration;

use rustls::pki_types::{CertificateDer, UnixTime};
use sha2::{Digest as _, Sha256};
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};

use super::{PublicKey, Rejected, trust::TrustedRoot};
use crate::{
    der::{self, OBJECT_ID, OCTET_STRING, SEQUENCE, element, elements, next, written},
    x509::{ALGORITHMS, EXTENSIONS, VERSION},
};

const CODE_SIGNING: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x03];
const SAN: &[u8] = &[0x55, 0x1d, 0x11];
/// The issuer of the identity: as a bare string, and as a string of DER.
const ISSUER_OLD: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x83, 0xbf, 0x30, 0x01, 0x01];
const ISSUER: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x83, 0xbf, 0x30, 0x01, 0x08];
const PROOFS: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0xd6, 0x79, 0x02, 0x04, 0x02];
const EMAIL: u8 = 0x81;
const URI: u8 = 0x86;
const UTF8: u8 = 0x0c;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signer {
    /// URL of the service that verified the identity.
    pub issuer: String,
    /// URI of a workflow, or email address of a person.
    pub subject: String,
}

pub(super) struct Certificate<'a> {
    der: &'a [u8],
    signed: Vec<der::Element<'a>>,
    key: &'a [u8],
    extensions: Vec<Extension<'a>>,
}

struct Extension<'a> {
    id: &'a [u8],
    value: &'a [u8],
    raw: &'a [u8],
}

impl<'a> Certificate<'a> {
    pub(super) fn parse(der: &'a [u8]) -> Option<Self> {
        let (outer, rest) = element(der, SEQUENCE)?;
        let (signed, _) = element(outer, SEQUENCE).filter(|_| rest.is_empty())?;
        let signed = elements(signed)?;
        let begin = usize::from(signed.first()?.kind == VERSION);
        // Serial number, algorithm, issuer, validity and subject come before the key.
        let key = signed.get(begin + 5)?.raw;
        let extensions = match signed.iter().find(|element| element.kind == EXTENSIONS) {
            None => Vec::new(),
            Some(found) => {
                let (all, _) = element(found.content, SEQUENCE)?;
                let all = elements(all)?;
                all.iter().map(extension).collect::<Option<_>>()?
            }
        };
        Some(Self {
            der,
            signed,
            key,
            extensions,
        })
    }

    fn extension(&self, id: &[u8]) -> Option<&'a [u8]> {
        let found = self.extensions.iter().find(|extension| extension.id == id)?;
        Some(found.value)
    }

    pub(super) fn public_key(&self) -> Result<PublicKey, Rejected> {
        PublicKey::from_der(self.key).map_err(|_| Rejected::Certificate)
    }

    pub(super) fn signer(&self) -> Option<Signer> {
        let issuer = match self.extension(ISSUER) {
            Some(value) => element(value, UTF8)?.0,
            None => self.extension(ISSUER_OLD)?,
        };
        let (names, _) = element(self.extension(SAN)?, SEQUENCE)?;
        let names = elements(names)?;
        let mut subjects = names.iter().filter(|name| matches!(name.kind, EMAIL | URI));
        let subject = subjects.next()?.content;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        let signer = Signer {
            issuer: text(issuer)?,
            subject: text(subject)?,
        };
        // This service issues certificates of one identity only.
        subjects.next().is_none().then_some(signer)
    }

    /// Verifies that an authority of the root issued the certificate, that it was valid at a time in seconds since 1970, and
    /// that it is in a log.
    pub(super) fn verify(&self, root: &TrustedRoot, time: i64) -> Result<(), Rejected> {
        let seconds = u64::try_from(time).map_err(|_| Rejected::Chain)?;
        let at = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let own = CertificateDer::from(self.der);
        let leaf = EndEntityCert::try_from(&own).map_err(|_| Rejected::Certificate)?;
        for authority in root
            .authorities
            .iter()
            .filter(|authority| authority.valid.has(time))
        {
            let Some((last, between)) = authority.chain.split_last() else {
                continue;
            };
            let last = CertificateDer::from(last.as_slice());
            let Ok(anchor) = anchor_from_trusted_cert(&last) else {
                continue;
            };
            let between: Vec<CertificateDer<'_>> = between
                .iter()
                .map(|der| CertificateDer::from(der.as_slice()))
                .collect();
            let usage = KeyUsage::required(CODE_SIGNING);
            let anchors = [anchor];
            let verified = leaf.verify_for_usage(ALGORITHMS, &anchors, &between, at, usage, None, None);
            if verified.is_ok() {
                let issuer = authority.chain.first().map_or(&[][..], Vec::as_slice);
                return self.verify_logged(root, issuer, time);
            }
        }
        Err(Rejected::Chain)
    }

    /// Verifies a log's promise to have the certificate, if the root names logs of certificates.
    fn verify_logged(&self, root: &TrustedRoot, issuer: &[u8], time: i64) -> Result<(), Rejected> {
        if root.certificate_logs.is_empty() {
            return Ok(());
        }
        let issuer = Certificate::parse(issuer).ok_or(Rejected::Chain)?;
        let signed = self.without_proofs().ok_or(Rejected::Certificate)?;
        let proofs = self.extension(PROOFS).and_then(proofs).unwrap_or_default();
        let is_good = proofs.iter().any(|proof| {
            let log = root.certificate_logs.iter().find(|log| log.id == *proof.log);
            let message = proof.message(&Sha256::digest(issuer.key), &signed);
            log.zip(message).is_some_and(|(log, message)| {
                log.valid.has(time) && log.key.verifies(&message, proof.signature)
            })
        });
        match is_good {
            true => Ok(()),
            false => Err(Rejected::Unlogged),
        }
    }

    /// Returns the part that was signed before the logs answered, without their proofs.
    fn without_proofs(&self) -> Option<Vec<u8>> {
        let mut content = Vec::new();
        for part in &self.signed {
            if part.kind != EXTENSIONS {
                content.extend_from_slice(part.raw);
                continue;
            }
            let others = self.extensions.iter().filter(|extension| extension.id != PROOFS);
            let others: Vec<u8> = others.flat_map(|extension| extension.raw).copied().collect();
            content.extend(written(EXTENSIONS, &written(SEQUENCE, &others)?)?);
        }
        written(SEQUENCE, &content)
    }
}

fn extension<'a>(element: &der::Element<'a>) -> Option<Extension<'a>> {
    let (id, mut rest) = der::element(element.content, OBJECT_ID)?;
    let (mut value, after) = next(rest)?;
    if value.kind != OCTET_STRING {
        rest = after;
        (value, _) = next(rest)?;
    }
    (value.kind == OCTET_STRING).then_some(Extension {
        id,
        value: value.content,
        raw: element.raw,
    })
}

struct Proof<'a> {
    log: &'a [u8; 32],
    /// Time and extensions, as they are signed.
    time: &'a [u8],
    extensions: &'a [u8],
    signature: &'a [u8],
}

fn proofs(value: &[u8]) -> Option<Vec<Proof<'_>>> {
    let (list, _) = element(value, OCTET_STRING)?;
    let (mut list, _) = sized(list)?;
    let mut found = Vec::new();
    while !list.is_empty() {
        let (proof, rest) = sized(list)?;
        list = rest;
        // Version 1 has the number 0.
        let (0, proof) = proof.split_first()? else {
            continue;
        };
        let (log, proof) = proof.split_first_chunk::<32>()?;
        let (time, proof) = proof.split_at_checked(8)?;
        let (extensions, proof) = sized(proof)?;
        let (_algorithm, proof) = proof.split_at_checked(2)?;
        let (signature, _) = sized(proof)?;
        found.push(Proof {
            log,
            time,
            extensions,
            signature,
        });
    }
    Some(found)
}

fn sized(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

impl Proof<'_> {
    /// Returns the bytes that the log signed, for a certificate whose issuer's key has this hash.
    fn message(&self, issuer: &[u8], signed: &[u8]) -> Option<Vec<u8>> {
        // Version 1, a timestamp of a certificate, before it has proofs.
        let mut message = vec![0, 0];
        message.extend_from_slice(self.time);
        message.extend([0, 1]);
        message.extend_from_slice(issuer);
        let length = u32::try_from(signed.len()).ok()?.to_be_bytes();
        message.extend_from_slice(length.get(1..)?);
        message.extend_from_slice(signed);
        message.extend(u16::try_from(self.extensions.len()).ok()?.to_be_bytes());
        message.extend_from_slice(self.extensions);
        Some(message)
    }
}
