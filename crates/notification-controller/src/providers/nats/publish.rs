//! A message for a NATS server, with the login.

use api::Secret;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use data_encoding::BASE32_NOPAD;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::json;
use url::Url;

use crate::error::Error;

/// Kinds of keys, in the upper bits of their first byte: seeds, and users.
const SEED: u8 = 18 << 3;
const USER: u8 = 20 << 3;
pub(super) const BAD_SEED: Error =
    Error::Config("the key nkey or creds in the Secret of spec.secretRef has no seed of a user (SU..)");

#[derive(Debug, Clone)]
pub struct Publish {
    /// The servers, in the order of attempts; one suffices.
    pub servers: Vec<Secret<Url>>,
    pub subject: String,
    /// The ID by which streams drop repetitions.
    pub id: String,
    pub payload: Bytes,
    pub(super) login: Login,
}

#[derive(Debug, Clone)]
pub(super) enum Login {
    /// The credentials of the address, if it has any.
    Address,
    User(String, Secret<String>),
    /// The seed of a key, and the claims that name it.
    Key {
        seed: Secret<String>,
        claims: Option<Secret<String>>,
    },
}

impl Publish {
    /// Returns the line that logs in to a server, which may have sent a nonce to sign.
    /// Fails when the key is invalid, or the server sent no nonce for it.
    pub fn connect(&self, nonce: Option<&str>, server: Option<&Url>) -> Result<Secret<Vec<u8>>, Error> {
        let mut fields = json!({
            "verbose": false, "pedantic": false, "echo": false, "headers": true, "protocol": 1, "lang": "rust",
            "name": "weir", "version": env!("CARGO_PKG_VERSION"),
        });
        let mut set = |field: &str, value: &str| {
            if let Some(fields) = fields.as_object_mut() {
                fields.insert(field.to_owned(), value.into());
            }
        };
        match &self.login {
            Login::User(user, password) => {
                set("user", user);
                set("pass", password.expose());
            }
            Login::Key { seed, claims } => {
                let key = key(seed.expose())?;
                let nonce = nonce.ok_or(Error::Protocol("it asked for no signature by the key"))?;
                let signature = URL_SAFE_NO_PAD.encode(key.sign(nonce.as_bytes()));
                set("sig", &signature);
                match claims {
                    Some(claims) => set("jwt", claims.expose()),
                    None => set("nkey", &public(&key)),
                }
            }
            Login::Address => {
                let text = |text: &str| {
                    percent_encoding::percent_decode_str(text)
                        .decode_utf8_lossy()
                        .into_owned()
                };
                match server.map(|url| (text(url.username()), url.password().map(text))) {
                    Some((user, Some(password))) => {
                        set("user", &user);
                        set("pass", &password);
                    }
                    Some((token, None)) if !token.is_empty() => set("auth_token", &token),
                    _ => {}
                }
            }
        }
        Ok(Secret::new(format!("CONNECT {fields}\r\n").into_bytes()))
    }

    /// Encodes the message, with its ID if the server supports headers.
    #[must_use]
    pub fn message(&self, headers: bool) -> Vec<u8> {
        let head = match headers {
            true => format!("NATS/1.0\r\nNats-Msg-Id: {}\r\n\r\n", self.id),
            false => String::new(),
        };
        let total = head.len() + self.payload.len();
        let line = match headers {
            true => format!("HPUB {} {} {total}\r\n", self.subject, head.len()),
            false => format!("PUB {} {total}\r\n", self.subject),
        };
        [line.as_bytes(), head.as_bytes(), &self.payload, b"\r\n"].concat()
    }
}

pub(super) fn key(seed: &str) -> Result<Ed25519KeyPair, Error> {
    let raw = BASE32_NOPAD.decode(seed.as_bytes()).map_err(|_| BAD_SEED)?;
    let (body, sum) = raw.split_last_chunk::<2>().ok_or(BAD_SEED)?;
    let [first, second, seed @ ..] = body else {
        return Err(BAD_SEED);
    };
    let kind = ((first & 7) << 5) | (second >> 3);
    if crc16(body).to_le_bytes() != *sum || first & 0xf8 != SEED || kind != USER {
        return Err(BAD_SEED);
    }
    Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| BAD_SEED)
}

fn public(key: &Ed25519KeyPair) -> String {
    let mut raw = vec![USER];
    raw.extend_from_slice(key.public_key().as_ref());
    raw.extend(crc16(&raw).to_le_bytes());
    BASE32_NOPAD.encode(&raw)
}

/// Returns the checksum of keys: CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ (u16::from(*byte) << 8), |sum, _| {
            (sum << 1) ^ if sum & 0x8000 == 0 { 0 } else { 0x1021 }
        })
    })
}
