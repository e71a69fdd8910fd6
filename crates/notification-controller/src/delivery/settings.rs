//! The configuration of a provider and its connection, from its spec and its Secrets. Pure.

use std::{collections::BTreeMap, fmt};

use api::{Secret, notification::Provider};
use http::{HeaderName, HeaderValue, header};
use kube::ResourceExt as _;
use net::{Proxy, Roots};
use notification_specs::provider::Takes;
use tree::Budget;
use yaml::Value;

use super::secrets::{ProviderSecret, ProviderSecrets};
use crate::{
    error::Error,
    providers::{
        self,
        interface::{AlertName, Config, KEYS},
    },
};

/// Maximum length of an address, in bytes.
const MAX_ADDRESS: usize = 2048;
/// Headers that the HTTP client sets.
const RESERVED: [HeaderName; 4] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
];

#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Tls {
    /// The only trusted authorities, in PEM.
    pub(super) ca: Option<Vec<u8>>,
    /// Client certificate and key, in PEM.
    pub(super) client: Option<Secret<Vec<u8>>>,
}

#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Connection {
    pub(super) tls: Tls,
    /// The proxy of the user; without one, the proxy of the environment is used.
    pub(super) proxy: Option<Proxy>,
}

#[derive(Debug)]
pub(super) struct Settings {
    pub(super) config: Config,
    pub(super) connection: Connection,
}

impl Settings {
    /// Fails when a Secret or the address is invalid.
    pub(super) fn of(provider: &Provider, secrets: &ProviderSecrets) -> Result<Self, Error> {
        let credentials = secrets.credentials.as_ref();
        let tls = match &secrets.certificates {
            Some(secret) => tls(secret)?,
            None => own_tls(provider, credentials)?,
        };
        let proxy = match &secrets.proxy {
            Some(secret) => Some(named_proxy(secret)?),
            None => proxy(provider, credentials)?,
        };
        Ok(Self {
            config: Config {
                proxied: proxy.is_some(),
                ..config(provider, credentials)?
            },
            connection: Connection { tls, proxy },
        })
    }
}

impl Tls {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn settings(&self) -> net::Tls {
        net::Tls {
            roots: self.ca.clone().map_or(Roots::System, Roots::Only),
            identity: self.client.clone(),
            insecure_skip_verify: false,
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

/// Returns the proxy of the Secret of `spec.proxySecretRef`.
fn named_proxy(secret: &ProviderSecret) -> Result<Proxy, Error> {
    let Some(address) = secret.text("address")? else {
        return Err(secret.bad("address", "it is missing: it is the URL of the proxy"));
    };
    let username = secret.text("username")?.map(Secret::into_inner);
    let password = secret.text("password")?;
    Proxy::parse(address.expose(), username.as_deref(), password).map_err(|why| Error::BadProxy {
        from: format!("Secret '{}'", secret.name),
        why,
    })
}

/// Returns the proxy of the key `proxy` of the Secret or else of `spec.proxy`.
fn proxy(provider: &Provider, secret: Option<&ProviderSecret>) -> Result<Option<Proxy>, Error> {
    let bad = |from: String| move |why| Error::BadProxy { from, why };
    if let Some(secret) = secret
        && let Some(text) = secret.text("proxy")?
    {
        let from = format!("Secret '{}', key proxy", secret.name);
        return Proxy::parse(text.expose(), None, None)
            .map(Some)
            .map_err(bad(from));
    }
    let Some(text) = &provider.spec.proxy else {
        return Ok(None);
    };
    let proxy = Proxy::parse(text.expose(), None, None);
    proxy.map(Some).map_err(bad("spec.proxy".to_owned()))
}

fn config(provider: &Provider, secret: Option<&ProviderSecret>) -> Result<Config, Error> {
    let spec = &provider.spec;
    let key = |key: &'static str| secret.map_or(Ok(None), |secret| secret.text(key));
    let mut keys = BTreeMap::new();
    for name in KEYS {
        if let Some(value) = key(name)? {
            keys.insert(name, value);
        }
    }
    // A user name without a password is not a login, so that it is not used as the sender of messages either.
    let (username, password) = (key("username")?, key("password")?);
    let username = username.filter(|_| password.is_some()).map(Secret::into_inner);
    Ok(Config {
        address: address(key("address")?.as_ref().or(spec.address.as_ref()))?,
        password,
        identity: None,
        keys,
        uid: provider.uid().unwrap_or_default(),
        alert: AlertName::default(),
        status_id: None,
        proxied: false,
        channel: spec.channel.clone().unwrap_or_default(),
        username: username
            .or_else(|| spec.username.clone())
            .filter(|name| !name.is_empty()),
        token: key("token")?,
        headers: secret.map_or(Ok(Vec::new()), headers)?,
    })
}

fn address(text: Option<&Secret<String>>) -> Result<Option<Secret<String>>, Error> {
    let text = text.map(|text| text.expose().trim());
    match text.filter(|text| !text.is_empty()) {
        Some(text) if text.len() > MAX_ADDRESS => Err(Error::LongAddress(MAX_ADDRESS)),
        text => Ok(text.map(|text| Secret::new(text.to_owned()))),
    }
}

/// Returns the headers of a Secret: a YAML map under the key `headers`.
fn headers(secret: &ProviderSecret) -> Result<Vec<(HeaderName, HeaderValue)>, Error> {
    const KEY: &str = "headers";
    let Some(text) = secret.text(KEY)? else {
        return Ok(Vec::new());
    };
    let document = yaml::read::goyaml(text.expose(), &Budget::default())
        .map_err(|_| secret.bad(KEY, "it is not a YAML map of names and values"))?;
    let map = document
        .value
        .as_map()
        .ok_or_else(|| secret.bad(KEY, "it is not a YAML map of names and values"))?;
    let mut headers = Vec::with_capacity(map.len());
    for (name, value) in map.iter() {
        let name =
            HeaderName::try_from(name).map_err(|_| secret.bad(KEY, "a name is not that of a header"))?;
        if RESERVED.contains(&name) {
            return Err(secret.bad(
                KEY,
                "Host, Content-Length, Transfer-Encoding and Connection cannot be set",
            ));
        }
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Bool(value) => value.to_string(),
            Value::Int(value) => value.to_string(),
            Value::UInt(value) => value.to_string(),
            _ => return Err(secret.bad(KEY, "a value is not a text")),
        };
        let mut value = HeaderValue::try_from(text)
            .map_err(|_| secret.bad(KEY, "a value has characters that no header may have"))?;
        value.set_sensitive(true);
        headers.push((name, value));
    }
    Ok(headers)
}

/// Returns the certificates in the Secret of credentials, which types for commits read without another Secret for them.
fn own_tls(provider: &Provider, secret: Option<&ProviderSecret>) -> Result<Tls, Error> {
    const CERTIFICATES: [&str; 6] = ["ca.crt", "tls.crt", "tls.key", "caFile", "certFile", "keyFile"];
    let kind = providers::find(&provider.spec.type_)?;
    let secret = secret.filter(|secret| CERTIFICATES.iter().any(|key| secret.has(key)));
    match secret {
        Some(secret) if kind.rules.takes == Takes::Commits => tls(secret),
        _ => Ok(Tls::default()),
    }
}

fn tls(secret: &ProviderSecret) -> Result<Tls, Error> {
    let (certificate, key) = (
        secret.bytes("tls.crt", "certFile"),
        secret.bytes("tls.key", "keyFile"),
    );
    let client = match (certificate, key) {
        (None, None) => None,
        (Some(mut pair), Some(key)) => {
            pair.push(b'\n');
            pair.extend_from_slice(&key);
            Some(Secret::new(pair))
        }
        (Some(_), None) => return Err(secret.bad("tls.key", "it is missing, although tls.crt is there")),
        (None, Some(_)) => return Err(secret.bad("tls.crt", "it is missing, although tls.key is there")),
    };
    let ca = secret.bytes("ca.crt", "caFile");
    if ca.is_none() && client.is_none() {
        return Err(secret.bad("ca.crt", "it is missing, and so are tls.crt and tls.key"));
    }
    Ok(Tls { ca, client })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn provider(spec: serde_json::Value) -> Provider {
        let mut spec = spec;
        spec["type"] = "generic".into();
        serde_json::from_value(json!({
            "apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Provider",
            "metadata": {"name": "p", "namespace": "team"}, "spec": spec,
        }))
        .unwrap()
    }

    fn keys(data: &[(&str, &str)]) -> ProviderSecret {
        ProviderSecret::of("s", data)
    }

    fn made(spec: serde_json::Value, data: &[(&str, &str)]) -> Result<Config, Error> {
        config(&provider(spec), Some(&keys(data)))
    }

    #[test]
    fn the_secret_has_precedence_over_the_spec() {
        let config = made(
            json!({"address": "https://spec.example/", "channel": "c", "username": "spec"}),
            &[
                ("address", " https://secret.example/x\n"),
                ("token", "t0ken\n"),
                ("username", "u"),
                ("password", "p"),
            ],
        )
        .unwrap();
        assert_eq!(
            config.address.as_ref().unwrap().expose().as_str(),
            "https://secret.example/x"
        );
        assert_eq!(config.token.unwrap().expose(), "t0ken");
        assert_eq!(
            (config.channel.as_str(), config.username.as_deref()),
            ("c", Some("u"))
        );
    }

    #[test]
    fn half_a_login_is_no_login() {
        let config = made(
            json!({"address": "https://a.example", "username": "spec"}),
            &[("username", "u")],
        )
        .unwrap();
        assert_eq!(config.username.as_deref(), Some("spec"));
    }

    #[test]
    fn invalid_addresses_have_distinct_errors_without_the_address() {
        let long = format!("https://a.example/{}", "s3cret".repeat(400));
        for (address, error) in [
            ("", Error::NoAddress),
            (long.as_str(), Error::LongAddress(2048)),
            ("s3cret", Error::BadAddress),
            ("file:///s3cret", Error::BadAddress),
            ("https://", Error::BadAddress),
        ] {
            let made = made(json!({}), &[("address", address)]);
            let given = made.and_then(|config| config.url()).unwrap_err();
            assert_eq!(given, error);
            assert!(!given.to_string().contains("s3cret"));
        }
    }

    #[test]
    fn headers_are_a_map_of_strings() {
        let spec = || json!({"address": "https://a.example"});
        let config = made(
            spec(),
            &[("headers", "Authorization: Bearer s3cret\nX-Number: 5\n")],
        )
        .unwrap();
        assert_eq!(config.headers.len(), 2);
        assert!(config.headers[0].1.is_sensitive());
        assert!(!format!("{config:?}").contains("s3cret"));
        for headers in [
            "- s3cret",
            "s3cret",
            "a: [s3cret]",
            "'bad s3cret name': x",
            "a: \"x\\ns3cret\"",
            "Host: s3cret",
            "{",
        ] {
            let error = made(spec(), &[("headers", headers)]).unwrap_err();
            assert!(
                matches!(error, Error::BadSecret { key: "headers", .. }),
                "{headers}"
            );
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn proxy_comes_from_the_secret_before_the_spec() {
        let spec = || provider(json!({"address": "https://a.example", "proxy": "http://spec:s3cret@proxy"}));
        let user = |proxy: Option<Proxy>| proxy.and_then(|proxy| proxy.auth).map(|auth| auth.0);
        let secret = keys(&[("proxy", "http://secret:s3cret@proxy")]);
        assert_eq!(
            user(proxy(&spec(), Some(&secret)).unwrap()).as_deref(),
            Some("secret")
        );
        assert_eq!(
            user(proxy(&spec(), Some(&keys(&[]))).unwrap()).as_deref(),
            Some("spec")
        );
        assert_eq!(proxy(&provider(json!({})), None), Ok(None));
        let named = keys(&[
            ("address", "http://proxy:3128"),
            ("username", "u"),
            ("password", "s3cret"),
        ]);
        assert_eq!(user(named_proxy(&named).ok()).as_deref(), Some("u"));
        for (error, expected) in [
            (
                proxy(&spec(), Some(&keys(&[("proxy", "socks4://u:s3cret@proxy")]))).unwrap_err(),
                "Secret 's', key proxy: the proxy is not supported: only http, https and socks5 are",
            ),
            (
                named_proxy(&keys(&[("address", "http://p"), ("password", "s3cret")])).unwrap_err(),
                "Secret 's': a password needs a username",
            ),
            (
                named_proxy(&keys(&[("username", "s3cret")])).unwrap_err(),
                "Secret 's', key address: it is missing: it is the URL of the proxy",
            ),
        ] {
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn certificates_come_alone_or_in_pairs() {
        assert!(tls(&keys(&[("ca.crt", "ca")])).is_ok_and(|tls| tls.ca.is_some() && tls.client.is_none()));
        assert!(tls(&keys(&[("caFile", "ca")])).is_ok_and(|tls| tls.ca.is_some()));
        assert!(tls(&keys(&[("tls.crt", "c"), ("tls.key", "k")])).is_ok_and(|tls| tls.client.is_some()));
        for data in [&[("tls.crt", "c")][..], &[("tls.key", "k")], &[]] {
            assert!(tls(&keys(data)).is_err(), "{data:?}");
        }
    }
}
