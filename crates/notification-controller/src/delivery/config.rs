//! The configuration of a provider: its spec and its Secrets, read for each delivery.

use std::{collections::BTreeMap, fmt};

use api::{Secret, notification::Provider};
use http::{HeaderName, HeaderValue, header};
use k8s_openapi::{ByteString, api::core::v1::Secret as KubernetesSecret};
use kube::{Api, Client, ResourceExt};
use net::{Proxy, Roots};
use tree::Budget;
use yaml::Value;

use super::identity::Identities;
use crate::{
    Error,
    providers::{self, AlertName, Config, Takes},
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

/// Certificates of the connection to a provider.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Tls {
    /// The only trusted authorities, in PEM.
    pub(super) ca: Option<Vec<u8>>,
    /// Client certificate and key, in PEM.
    pub(super) client: Option<Secret<Vec<u8>>>,
}

/// The connection to a provider: certificates and proxy.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Route {
    pub(super) tls: Tls,
    /// The proxy of the user; without one, the proxy of the environment is used.
    pub(super) proxy: Option<Proxy>,
}

/// The configuration of a provider and the connection to it, as a delivery needs them.
pub(crate) struct Loaded {
    pub(super) config: Config,
    pub(super) route: Route,
    /// The cache key of the access token in [`Config::identity`].
    pub(super) identity: Option<String>,
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

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// Reads the Secrets of a provider and makes its configuration.
/// Fails when a Secret is missing or invalid, or the address is.
pub(crate) async fn load(
    client: &Client,
    identities: &Identities,
    provider: &Provider,
) -> Result<Loaded, Error> {
    let api = Api::<KubernetesSecret>::namespaced(client.clone(), &provider.namespace().unwrap_or_default());
    let secret = match &provider.spec.secret_ref {
        Some(reference) => Some(Keys::read(&api, &reference.name).await?),
        None => None,
    };
    let certificates = match &provider.spec.cert_secret_ref {
        Some(reference) => tls(&Keys::read(&api, &reference.name).await?)?,
        None => own_tls(provider, secret.as_ref())?,
    };
    let proxy = match &provider.spec.proxy_secret_ref {
        Some(reference) => Some(named_proxy(&Keys::read(&api, &reference.name).await?)?),
        None => proxy(provider, secret.as_ref())?,
    };
    let mut config = Config {
        proxied: proxy.is_some(),
        ..config(provider, secret.as_ref())?
    };
    let identity = identities.token(provider, &config, proxy.as_ref()).await?;
    let identity = identity.map(|(key, token)| {
        config.identity = Some(token);
        key
    });
    Ok(Loaded {
        config,
        identity,
        route: Route {
            tls: certificates,
            proxy,
        },
    })
}

/// Returns the proxy of the Secret of `spec.proxySecretRef`. Pure.
fn named_proxy(secret: &Keys) -> Result<Proxy, Error> {
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

/// Returns the proxy of the key `proxy` of the Secret or else of `spec.proxy`. Pure.
fn proxy(provider: &Provider, secret: Option<&Keys>) -> Result<Option<Proxy>, Error> {
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

/// The keys of one Secret.
struct Keys {
    name: String,
    data: BTreeMap<String, ByteString>,
}

impl Keys {
    async fn read(api: &Api<KubernetesSecret>, name: &str) -> Result<Self, Error> {
        match api.get_opt(name).await {
            Ok(Some(secret)) => Ok(Self {
                name: name.to_owned(),
                data: secret.data.unwrap_or_default(),
            }),
            Ok(None) => Err(Error::NoSecret(name.to_owned())),
            Err(kube::Error::Api(status)) => {
                Err(Error::UnreadableSecret(name.to_owned(), status.reason.clone()))
            }
            Err(_) => Err(Error::UnreadableSecret(
                name.to_owned(),
                "the API server cannot be reached".to_owned(),
            )),
        }
    }

    fn bad(&self, key: &'static str, why: &'static str) -> Error {
        Error::BadSecret {
            secret: self.name.clone(),
            key,
            why,
        }
    }

    /// Returns a key as a string without surrounding whitespace; `None` if it is missing or empty.
    fn text(&self, key: &'static str) -> Result<Option<Secret<String>>, Error> {
        let Some(bytes) = self.data.get(key) else {
            return Ok(None);
        };
        let text = std::str::from_utf8(&bytes.0)
            .map_err(|_| self.bad(key, "it is not UTF-8 text"))?
            .trim();
        Ok((!text.is_empty()).then(|| Secret::new(text.to_owned())))
    }

    fn bytes(&self, key: &str, legacy: &str) -> Option<Vec<u8>> {
        let found = self.data.get(key).or_else(|| self.data.get(legacy));
        found
            .map(|bytes| bytes.0.clone())
            .filter(|bytes| !bytes.is_empty())
    }
}

/// Returns the configuration of spec and Secret. Pure.
fn config(provider: &Provider, secret: Option<&Keys>) -> Result<Config, Error> {
    let spec = &provider.spec;
    let key = |key: &'static str| secret.map_or(Ok(None), |secret| secret.text(key));
    let mut keys = BTreeMap::new();
    for name in providers::KEYS {
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
fn headers(secret: &Keys) -> Result<Vec<(HeaderName, HeaderValue)>, Error> {
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
fn own_tls(provider: &Provider, secret: Option<&Keys>) -> Result<Tls, Error> {
    const KEYS: [&str; 6] = ["ca.crt", "tls.crt", "tls.key", "caFile", "certFile", "keyFile"];
    let kind = providers::find(&provider.spec.type_)?;
    let secret = secret.filter(|secret| KEYS.iter().any(|key| secret.data.contains_key(*key)));
    match secret {
        Some(secret) if kind.takes == Takes::Commits => tls(secret),
        _ => Ok(Tls::default()),
    }
}

fn tls(secret: &Keys) -> Result<Tls, Error> {
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

    fn keys(data: &[(&str, &str)]) -> Keys {
        let data = data
            .iter()
            .map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())));
        Keys {
            name: "s".into(),
            data: data.collect(),
        }
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
    fn headers_are_a_map_of_texts() {
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
