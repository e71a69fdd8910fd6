//! `generic-hmac`: the event as JSON to any webhook, signed with a shared key.

use api::{Event, Secret};
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderName, HeaderValue};
use notification_specs::provider;
use sha2::Sha256;

use super::{
    generic,
    interface::{Config, ProviderType, Request, Step},
    wire,
};
use crate::error::Error;

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::GENERIC_HMAC,
    steps: |event, config| Ok(vec![Step::Send(payload(event, config)?)]),
};

const SIGNATURE: HeaderName = HeaderName::from_static("x-signature");

pub(super) fn payload(event: &Event, config: &Config) -> Result<Request, Error> {
    let token = key(config)?;
    let body = generic::encode(event)?;
    let mut mac = Hmac::<Sha256>::new_from_slice(token.expose().as_bytes()).map_err(|_| Error::NoToken)?;
    mac.update(&body);
    let signature = format!("sha256={}", hex::encode(mac.finalize().into_bytes()));
    let mut headers = generic::headers(event, config);
    // After the headers of the user: nobody can replace the signature.
    headers.insert(
        SIGNATURE,
        HeaderValue::from_str(&signature).map_err(|_| Error::Encoding)?,
    );
    Ok(Request {
        headers,
        ..wire::post(config.url()?, body)
    })
}
/// Fails when the token is missing or empty.
pub(super) fn key(config: &Config) -> Result<&Secret<String>, Error> {
    config
        .token
        .as_ref()
        .filter(|token| !token.expose().is_empty())
        .ok_or(Error::NoToken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::fixture;

    #[test]
    fn the_signature_is_over_the_bytes_that_are_sent() {
        let mut config = fixture::config();
        config.token = Some(Secret::new("key".into()));
        config.headers = vec![(SIGNATURE, HeaderValue::from_static("sha256=forged"))];
        let request = payload(&fixture::event(), &config).unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(b"key").unwrap();
        mac.update(&request.body);
        let given = request.headers[SIGNATURE]
            .to_str()
            .unwrap()
            .strip_prefix("sha256=")
            .unwrap();
        mac.verify_slice(&hex::decode(given).unwrap()).unwrap();
    }

    #[test]
    fn the_signature_is_hmac_sha256_in_hexadecimal() {
        // RFC 4231, test case 2.
        let mut mac = Hmac::<Sha256>::new_from_slice(b"Jefe").unwrap();
        mac.update(b"what do ya want for nothing?");
        assert_eq!(
            hex::encode(mac.finalize().into_bytes()),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    #[test]
    fn requests_without_a_signature_are_not_sent() {
        let mut config = fixture::config();
        assert_eq!(payload(&fixture::event(), &config).unwrap_err(), Error::NoToken);
        config.token = Some(Secret::new(String::new()));
        assert_eq!(payload(&fixture::event(), &config).unwrap_err(), Error::NoToken);
    }
}
