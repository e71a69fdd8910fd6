//! `nats`: the event as a message on a subject of a NATS server.
//!
//! Publishing needs five lines of the text protocol: see `delivery/nats.rs`, which sends the message.

use api::{Event, Secret};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use data_encoding::BASE32_NOPAD;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use url::Url;

use super::{Config, ProviderType, Step, Takes, generic};
use crate::Error;

/// Maximum number of servers of an address.
const SERVERS: usize = 8;
/// Kinds of keys, in the upper bits of their first byte: seeds, and users.
const SEED: u8 = 18 << 3;
const USER: u8 = 20 << 3;
const BAD_SEED: Error =
    Error::Config("the key nkey or creds in the Secret of spec.secretRef has no seed of a user (SU..)");

pub(super) const TYPE: ProviderType = ProviderType {
    name: "nats",
    steps,
    takes: Takes::News,
};

/// A message with the servers and the login.
#[derive(Debug, Clone)]
pub struct Publish {
    /// The servers, in the order of attempts; one suffices.
    pub servers: Vec<Secret<Url>>,
    pub subject: String,
    /// The ID by which streams drop repetitions.
    pub id: String,
    pub payload: Bytes,
    login: Login,
}

#[derive(Debug, Clone)]
enum Login {
    /// The credentials of the address, if it has any.
    Address,
    User(String, Secret<String>),
    /// The seed of a key, and the claims that name it.
    Key {
        seed: Secret<String>,
        claims: Option<Secret<String>>,
    },
}

fn steps(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    if config.proxied {
        return Err(Error::Config("the type nats cannot use a proxy: remove it"));
    }
    let payload = generic::encode(event)?;
    let publish = Publish {
        servers: servers(config.address()?)?,
        subject: subject(config.required_channel()?)?,
        id: hex::encode(Sha256::digest(&payload)),
        payload,
        login: login(config)?,
    };
    // Checks the seed before a connection exists.
    publish.connect(Some("n"), None)?;
    Ok(vec![Step::Publish(publish)])
}

fn servers(address: &str) -> Result<Vec<Secret<Url>>, Error> {
    const FORM: Error =
        Error::Config("the address is not the URL of a NATS server: nats://host:4222, or tls://");
    let each = address.split(',').map(str::trim);
    let servers: Result<Vec<_>, _> = each
        .map(|text| {
            let url = match text.contains("://") {
                true => Url::parse(text),
                false => Url::parse(&format!("nats://{text}")),
            };
            let url = url.map_err(|_| FORM)?;
            let usable =
                matches!(url.scheme(), "nats" | "tls") && url.host_str().is_some_and(|host| !host.is_empty());
            usable.then(|| Secret::new(url)).ok_or(FORM)
        })
        .collect();
    let servers = servers?;
    if servers.len() > SERVERS {
        return Err(Error::Config("the address has more than eight servers"));
    }
    Ok(servers)
}

/// Returns the subject if messages can be published to it: it has no blanks, no wildcards and no empty parts.
fn subject(channel: &str) -> Result<String, Error> {
    let is_plain = |part: &str| {
        !part.is_empty()
            && !matches!(part, "*" | ">")
            && !part.contains(|c: char| c.is_whitespace() || c.is_control())
    };
    match channel.split('.').all(is_plain) {
        true => Ok(channel.to_owned()),
        false => Err(Error::Config(
            "spec.channel is not a subject of NATS to publish to",
        )),
    }
}

/// Returns the login of the Secret: `creds`, else `nkey`, else username and password.
fn login(config: &Config) -> Result<Login, Error> {
    if let Some(creds) = config.keys.get("creds") {
        let block = |label: &str| {
            let (_, rest) = creds.expose().split_once(&format!("-----BEGIN {label}-----"))?;
            let (text, _) = rest.split_once("---")?;
            Some(Secret::new(text.trim_matches('-').trim().to_owned()))
        };
        let parts = block("NATS USER JWT").zip(block("USER NKEY SEED"));
        let (claims, seed) = parts.ok_or(Error::Config(
            "the key creds in the Secret of spec.secretRef is no file of credentials of NATS",
        ))?;
        return Ok(Login::Key {
            seed,
            claims: Some(claims),
        });
    }
    if let Some(seed) = config.keys.get("nkey") {
        // The file may have comments.
        let line = seed
            .expose()
            .lines()
            .map(str::trim)
            .find(|line| line.starts_with("SU"));
        let seed = Secret::new(line.ok_or(BAD_SEED)?.to_owned());
        return Ok(Login::Key { seed, claims: None });
    }
    Ok(match config.login() {
        Some((user, password)) => Login::User(user.to_owned(), Secret::new(password.to_owned())),
        None => Login::Address,
    })
}

impl Publish {
    /// Returns the line that logs in to a server, which may have sent a nonce to sign.
    /// Fails when the key is invalid, or the server sent no nonce for it.
    pub fn connect(&self, nonce: Option<&str>, server: Option<&Url>) -> Result<Secret<Vec<u8>>, Error> {
        let mut fields = json!({
            "verbose": false, "pedantic": false, "echo": false, "headers": true, "protocol": 1, "lang": "rust",
            "name": "weir", "version": env!("CARGO_PKG_VERSION"),
        });
        let mut set = |field: &str, value: &str| super::wire::set(&mut fields, field, value);
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

/// Returns the key pair of a seed of a user.
fn key(seed: &str) -> Result<Ed25519KeyPair, Error> {
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

/// Returns the name of a user's public key: `U..`.
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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::providers::fixture::{event, with};

    /// A seed and its public key, from the documentation of NATS.
    const SEED: &str = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
    const PUBLIC: &str = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";

    fn publish(config: &Config) -> Publish {
        match steps(&event(), config).unwrap().remove(0) {
            Step::Publish(publish) => publish,
            other => panic!("{other:?}"),
        }
    }

    fn said(publish: &Publish, nonce: Option<&str>, server: Option<&Url>) -> Value {
        let line = publish.connect(nonce, server).unwrap();
        let text = String::from_utf8(line.into_inner()).unwrap();
        serde_json::from_str(text.strip_prefix("CONNECT ").unwrap()).unwrap()
    }

    #[test]
    fn nats_message_has_an_id_and_the_event() {
        let publish = publish(&with("a.example, tls://b.example:1", "ops.events", ""));
        let servers: Vec<_> = publish.servers.iter().map(|url| url.expose().as_str()).collect();
        assert_eq!(servers, ["nats://a.example", "tls://b.example:1"]);
        let body = String::from_utf8(generic::encode(&event()).unwrap().to_vec()).unwrap();
        assert_eq!(
            String::from_utf8(publish.message(false)).unwrap(),
            format!("PUB ops.events {}\r\n{body}\r\n", body.len())
        );
        let head = format!("NATS/1.0\r\nNats-Msg-Id: {}\r\n\r\n", publish.id);
        let (own, all) = (head.len(), head.len() + body.len());
        assert_eq!(
            String::from_utf8(publish.message(true)).unwrap(),
            format!("HPUB ops.events {own} {all}\r\n{head}{body}\r\n")
        );
    }

    #[test]
    fn nats_logins_have_their_precedence() {
        let mut config = with("nats://me:p%40ss@a.example", "ops", "");
        let own = Url::parse(config.address().unwrap()).unwrap();
        let plain = said(&publish(&config), None, Some(&own));
        assert_eq!((&plain["user"], &plain["pass"]), (&"me".into(), &"p@ss".into()));
        (config.username, config.password) = (Some("u".into()), Some(Secret::new("p".into())));
        assert_eq!(said(&publish(&config), None, Some(&own))["user"], "u");
        config
            .keys
            .insert("nkey", Secret::new(format!("# seed\n{SEED}\n")));
        let key_only = said(&publish(&config), Some("nonce"), Some(&own));
        assert_eq!(
            (&key_only["nkey"], &key_only["user"]),
            (&PUBLIC.into(), &Value::Null)
        );
        let creds = format!(
            "-----BEGIN NATS USER JWT-----\nclaims\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{SEED}\n------END USER NKEY SEED------\n"
        );
        config.keys.insert("creds", Secret::new(creds));
        let claims = said(&publish(&config), Some("nonce"), Some(&own));
        assert_eq!(
            (&claims["jwt"], &claims["nkey"]),
            (&"claims".into(), &Value::Null)
        );
        let key = key(SEED).unwrap();
        assert_eq!(claims["sig"], URL_SAFE_NO_PAD.encode(key.sign(b"nonce")));
        assert!(publish(&config).connect(None, None).is_err());
    }

    #[test]
    fn unusable_nats_configuration_is_refused_without_its_secrets() {
        for (address, channel, key, value) in [
            ("http://a.example", "ops", "", ""),
            ("nats://", "ops", "", ""),
            ("nats://a.example", "", "", ""),
            ("nats://a.example", "ops.*", "", ""),
            ("nats://a.example", "ops..x", "", ""),
            ("nats://a.example", "ops\r\nPUB x 0", "", ""),
            ("nats://a.example", "ops", "nkey", "SUs3cret"),
            (
                "nats://a.example",
                "ops",
                "nkey",
                "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VZ",
            ),
            ("nats://a.example", "ops", "creds", "s3cret"),
        ] {
            let mut config = with(address, channel, "");
            if !key.is_empty() {
                let key = if key == "nkey" { "nkey" } else { "creds" };
                config.keys.insert(key, Secret::new(value.into()));
            }
            let error = steps(&event(), &config).unwrap_err();
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
        let mut proxied = with("nats://a.example", "ops", "");
        proxied.proxied = true;
        assert!(steps(&event(), &proxied).is_err());
    }
}
