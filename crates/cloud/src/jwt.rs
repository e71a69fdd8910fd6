//! JSON web tokens signed with an RSA key.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::{
    rand::SystemRandom,
    signature::{RSA_PKCS1_SHA256, RsaKeyPair},
};
use rustls::pki_types::{PrivateKeyDer, pem::PemObject};

use crate::Error;

pub(crate) fn key(what: &'static str, pem: &str) -> Result<RsaKeyPair, Error> {
    let der = PrivateKeyDer::from_pem_slice(pem.as_bytes())
        .map_err(|_| Error::credentials(what, "it holds no private key in PEM"))?;
    let pair = match &der {
        PrivateKeyDer::Pkcs8(der) => RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()),
        PrivateKeyDer::Pkcs1(der) => RsaKeyPair::from_der(der.secret_pkcs1_der()),
        _ => return Err(Error::credentials(what, "its private key is no RSA key")),
    };
    pair.map_err(|error| Error::credentials(what, format!("its private key is no usable RSA key ({error})")))
}

/// Signs claims. The signature depends on key and claims only; its computation is randomized.
pub(crate) fn signed(
    what: &'static str,
    header: &serde_json::Value,
    claims: &serde_json::Value,
    key: &RsaKeyPair,
) -> Result<String, Error> {
    let part = |value: &serde_json::Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let mut token = format!("{}.{}", part(header), part(claims));
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(
        &RSA_PKCS1_SHA256,
        &SystemRandom::new(),
        token.as_bytes(),
        &mut signature,
    )
    .map_err(|_| Error::credentials(what, "its private key does not sign"))?;
    token.push('.');
    token.push_str(&BASE64_URL_SAFE_NO_PAD.encode(&signature));
    Ok(token)
}

/// Returns a token of these claims that is signed with the RSA key of this PEM text; `what` names the key in errors.
pub fn rs256(what: &'static str, claims: &serde_json::Value, pem: &str) -> Result<String, Error> {
    let header = serde_json::json!({"alg": "RS256", "typ": "JWT"});
    signed(what, &header, claims, &key(what, pem)?)
}
