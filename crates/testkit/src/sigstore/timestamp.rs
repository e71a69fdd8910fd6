//! A timestamp authority (RFC 3161).

use anyhow::{Context as _, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SerialNumber, SigningKey as _,
};
use sha2::{Digest as _, Sha256};

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const OBJECT_ID: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const GENERALIZED_TIME: u8 = 0x18;
const CONTEXT: u8 = 0xa0;

const SHA256: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01];
const ECDSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const SIGNED_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02];
const CONTENT_TYPE: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x03];
const MESSAGE_DIGEST: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x04];
const TIMESTAMP_INFO: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x10, 0x01, 0x04];
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const POLICY: &[u8] = &[0x2a, 0x03, 0x04];

const ROOT: &str = "root of timestamps";
const SERIAL: u8 = 9;

#[derive(Debug)]
pub(super) struct TimestampAuthority {
    key: KeyPair,
    /// The certificate of the key, then its root, in DER.
    pub(super) chain: [Vec<u8>; 2],
}

impl TimestampAuthority {
    pub(super) fn new() -> Result<Self> {
        let mut root = CertificateParams::new(Vec::new())?;
        root.distinguished_name = rcgen::DistinguishedName::new();
        root.distinguished_name.push(DnType::CommonName, ROOT);
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        root.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let root_key = KeyPair::generate()?;
        let root_der = root.self_signed(&root_key)?.der().to_vec();
        let mut leaf = CertificateParams::new(Vec::new())?;
        leaf.serial_number = Some(SerialNumber::from(vec![SERIAL]));
        leaf.distinguished_name.push(DnType::CommonName, "timestamps");
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::TimeStamping];
        let key = KeyPair::generate()?;
        let leaf = leaf.signed_by(&key, &Issuer::new(root, root_key))?;
        Ok(Self {
            key,
            chain: [leaf.der().to_vec(), root_der],
        })
    }

    /// Returns the response to a request for a timestamp of a signature; `time` is written as `20200102120000Z`.
    pub(super) fn response(&self, signature: &[u8], time: &str) -> Result<Vec<u8>> {
        let sha256 = der(SEQUENCE, &[&id(SHA256)?])?;
        let version = |number: u8| der(INTEGER, &[&[number]]);
        let hashed = der(OCTET_STRING, &[&Sha256::digest(signature)])?;
        let info = der(
            SEQUENCE,
            &[
                &version(1)?,
                &id(POLICY)?,
                &der(SEQUENCE, &[&sha256, &hashed])?,
                &version(1)?,
                &der(GENERALIZED_TIME, &[time.as_bytes()])?,
            ],
        )?;
        let attribute = |kind: &[u8], value: &[u8]| der(SEQUENCE, &[&id(kind)?, &der(SET, &[value])?]);
        let attributes = [
            attribute(CONTENT_TYPE, &id(TIMESTAMP_INFO)?)?,
            attribute(MESSAGE_DIGEST, &der(OCTET_STRING, &[&Sha256::digest(&info)])?)?,
        ]
        .concat();
        let signed = self.key.sign(&der(SET, &[&attributes])?)?;
        let name = der(
            SEQUENCE,
            &[&id(COMMON_NAME)?, &der(UTF8_STRING, &[ROOT.as_bytes()])?],
        )?;
        let issuer = der(SEQUENCE, &[&der(SET, &[&name])?])?;
        let signer = der(
            SEQUENCE,
            &[
                &version(1)?,
                &der(SEQUENCE, &[&issuer, &der(INTEGER, &[&[SERIAL]])?])?,
                &sha256,
                &der(CONTEXT, &[&attributes])?,
                &der(SEQUENCE, &[&id(ECDSA_SHA256)?])?,
                &der(OCTET_STRING, &[&signed])?,
            ],
        )?;
        let content = der(CONTEXT, &[&der(OCTET_STRING, &[&info])?])?;
        let data = der(
            SEQUENCE,
            &[
                &version(3)?,
                &der(SET, &[&sha256])?,
                &der(SEQUENCE, &[&id(TIMESTAMP_INFO)?, &content])?,
                &der(SET, &[&signer])?,
            ],
        )?;
        let token = der(SEQUENCE, &[&id(SIGNED_DATA)?, &der(CONTEXT, &[&data])?])?;
        der(SEQUENCE, &[&der(SEQUENCE, &[&version(0)?])?, &token])
    }
}

fn id(bytes: &[u8]) -> Result<Vec<u8>> {
    der(OBJECT_ID, &[bytes])
}

fn der(kind: u8, parts: &[&[u8]]) -> Result<Vec<u8>> {
    let content = parts.concat();
    let length = u16::try_from(content.len()).context("a timestamp is short")?;
    let [high, low] = length.to_be_bytes();
    let head = match (high, low) {
        (0, 0..=0x7f) => vec![kind, low],
        (0, _) => vec![kind, 0x81, low],
        _ => vec![kind, 0x82, high, low],
    };
    Ok([head, content].concat())
}
