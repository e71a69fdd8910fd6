//! The keys of issuers: discovered and fetched under the policy of addresses, bounded, and kept for a while.
//!
//! Only issuers that Receivers name are asked, and each at most once in ten seconds, so that tokens of strangers cost no requests.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use net::{AddressPolicy, Client, ClientOptions, Redirects, Timeouts};
use serde::Deserialize;
use url::Url;

use super::jwt::KeySet;

/// Time for which keys are used.
const FRESH: Duration = Duration::from_secs(5 * 60);
/// Time for which keys are used while their issuer can't be asked.
const STALE: Duration = Duration::from_secs(60 * 60);
/// Minimum time between two requests to an issuer.
const PAUSE: Duration = Duration::from_secs(10);
/// Issuers that are remembered.
const REMEMBERED: usize = 256;
const MAX_BODY: u64 = 512 << 10;
const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(5),
    read: Some(Duration::from_secs(5)),
    total: Some(Duration::from_secs(10)),
};

/// The reason why there are no keys. It is for the log, and says nothing of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeysError {
    /// The URL is none that may be asked.
    #[error(
        "the URL of the issuer, or of its keys, is invalid or refused (--allow-addresses makes exceptions)"
    )]
    Address,
    /// No usable answer came.
    #[error("the issuer, or the server of its keys, did not answer with status 200")]
    Unreachable,
    /// The discovery document or the keys are malformed, or the document names another issuer.
    #[error("the answer of the issuer is not what OpenID Connect Discovery says")]
    Answer,
    /// The issuer was asked in vain just now.
    #[error("the issuer was asked less than 10 s ago")]
    Pause,
}

/// The place of keys.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// An issuer that publishes where its keys are.
    Issuer(String),
    /// The URL of the keys themselves.
    Keys(String),
}

#[derive(Default)]
struct Known {
    /// The keys, and the time when they were fetched.
    keys: Option<(Arc<KeySet>, Instant)>,
    asked: Option<Instant>,
}

impl Known {
    /// Takes the result of asking for keys. A failure leaves the keys that are not too old: nobody may end their use by sending
    /// tokens of unknown keys while the issuer is down.
    fn take(&mut self, fetched: Result<Arc<KeySet>, KeysError>) -> Result<Arc<KeySet>, KeysError> {
        match (fetched, &self.keys) {
            (Ok(keys), _) => {
                self.keys = Some((Arc::clone(&keys), Instant::now()));
                Ok(keys)
            }
            (Err(_), Some((keys, at))) if at.elapsed() < STALE => Ok(Arc::clone(keys)),
            (Err(error), _) => {
                self.keys = None;
                Err(error)
            }
        }
    }
}

/// The keys of issuers.
pub(crate) struct Keys {
    client: Client,
    known: Mutex<HashMap<Place, Arc<tokio::sync::Mutex<Known>>>>,
}

impl Keys {
    /// Makes the client for issuers.
    pub(crate) fn new(addresses: AddressPolicy) -> Result<Self, net::Error> {
        let client = ClientOptions {
            timeouts: TIMEOUTS,
            redirects: Redirects::FOLLOW,
            ..ClientOptions::new(addresses)
        };
        Ok(Self {
            client: client.build()?,
            known: Mutex::default(),
        })
    }

    /// Returns the keys of an issuer; with `renewed`, keys that have been fetched after those that lacked one.
    pub(crate) async fn of(&self, place: &Place, renewed: bool) -> Result<Arc<KeySet>, KeysError> {
        let entry = self.entry(place);
        // Requests for the same keys wait for one answer.
        let mut known = entry.lock().await;
        let age = known.asked.map(|asked| asked.elapsed());
        if let Some((keys, _)) = &known.keys {
            let recent = age.is_some_and(|age| age < PAUSE);
            if recent || !renewed && age.is_some_and(|age| age < FRESH) {
                return Ok(Arc::clone(keys));
            }
        } else if age.is_some_and(|age| age < PAUSE) {
            return Err(KeysError::Pause);
        }
        known.asked = Some(Instant::now());
        let fetched = self.fetch(place).await;
        known.take(fetched)
    }

    fn entry(&self, place: &Place) -> Arc<tokio::sync::Mutex<Known>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED && !known.contains_key(place) {
            known.clear();
        }
        Arc::clone(known.entry(place.clone()).or_default())
    }

    async fn fetch(&self, place: &Place) -> Result<Arc<KeySet>, KeysError> {
        let keys = match place {
            Place::Keys(url) => url.clone(),
            Place::Issuer(issuer) => {
                let url = format!(
                    "{}/.well-known/openid-configuration",
                    issuer.trim_end_matches('/')
                );
                keys_url(&self.get(&url).await?, issuer)?
            }
        };
        let keys = KeySet::parse(&self.get(&keys).await?);
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
        known.keys = Instant::now().checked_sub(STALE).map(|at| (keys(), at));
        assert!(known.take(Err(KeysError::Answer)).is_err() && known.keys.is_none());
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
