//! Caches the keys of issuers, which are discovered and fetched under the policy of addresses.
//!
//! Only issuers that Receivers name are asked, and each at most once in ten seconds: tokens of strangers cost no requests.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use limits::{TenantCache, compute_sized};
use net::{AddressPolicy, Client, ClientOptions, Redirects, Timeouts};
use parking_lot::Mutex;
use serde::Deserialize;
use url::Url;

use super::jwt::KeySet;

/// Maximum age of cached keys.
const MAX_AGE: Duration = Duration::from_secs(5 * 60);
/// Maximum age of cached keys while their issuer can't be asked.
const MAX_STALE_AGE: Duration = Duration::from_secs(60 * 60);
/// Minimum time between two requests to an issuer.
const PAUSE: Duration = Duration::from_secs(10);
/// Maximum number of cached locations.
const MAX_LOCATIONS: usize = 256;
const MAX_BODY: u64 = 512 << 10;
const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(5),
    read: Some(Duration::from_secs(5)),
    total: Some(Duration::from_secs(10)),
};

/// The reason for missing keys. It is logged, and never contains the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeysError {
    /// The policy of addresses refuses the URL, or it is not a URL.
    #[error(
        "the URL of the issuer, or of its keys, is invalid or refused (--allow-addresses makes exceptions)"
    )]
    Address,
    #[error("the issuer, or the server of its keys, did not answer with status 200")]
    Unreachable,
    /// The discovery document or the keys are malformed, or the document names another issuer.
    #[error("the answer of the issuer is not what OpenID Connect Discovery says")]
    Answer,
    /// A request to the issuer failed just now.
    #[error("the issuer was asked less than 10 s ago")]
    Pause,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum KeyLocation {
    Issuer(String),
    Keys(String),
}

#[derive(Default)]
struct Known {
    keys: Option<(Arc<KeySet>, Instant)>,
    asked: Option<Instant>,
}

impl Known {
    /// Stores the result of a request for keys. A failure leaves the keys that are not too old: nobody may end their use by sending
    /// tokens of unknown keys while the issuer is down.
    fn take(&mut self, fetched: Result<Arc<KeySet>, KeysError>) -> Result<Arc<KeySet>, KeysError> {
        match (fetched, &self.keys) {
            (Ok(keys), _) => {
                self.keys = Some((Arc::clone(&keys), Instant::now()));
                Ok(keys)
            }
            (Err(_), Some((keys, at))) if at.elapsed() < MAX_STALE_AGE => Ok(Arc::clone(keys)),
            (Err(error), _) => {
                self.keys = None;
                Err(error)
            }
        }
    }
}

/// The keys of a location that a namespace uses.
type KnownKeys = Arc<tokio::sync::Mutex<Known>>;

pub(crate) struct Keys {
    client: Client,
    known: Mutex<TenantCache<(String, KeyLocation), KnownKeys>>,
}

impl Keys {
    pub(crate) fn new(addresses: AddressPolicy) -> Result<Self, net::Error> {
        let client = ClientOptions {
            timeouts: TIMEOUTS,
            redirects: Redirects::FOLLOW,
            ..ClientOptions::new(addresses)
        };
        Ok(Self {
            client: client.build()?,
            known: Mutex::new(TenantCache::new(MAX_LOCATIONS)),
        })
    }

    /// Returns the keys of an issuer for a namespace; with `renewed`, keys that have been fetched after the ones that lacked a key.
    pub(crate) async fn of(
        &self,
        namespace: &str,
        location: &KeyLocation,
        renewed: bool,
    ) -> Result<Arc<KeySet>, KeysError> {
        let entry = self.entry(namespace, location);
        // Requests for the same keys wait for one response.
        let mut known = entry.lock().await;
        let age = known.asked.map(|asked| asked.elapsed());
        if let Some((keys, _)) = &known.keys {
            let recent = age.is_some_and(|age| age < PAUSE);
            if recent || !renewed && age.is_some_and(|age| age < MAX_AGE) {
                return Ok(Arc::clone(keys));
            }
        } else if age.is_some_and(|age| age < PAUSE) {
            return Err(KeysError::Pause);
        }
        known.asked = Some(Instant::now());
        let fetched = self.fetch(namespace, location).await;
        known.take(fetched)
    }

    fn entry(&self, namespace: &str, location: &KeyLocation) -> KnownKeys {
        let key = (namespace.to_owned(), location.clone());
        self.known.lock().get_or_default(namespace, key)
    }

    async fn fetch(&self, namespace: &str, location: &KeyLocation) -> Result<Arc<KeySet>, KeysError> {
        let keys = match location {
            KeyLocation::Keys(url) => url.clone(),
            KeyLocation::Issuer(issuer) => {
                let url = format!(
                    "{}/.well-known/openid-configuration",
                    issuer.trim_end_matches('/')
                );
                let (document, issuer) = (self.get(&url).await?, issuer.clone());
                let parsed = compute_sized(namespace, document.len(), move || keys_url(&document, &issuer));
                parsed.await.ok_or(KeysError::Unreachable)??
            }
        };
        let document = self.get(&keys).await?;
        let parsed = compute_sized(namespace, document.len(), move || KeySet::parse(&document));
        let keys = parsed.await.ok_or(KeysError::Unreachable)?;
        keys.map(Arc::new).ok_or(KeysError::Answer)
    }

    async fn get(&self, url: &str) -> Result<Vec<u8>, KeysError> {
        let url: Url = url.parse().map_err(|_| KeysError::Address)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(KeysError::Address);
        }
        let failed = |error: net::Error| match error {
            net::Error::Refused { .. } => KeysError::Address,
            _ => KeysError::Unreachable,
        };
        self.client
            .policy()
            .check_url(&url)
            .map_err(|_| KeysError::Address)?;
        let request = reqwest::Request::new(reqwest::Method::GET, url);
        let read = async {
            let mut response = self.client.send(request).await.map_err(failed)?;
            if response.status() != reqwest::StatusCode::OK {
                return Err(KeysError::Unreachable);
            }
            net::read_body(&mut response, MAX_BODY)
                .await
                .map_err(|_| KeysError::Unreachable)
        };
        let limit = TIMEOUTS.total.unwrap_or(PAUSE);
        tokio::time::timeout(limit, read)
            .await
            .unwrap_or(Err(KeysError::Unreachable))
    }
}

/// Returns the URL of the keys that a discovery document of `issuer` names.
fn keys_url(document: &[u8], issuer: &str) -> Result<String, KeysError> {
    #[derive(Deserialize)]
    struct Document {
        issuer: String,
        jwks_uri: String,
    }
    let document: Document = serde_json::from_slice(document).map_err(|_| KeysError::Answer)?;
    // Otherwise one issuer could speak for another.
    if document.issuer != issuer {
        return Err(KeysError::Answer);
    }
    Ok(document.jwks_uri)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_survive_a_failure_until_they_are_old() {
        let keys = || Arc::new(KeySet::parse(br#"{"keys": []}"#).unwrap());
        let mut known = Known::default();
        assert_eq!(
            known.take(Err(KeysError::Unreachable)).err(),
            Some(KeysError::Unreachable)
        );
        assert!(known.take(Ok(keys())).is_ok());
        assert!(known.take(Err(KeysError::Unreachable)).is_ok());
        known.keys = Instant::now().checked_sub(MAX_STALE_AGE).map(|at| (keys(), at));
        assert!(known.take(Err(KeysError::Answer)).is_err() && known.keys.is_none());
    }

    #[test]
    fn many_issuers_of_one_namespace_evict_no_keys_of_another() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let keys = Keys::new(AddressPolicy::unrestricted()).unwrap();
        let location = |number: usize| KeyLocation::Issuer(number.to_string());
        let own = keys.entry("apps", &location(0));
        for number in 0..10 * MAX_LOCATIONS {
            keys.entry("greedy", &location(number));
        }
        assert_eq!(keys.known.lock().size(), MAX_LOCATIONS);
        assert!(Arc::ptr_eq(&own, &keys.entry("apps", &location(0))));
    }

    #[test]
    fn a_discovery_document_speaks_for_its_own_issuer_only() {
        let document = br#"{"issuer": "https://a", "jwks_uri": "https://a/keys", "x": 1}"#;
        assert_eq!(keys_url(document, "https://a").as_deref(), Ok("https://a/keys"));
        for issuer in ["https://b", "https://a/"] {
            assert_eq!(keys_url(document, issuer), Err(KeysError::Answer));
        }
        assert_eq!(keys_url(b"{}", "https://a"), Err(KeysError::Answer));
    }
}
