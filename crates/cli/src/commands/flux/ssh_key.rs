//! SSH keys: the flags of a new one, as flux has them, and the keys of servers.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use git::KeyAlgorithm;
use net::AddressPolicy;
use tokio::runtime::Handle;
use url::{Host, Url};

const SSH_PORT: u16 = 22;
/// Lowest size of a new RSA key, in bits.
const MIN_RSA_BITS: usize = 2048;
const SCAN_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Args)]
pub(crate) struct NewKeyFlags {
    /// Algorithm of a new SSH key
    #[arg(long, value_name = "NAME", default_value = "ecdsa", value_parser = ["rsa", "ecdsa", "ed25519"])]
    ssh_key_algorithm: String,
    /// Size of a new RSA key: at least 2048, and a multiple of 8
    #[arg(long, value_name = "BITS", default_value = "2048", value_parser = rsa_bits)]
    ssh_rsa_bits: usize,
    /// Curve of a new ECDSA key
    #[arg(long, value_name = "NAME", default_value = "p384", value_parser = ["p256", "p384", "p521"])]
    ssh_ecdsa_curve: String,
}

impl NewKeyFlags {
    pub(crate) fn algorithm(&self) -> KeyAlgorithm {
        match (&*self.ssh_key_algorithm, &*self.ssh_ecdsa_curve) {
            ("rsa", _) => KeyAlgorithm::Rsa {
                bits: self.ssh_rsa_bits,
            },
            ("ed25519", _) => KeyAlgorithm::Ed25519,
            (_, "p256") => KeyAlgorithm::EcdsaP256,
            (_, "p521") => KeyAlgorithm::EcdsaP521,
            _ => KeyAlgorithm::EcdsaP384,
        }
    }
}

/// Parses the size of an RSA key.
fn rsa_bits(text: &str) -> Result<usize> {
    let bits: usize = text.parse()?;
    ensure!(
        bits >= MIN_RSA_BITS && bits.is_multiple_of(8),
        "RSA keys need at least {MIN_RSA_BITS} bits, and a multiple of 8"
    );
    Ok(bits)
}

/// Asks an SSH server for its host key, a line of `known_hosts`.
pub(crate) fn host_key(runtime: &Handle, url: &str) -> Result<String> {
    let url = Url::parse(url).context("git URL parse failed")?;
    let host = Host::parse(url.host_str().unwrap_or_default()).context("git URL parse failed")?;
    let port = url.port().unwrap_or(SSH_PORT);
    let policy = AddressPolicy::command_line();
    let scan = git::scan_host_key(&host, port, &policy, SCAN_TIMEOUT);
    runtime
        .block_on(scan)
        .with_context(|| format!("SSH key scan for host {host}:{port} failed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_odd_rsa_keys_are_refused() {
        assert_eq!(rsa_bits("4096").unwrap(), 4096);
        for text in ["100", "1024", "2049", "x"] {
            assert!(rsa_bits(text).is_err(), "{text}");
        }
    }
}
