//! The host key of a server that nobody knows yet.

use std::{borrow::Cow, sync::Arc, time::Duration};

use net::{AddressPolicy, ConnectError};
use parking_lot::Mutex;
use russh::{
    client,
    keys::{Algorithm, EcdsaCurve, HashAlg, PublicKey, PublicKeyOrCertificate},
};
use url::Host;

use super::{algorithms::SshAlgorithms, connect::cut, known_hosts::name};

/// The order in which Go's SSH client prefers host keys: an original that connects later negotiates the key that was stored.
const PREFERENCE: [Algorithm; 6] = [
    Algorithm::Ecdsa {
        curve: EcdsaCurve::NistP256,
    },
    Algorithm::Ecdsa {
        curve: EcdsaCurve::NistP384,
    },
    Algorithm::Ecdsa {
        curve: EcdsaCurve::NistP521,
    },
    Algorithm::Rsa {
        hash: Some(HashAlg::Sha256),
    },
    Algorithm::Rsa {
        hash: Some(HashAlg::Sha512),
    },
    Algorithm::Ed25519,
];

#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("no answer within {} s", .0.as_secs())]
    Timeout(Duration),
    #[error("no SSH server is there, but something else is")]
    NoServer,
    #[error("ssh: {0}")]
    Handshake(String),
    #[error("the server has a certificate only, which is not supported")]
    Certificate,
}

/// Asks an SSH server for its host key, and returns it as a line of `known_hosts`. Nobody vouches for the key: users compare it
/// with the one that the owner of the server publishes.
///
/// # Errors
/// Fails if the server can't be reached within `timeout`, or has no supported key.
pub async fn scan_host_key(
    host: &Host<String>,
    port: u16,
    policy: &AddressPolicy,
    timeout: Duration,
) -> Result<String, ScanError> {
    let key = tokio::time::timeout(timeout, scan(host, port, policy, timeout));
    let key = key.await.map_err(|_| ScanError::Timeout(timeout))??;
    let key = key
        .to_openssh()
        .map_err(|error| ScanError::Handshake(error.to_string()))?;
    Ok(format!("{} {}", name(&host.to_string(), port), key.trim()))
}

async fn scan(
    host: &Host<String>,
    port: u16,
    policy: &AddressPolicy,
    timeout: Duration,
) -> Result<PublicKey, ScanError> {
    let stream = net::connect(policy, host, port, timeout).await?;
    let mut config = client::Config::default();
    if let Some(preferred) = SshAlgorithms::default().preferred(&[]) {
        config.preferred = preferred;
    }
    config.preferred.key = Cow::Borrowed(&PREFERENCE);
    let found = Arc::new(Mutex::new(None));
    let collector = Collector(Arc::clone(&found));
    client::connect_stream(Arc::new(config), stream, collector)
        .await
        .map_err(|error| match error {
            russh::Error::Version => ScanError::NoServer,
            russh::Error::Disconnect | russh::Error::HUP | russh::Error::SendError => {
                ScanError::Handshake("the server closed the connection".to_owned())
            }
            error => ScanError::Handshake(cut(&error.to_string())),
        })?;
    let key = found.lock().take();
    key.ok_or(ScanError::Certificate)
}

/// Keeps the key that the server proved to have, whichever it is.
struct Collector(Arc<Mutex<Option<PublicKey>>>);

impl client::Handler for Collector {
    type Error = russh::Error;

    async fn check_server_key(&mut self, key: &PublicKeyOrCertificate) -> Result<bool, russh::Error> {
        if let PublicKeyOrCertificate::PublicKey { key, .. } = key {
            *self.0.lock() = Some(PublicKey::from(key.key_data().clone()));
        }
        Ok(true)
    }
}
