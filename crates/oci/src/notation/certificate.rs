//! Certificates of signers, and the Notary Project's rules for them.

use x509_parser::{
    asn1_rs::{Sequence, ToDer as _},
    certificate::X509Certificate,
    extensions::{BasicConstraints, ExtendedKeyUsage, KeyUsage, ParsedExtension, X509Extension},
    oid_registry::{
        OID_PKIX_ACCESS_DESCRIPTOR_OCSP, OID_X509_EXT_BASIC_CONSTRAINTS, OID_X509_EXT_CERTIFICATE_POLICIES,
        OID_X509_EXT_EXTENDED_KEY_USAGE, OID_X509_EXT_KEY_USAGE, OID_X509_EXT_SUBJECT_ALT_NAME, Oid,
    },
    prelude::FromDer as _,
};

use super::{
    key::{self, Algorithm, PublicKey},
    name::{InvalidName, Name},
};

/// Extensions that may be critical: their meaning is known, or limits nothing here.
const KNOWN: [Oid<'_>; 5] = [
    OID_X509_EXT_KEY_USAGE,
    OID_X509_EXT_SUBJECT_ALT_NAME,
    OID_X509_EXT_BASIC_CONSTRAINTS,
    OID_X509_EXT_CERTIFICATE_POLICIES,
    OID_X509_EXT_EXTENDED_KEY_USAGE,
];
const MAX_EXTENSIONS: usize = 64;
/// Digital signature and content commitment, the first two bits.
const ALLOWED_USAGE: u16 = 0b11;

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
    parsed: X509Certificate<'a>,
    constraints: Option<BasicConstraints>,
    /// Key usage, and true if it is critical.
    usage: Option<(bool, KeyUsage)>,
    has_foreign_usage: bool,
    has_unknown: bool,
}

impl<'a> Certificate<'a> {
    pub(super) fn parse(der: &'a [u8]) -> Option<Self> {
        let (rest, parsed) = X509Certificate::from_der(der).ok()?;
        let inner = &parsed.tbs_certificate;
        let is_whole = rest.is_empty() && parsed.signature_value.unused_bits == 0;
        let is_canonical = canonical(&parsed).is_some_and(|encoded| encoded == der);
        if !is_whole || !is_canonical || inner.signature != parsed.signature_algorithm {
            return None;
        }
        if inner.extensions_map().ok()?.len() > MAX_EXTENSIONS {
            return None;
        }
        let mut found = Self {
            der,
            valid: (
                inner.validity.not_before.timestamp(),
                inner.validity.not_after.timestamp(),
            ),
            is_revocable: false,
            parsed: parsed.clone(),
            constraints: None,
            usage: None,
            has_foreign_usage: false,
            has_unknown: false,
        };
        for extension in inner.extensions() {
            found.read(extension)?;
        }
        Some(found)
    }

    fn read(&mut self, extension: &X509Extension<'_>) -> Option<()> {
        match extension.parsed_extension() {
            ParsedExtension::ParseError { .. } => return None,
            ParsedExtension::BasicConstraints(constraints) => self.constraints = Some(constraints.clone()),
            ParsedExtension::KeyUsage(usage) => self.usage = Some((extension.critical, *usage)),
            ParsedExtension::ExtendedKeyUsage(usage) => self.has_foreign_usage = is_foreign(usage),
            ParsedExtension::CRLDistributionPoints(_) => self.is_revocable = true,
            ParsedExtension::AuthorityInfoAccess(access) => {
                let mut methods = access.iter().map(|access| &access.access_method);
                self.is_revocable |= methods.any(|method| *method == OID_PKIX_ACCESS_DESCRIPTOR_OCSP);
            }
            _ => {}
        }
        self.has_unknown |= extension.critical && !KNOWN.contains(&extension.oid);
        Some(())
    }

    pub(super) fn name(&self) -> Result<Name, InvalidName> {
        Name::of_certificate(&self.parsed.tbs_certificate.subject)
    }

    pub(super) fn signature_algorithm(&self) -> Option<Algorithm> {
        self.key().algorithm()
    }

    pub(super) fn signed(&self, message: &[u8], signature: &[u8]) -> bool {
        self.key().signed(message, signature)
    }

    fn key(&self) -> PublicKey<'_> {
        PublicKey(&self.parsed.tbs_certificate.subject_pki)
    }

    fn is_certified_by(&self, issuer: &Self) -> bool {
        let (own, above) = (&self.parsed.tbs_certificate, &issuer.parsed.tbs_certificate);
        let signature = &self.parsed.signature_value.data;
        own.issuer.as_raw() == above.subject.as_raw()
            && issuer
                .key()
                .certified(&self.parsed.signature_algorithm, own.as_ref(), signature)
    }

    /// Checks the rules for an authority with `below` authorities below it.
    fn check_authority(&self, below: usize) -> Result<(), BrokenRule> {
        let is_deep = |most: Option<u32>| most.is_some_and(|most| u64::from(most) < below as u64);
        match &self.constraints {
            Some(constraints) if constraints.ca && !is_deep(constraints.path_len_constraint) => {}
            _ => return Err(BrokenRule::NoAuthority),
        }
        match &self.usage {
            Some((true, usage)) if usage.key_cert_sign() => Ok(()),
            Some((true, _)) => Err(BrokenRule::AuthorityUsage),
            _ => Err(BrokenRule::NoUsage),
        }
    }

    fn check_signer(&self) -> Result<(), BrokenRule> {
        if self
            .constraints
            .as_ref()
            .is_some_and(|constraints| constraints.ca)
        {
            return Err(BrokenRule::SignerAuthority);
        }
        let Some((true, usage)) = &self.usage else {
            return Err(BrokenRule::NoUsage);
        };
        if !usage.digital_signature() || usage.flags & !ALLOWED_USAGE != 0 {
            return Err(BrokenRule::SignerUsage);
        }
        if self.has_foreign_usage {
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

/// Encodes a certificate in DER around the part that its signature covers. Go refuses other encodings, which the parser accepts.
fn canonical(parsed: &X509Certificate<'_>) -> Option<Vec<u8>> {
    let algorithm = Sequence::new(key::encoded(&parsed.signature_algorithm)?.into());
    let body = [
        parsed.tbs_certificate.as_ref(),
        &algorithm.to_der_vec().ok()?,
        &parsed.signature_value.to_der_vec().ok()?,
    ];
    Sequence::new(body.concat().into()).to_der_vec().ok()
}

/// Returns true for usages that a signer must not have.
fn is_foreign(usage: &ExtendedKeyUsage<'_>) -> bool {
    let ExtendedKeyUsage {
        server_auth,
        client_auth,
        email_protection,
        time_stamping,
        ocsp_signing,
        ..
    } = usage;
    *server_auth || *client_auth || *email_protection || *time_stamping || *ocsp_signing
}
