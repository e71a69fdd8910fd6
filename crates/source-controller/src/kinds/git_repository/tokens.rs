//! A cache of tokens of GitHub Apps.

use std::time::Duration;

use api::{Fault, Reason, Secret};
use cloud::{
    github::App,
    http::{Client, Settings},
};
use git::Auth;
use limits::{CacheBounds, CredentialCache};
use net::{AddressPolicy, Proxies, Proxy, Tls};
use runtime::secret::SecretData;

/// User name that GitHub expects beside a token.
const USER: &str = "x-access-token";
const ANSWER: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct AppLogin {
    app: App,
    ca: Option<Vec<u8>>,
    identity: Option<Secret<Vec<u8>>>,
    proxy: Option<Proxy>,
}

impl AppLogin {
    pub(super) fn new(app: App, secret: &SecretData, proxy: Option<Proxy>) -> Result<Self, Fault> {
        let identity = secret.identity()?;
        let pem = |(certificate, key): (&[u8], Secret<Vec<u8>>)| {
            Secret::new([certificate, b"\n", key.expose()].concat())
        };
        Ok(Self {
            app,
            ca: secret.ca().map(<[u8]>::to_vec),
            identity: identity.map(pem),
            proxy,
        })
    }

    fn client(&self, addresses: &AddressPolicy, timeout: Duration) -> Result<Client, cloud::Error> {
        Client::new(Settings {
            addresses: addresses.clone(),
            answer_bytes: ANSWER,
            timeout,
            tls: Tls {
                identity: self.identity.clone(),
                ..Tls::with_ca(self.ca.as_deref())
            },
            proxies: self.proxy.clone().map_or(Proxies::Environment, Proxies::Only),
            ..Settings::default()
        })
    }
}

pub(super) struct Tokens {
    addresses: AddressPolicy,
    tokens: CredentialCache<(String, AppLogin), Secret<String>>,
}

impl Tokens {
    pub(super) fn new(addresses: AddressPolicy, bounds: CacheBounds) -> Self {
        Self {
            addresses,
            tokens: CredentialCache::new(bounds),
        }
    }

    /// Returns the credentials of an App, with a new token if no cached one lasts.
    pub(super) async fn get(
        &self,
        namespace: &str,
        login: &AppLogin,
        timeout: Duration,
    ) -> Result<Auth, Fault> {
        let now = jiff::Timestamp::now();
        let key = (namespace.to_owned(), login.clone());
        let token = match self.tokens.get(&key, now.as_second()) {
            Some(token) => token,
            None => {
                let failed = |error: cloud::Error| {
                    let message = format!("failed to configure authentication options: {error}");
                    Fault::retry(Reason::AuthenticationFailed, message)
                };
                let client = login.client(&self.addresses, timeout).map_err(failed)?;
                let found = login.app.token(&client, now).await.map_err(failed)?;
                let times = (found.expires, now.as_second());
                self.tokens.insert(namespace, key, found.token.clone(), times);
                found.token
            }
        };
        Ok(Auth {
            username: USER.to_owned(),
            password: token,
        })
    }

    pub(super) fn forget(&self, namespace: &str, login: &AppLogin) {
        self.tokens.remove(&(namespace.to_owned(), login.clone()));
    }
}
