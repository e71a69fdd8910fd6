//! `nats`: the event as a message on a subject of a NATS server.
//!
//! Publishing needs five lines of the text protocol: see `delivery/nats.rs`, which sends the message.

pub mod publish;

use api::{Event, Secret};
use notification_specs::provider;
use sha2::{Digest as _, Sha256};
use url::Url;

use super::{
    generic,
    interface::{Config, ProviderType, Step},
};
use crate::error::Error;
use publish::{BAD_SEED, Login, Publish};

const SERVERS: usize = 8;

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::NATS,
    steps,
};

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

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    use serde_json::Value;

    use super::{publish::key, *};
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
