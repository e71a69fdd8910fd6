//! Private keys: generated from the environment's randomness, or parsed from PEM.

mod der;
mod rsa;

use rcgen::KeyPair;

use super::context::Context;
use crate::functions::encoding::from_base64;
use crate::template::FunctionError;

/// Types of private keys by their PEM label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyKind {
    Rsa,
    Ec,
    Other,
}

pub(super) struct Key {
    kind: KeyKind,
    der: Vec<u8>,
}

/// The cost of finding a key, in steps per squared bit.
const WORK: u64 = 1;

impl Key {
    pub(super) fn rsa(context: &Context<'_>, bits: u64) -> Result<Self, FunctionError> {
        context.work(bits * bits * WORK)?;
        let der = rsa::generate(context, bits)?;
        Ok(Self {
            kind: KeyKind::Rsa,
            der,
        })
    }

    pub(super) fn ecdsa(context: &Context<'_>) -> Result<Self, FunctionError> {
        context.work(1_000_000)?;
        for _ in 0..100 {
            let mut scalar = [0; 32];
            context.environment.fill(&mut scalar);
            // Nearly every number is a valid private key.
            if let Ok(key) = p256::SecretKey::from_slice(&scalar) {
                let point = key.public_key().to_sec1_bytes();
                return Ok(Self {
                    kind: KeyKind::Ec,
                    der: der::ec_key(&scalar, &point),
                });
            }
        }
        Err("failed to generate private key: no randomness".into())
    }

    pub(super) fn ed25519(context: &Context<'_>) -> Self {
        let mut seed = [0; 32];
        context.environment.fill(&mut seed);
        let inner = der::octets(&seed);
        Self {
            kind: KeyKind::Other,
            der: der::pkcs8(&der::ED25519, &inner),
        }
    }

    pub(super) fn parse(text: &str) -> Result<Self, FunctionError> {
        let (label, der) = decode_pem(text).ok_or("no PEM data in input")?;
        let kind = match label.as_str() {
            "PRIVATE KEY" => return Ok(Self::from_pkcs8(der)),
            "RSA PRIVATE KEY" => KeyKind::Rsa,
            "EC PRIVATE KEY" => KeyKind::Ec,
            label => match label.strip_suffix(" PRIVATE KEY") {
                Some(kind) => return Err(format!("invalid private key type {kind}").into()),
                None => return Err(format!("no private key data in PEM block of type {label}").into()),
            },
        };
        Ok(Self { kind, der })
    }

    fn from_pkcs8(der: Vec<u8>) -> Self {
        match der::inside_pkcs8(&der) {
            Some((true, inner)) => Self {
                kind: KeyKind::Rsa,
                der: inner,
            },
            _ => Self {
                kind: KeyKind::Other,
                der,
            },
        }
    }

    pub(super) fn pem(&self) -> String {
        let label = match self.kind {
            KeyKind::Rsa => "RSA PRIVATE KEY",
            KeyKind::Ec => "EC PRIVATE KEY",
            KeyKind::Other => "PRIVATE KEY",
        };
        encode_pem(label, &self.der)
    }

    pub(super) fn pair(&self) -> Result<KeyPair, FunctionError> {
        let pkcs8 = match self.kind {
            KeyKind::Rsa => der::pkcs8(&der::RSA, &self.der),
            KeyKind::Ec => der::pkcs8(&der::P256, &self.der),
            KeyKind::Other => self.der.clone(),
        };
        KeyPair::try_from(pkcs8)
            .map_err(|_| "the private key is of no kind that certificates are made with".into())
    }
}

/// Encodes bytes as PEM: base64 in lines of 64 characters.
pub(super) fn encode_pem(label: &str, bytes: &[u8]) -> String {
    let text = crate::convert::base64(bytes);
    let mut lines = String::new();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at_checked(64).unwrap_or((rest, ""));
        lines.push_str(line);
        lines.push('\n');
        rest = after;
    }
    format!("-----BEGIN {label}-----\n{lines}-----END {label}-----\n")
}

pub(super) fn decode_pem(text: &str) -> Option<(String, Vec<u8>)> {
    let (_, block) = text.split_once("-----BEGIN ")?;
    let (label, rest) = block.split_once("-----")?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    let body: String = body.split_whitespace().collect();
    Some((label.to_owned(), from_base64(&body).ok()?))
}
