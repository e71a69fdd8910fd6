//! Certificates of signers, and the Notary Project's rules for them.

use jiff::civil::DateTime;

use super::{
    key::{Algorithm, PublicKey},
    name::{InvalidName, Name},
};
use crate::{
    der::{self, BIT_STRING, BOOLEAN, INTEGER, OBJECT_ID, OCTET_STRING, SEQUENCE, element, elements},
    x509::{EXTENSIONS, VERSION},
};

const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const SUBJECT_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
const CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
const REVOCATION_LISTS: &[u8] = &[0x55, 0x1d, 0x1f];
const POLICIES: &[u8] = &[0x55, 0x1d, 0x20];
const EXTENDED_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const ACCESS: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x01, 0x01];
const OCSP: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x30, 0x01];
/// Extensions that may be critical: their meaning is known, or limits nothing here.
const KNOWN: [&[u8]; 5] = [KEY_USAGE, SUBJECT_NAMES, CONSTRAINTS, POLICIES, EXTENDED_USAGE];

/// Prefix of the IDs of extended usages, and the last numbers of those that a signer must not have: servers, clients, email,
/// timestamps, OCSP.
const USAGE: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03];
const FOREIGN_USAGES: [u8; 5] = [1, 2, 4, 8, 9];

const DIGITAL_SIGNATURE: u16 = 0x8000;
const CONTENT_COMMITMENT: u16 = 0x4000;
const CERTIFICATE_SIGNATURE: u16 = 0x0400;

const CHAIN: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BrokenRule {
    #[error("a certificate can't be read")]
    Malformed,
    #[error("a certificate has a critical extension that is not supported")]
    Critical,
    #[error("it must have 1 to {CHAIN} certificates")]
    Length,
    #[error("the last certificate is not self-signed")]
    Root,
    /// A certificate before the last one is self-signed.
    #[error("a certificate before the last one is self-signed")]
    SelfSigned,
    /// A certificate is not signed by the next one.
    #[error("a certificate is not issued by the next one, or signed by an algorithm that is not supported")]
    Issuer,
    /// A certificate after the first is not an authority.
    #[error("a certificate above that of the signer is not of a CA, or allows fewer CAs below it")]
    NoAuthority,
    #[error("the key usage of a certificate is missing or not critical")]
    NoUsage,
    #[error("the key usage of a CA has no 'key cert sign'")]
    AuthorityUsage,
    /// The signer's certificate is an authority.
    #[error("the certificate of the signer is of a CA")]
    SignerAuthority,
    #[error("the key usage of the signer must be 'Digital Signature' only")]
    SignerUsage,
    #[error("the extended key usage of the signer is for servers, clients, email, timestamps or OCSP")]
    SignerExtendedUsage,
    #[error("the key of the signer must be RSA of 2048, 3072 or 4096 bits, or ECDSA P-256, P-384 or P-521")]
    SignerKey,
}

#[derive(Debug, Clone)]
pub(super) struct Certificate<'a> {
    pub(super) der: &'a [u8],
    pub(super) valid: (i64, i64),
    /// True if it names a service or a list with its revocation status.
    pub(super) is_revocable: bool,
    signed: &'a [u8],
    algorithm: &'a [u8],
    signature: &'a [u8],
    issuer: &'a [u8],
    subject: &'a [u8],
    key: PublicKey<'a>,
    /// Basic constraints: true for an authority, and the maximum number of authorities below it.
    constraints: Option<(bool, Option<u64>)>,
    /// Key usage: true if it is critical, and its bits.
    usage: Option<(bool, u16)>,
    extended_usages: Vec<&'a [u8]>,
    has_unknown: bool,
}

impl<'a> Certificate<'a> {
    pub(super) fn parse(der: &'a [u8]) -> Option<Self> {
        let (outer, rest) = element(der, SEQUENCE)?;
        let parts = elements(outer).filter(|_| rest.is_empty())?;
        let [signed, algorithm, signature] = parts.as_slice() else {
            return None;
        };
        let is_whole = signed.kind == SEQUENCE && algorithm.kind == SEQUENCE && signature.kind == BIT_STRING;
        let (0, bits) = signature.content.split_first().filter(|_| is_whole)? else {
            return None;
        };
        let fields = elements(signed.content)?;
        let begin = usize::from(fields.first()?.kind == VERSION);
        // The serial number is not needed.
        let field = |at: usize| fields.get(begin + at).filter(|field| field.kind == SEQUENCE);
        let (issuer, subject) = (field(2)?, field(4)?);
        let mut found = Self {
            der,
            valid: validity(field(3)?.content)?,
            is_revocable: false,
            signed: signed.raw,
            algorithm: algorithm.content,
            signature: bits,
            issuer: issuer.raw,
            subject: subject.raw,
            key: PublicKey::parse(field(5)?.content)?,
            constraints: None,
            usage: None,
            extended_usages: Vec::new(),
            has_unknown: false,
        };
        if field(1)?.raw != algorithm.raw {
            return None;
        }
        if let Some(extensions) = fields.iter().find(|field| field.kind == EXTENSIONS) {
            let (all, _) = element(extensions.content, SEQUENCE)?;
            found.read_extensions(&elements(all)?)?;
        }
        Some(found)
    }

    fn read_extensions(&mut self, extensions: &[der::Element<'a>]) -> Option<()> {
        let mut seen: Vec<&[u8]> = Vec::new();
        for extension in extensions {
            let (id, rest) = element(extension.content, OBJECT_ID)?;
            if seen.contains(&id) || seen.len() >= 64 {
                return None;
            }
            seen.push(id);
            let (critical, rest) = match element(rest, BOOLEAN) {
                Some((value, rest)) => (value != [0], rest),
                None => (false, rest),
            };
            let (value, _) = element(rest, OCTET_STRING)?;
            match id {
                CONSTRAINTS => self.constraints = Some(constraints(value)?),
                KEY_USAGE => self.usage = Some((critical, usage(value)?)),
                EXTENDED_USAGE => {
                    let (usages, _) = element(value, SEQUENCE)?;
                    let usages = elements(usages)?;
                    self.extended_usages = usages.iter().map(|usage| usage.content).collect();
                }
                REVOCATION_LISTS => self.is_revocable = true,
                ACCESS => {
                    let (methods, _) = element(value, SEQUENCE)?;
                    let mut methods = elements(methods)?.into_iter();
                    let is_status = |method: der::Element<'_>| {
                        element(method.content, OBJECT_ID).is_some_and(|(id, _)| id == OCSP)
                    };
                    self.is_revocable |= methods.any(is_status);
                }
                _ => {}
            }
            self.has_unknown |= critical && !KNOWN.contains(&id);
        }
        Some(())
    }

    pub(super) fn name(&self) -> Result<Name, InvalidName> {
        let (content, _) = element(self.subject, SEQUENCE).ok_or(InvalidName::Malformed)?;
        Name::of_certificate(content)
    }

    pub(super) fn signature_algorithm(&self) -> Option<Algorithm> {
        self.key.algorithm()
    }

    pub(super) fn signed(&self, message: &[u8], signature: &[u8]) -> bool {
        self.key.signed(message, signature)
    }

    fn is_certified_by(&self, issuer: &Self) -> bool {
        self.issuer == issuer.subject && issuer.key.certified(self.algorithm, self.signed, self.signature)
    }

    /// Checks the rules for an authority with `below` authorities below it.
    fn check_authority(&self, below: usize) -> Result<(), BrokenRule> {
        match self.constraints {
            Some((true, most)) if most.is_none_or(|most| most >= below as u64) => {}
            _ => return Err(BrokenRule::NoAuthority),
        }
        match self.usage {
            Some((true, bits)) if bits & CERTIFICATE_SIGNATURE != 0 => Ok(()),
            Some((true, _)) => Err(BrokenRule::AuthorityUsage),
            _ => Err(BrokenRule::NoUsage),
        }
    }

    fn check_signer(&self) -> Result<(), BrokenRule> {
        if self.constraints.is_some_and(|(is_authority, _)| is_authority) {
            return Err(BrokenRule::SignerAuthority);
        }
        let Some((true, bits)) = self.usage else {
            return Err(BrokenRule::NoUsage);
        };
        if bits & DIGITAL_SIGNATURE == 0 || bits & !(DIGITAL_SIGNATURE | CONTENT_COMMITMENT) != 0 {
            return Err(BrokenRule::SignerUsage);
        }
        let is_foreign = |usage: &&[u8]| {
            let last = usage.strip_prefix(USAGE).unwrap_or_default();
            matches!(last, [number] if FOREIGN_USAGES.contains(number))
        };
        if self.extended_usages.iter().any(is_foreign) {
            return Err(BrokenRule::SignerExtendedUsage);
        }
        match self.signature_algorithm() {
            Some(_) => Ok(()),
            None => Err(BrokenRule::SignerKey),
        }
    }
}

/// Parses a chain of certificates, the signer's first, and checks the rules that hold at any time: each is issued by the next
/// one, the last one by itself, and each may be used as it is.
pub(super) fn chain(ders: &[Vec<u8>]) -> Result<Vec<Certificate<'_>>, BrokenRule> {
    if ders.is_empty() || ders.len() > CHAIN {
        return Err(BrokenRule::Length);
    }
    let all = ders.iter().map(|der| Certificate::parse(der));
    let all: Vec<_> = all.collect::<Option<_>>().ok_or(BrokenRule::Malformed)?;
    if all.iter().any(|certificate| certificate.has_unknown) {
        return Err(BrokenRule::Critical);
    }
    for (at, certificate) in all.iter().enumerate() {
        match all.get(at + 1) {
            None if !certificate.is_certified_by(certificate) => return Err(BrokenRule::Root),
            Some(_) if certificate.is_certified_by(certificate) => return Err(BrokenRule::SelfSigned),
            Some(next) if !certificate.is_certified_by(next) => return Err(BrokenRule::Issuer),
            _ => {}
        }
        match at.checked_sub(1) {
            None => certificate.check_signer()?,
            Some(below) => certificate.check_authority(below)?,
        }
    }
    Ok(all)
}

fn constraints(value: &[u8]) -> Option<(bool, Option<u64>)> {
    let (content, _) = element(value, SEQUENCE)?;
    let fields = elements(content)?;
    let is_authority = fields
        .iter()
        .any(|field| field.kind == BOOLEAN && field.content != [0]);
    let Some(most) = fields.iter().find(|field| field.kind == INTEGER) else {
        return Some((is_authority, None));
    };
    let is_number = (1..8).contains(&most.content.len()) && most.content.first()? & 0x80 == 0;
    let number = most
        .content
        .iter()
        .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    is_number.then_some((is_authority, Some(number)))
}

fn usage(value: &[u8]) -> Option<u16> {
    let (content, _) = element(value, BIT_STRING)?;
    let (_unused, bytes) = content.split_first()?;
    let byte = |at: usize| u16::from(bytes.get(at).copied().unwrap_or_default());
    Some(byte(0) << 8 | byte(1))
}

fn validity(content: &[u8]) -> Option<(i64, i64)> {
    let times = elements(content)?;
    let [from, until] = times.as_slice() else {
        return None;
    };
    Some((time(from)?, time(until)?))
}

fn time(element: &der::Element<'_>) -> Option<i64> {
    let text = std::str::from_utf8(element.content).ok()?.strip_suffix('Z')?;
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (year, rest) = match element.kind {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year: i16 = year.parse().ok()?;
            (year + if year < 50 { 2000 } else { 1900 }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    if rest.len() != 10 {
        return None;
    }
    let part = |at: usize| rest.get(2 * at..2 * at + 2)?.parse::<i8>().ok();
    let time = DateTime::new(year, part(0)?, part(1)?, part(2)?, part(3)?, part(4)?, 0).ok()?;
    let time = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(time.timestamp().as_second())
}
