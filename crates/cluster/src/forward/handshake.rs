//! The headers that open a WebSocket connection (RFC 6455).

use std::io;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{
        CONNECTION, InvalidHeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
        SEC_WEBSOCKET_VERSION, UPGRADE,
    },
};
use sha1::{Digest as _, Sha1};

const PROTOCOL: &str = "v4.channel.k8s.io";
/// Fixed by the RFC.
const SALT: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

pub(super) fn key() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(STANDARD.encode(bytes))
}

pub(super) fn add_headers(headers: &mut HeaderMap, key: &str) -> Result<(), InvalidHeaderValue> {
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOL));
    headers.insert(SEC_WEBSOCKET_KEY, HeaderValue::from_str(key)?);
    Ok(())
}

pub(super) fn check(headers: &HeaderMap, key: &str) -> Result<(), &'static str> {
    let is = |name: HeaderName, expected: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.is_some_and(|value| value.trim() == expected)
    };
    if !is(SEC_WEBSOCKET_ACCEPT, &accept(key)) {
        return Err("the answer is that to another handshake");
    }
    if !is(SEC_WEBSOCKET_PROTOCOL, PROTOCOL) {
        return Err("the server doesn't know the protocol v4.channel.k8s.io");
    }
    Ok(())
}

fn accept(key: &str) -> String {
    STANDARD.encode(Sha1::digest(format!("{key}{SALT}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_key_is_that_of_the_rfc() {
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
