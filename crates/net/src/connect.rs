//! TCP connections for protocols other than HTTP.

use std::{io, time::Duration};

use tokio::{net::TcpStream, time::Instant};
use url::Host;

use crate::{AddressPolicy, Unresolved};

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error(transparent)]
    Unresolved(#[from] Unresolved),
    #[error("{0}")]
    Failed(#[from] io::Error),
    #[error("proxy: {0}")]
    Proxy(String),
    #[error("the connection timed out")]
    Timeout,
}

/// Connects to a host by TCP under an address policy. Its addresses are tried in order; each gets an equal part of the
/// remaining time.
///
/// # Errors
/// Fails if the host cannot be resolved, the policy refuses it or all of its addresses, or none of them answers in time.
pub async fn connect(
    policy: &AddressPolicy,
    host: &Host<impl AsRef<str>>,
    port: u16,
    timeout: Duration,
) -> Result<TcpStream, ConnectError> {
    let deadline = Instant::now() + timeout;
    let addresses = tokio::time::timeout_at(deadline, policy.resolve_host(host, port)).await;
    let addresses = addresses.map_err(|_| ConnectError::Timeout)??;
    let mut failure = ConnectError::Timeout;
    for (tried, address) in addresses.iter().enumerate() {
        let left = deadline.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        match tokio::time::timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Ok(Err(error)) => failure = error.into(),
            Err(_) => failure = ConnectError::Timeout,
        }
    }
    Err(failure)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;
    use crate::{ClusterServices, Refusal};

    #[tokio::test]
    async fn connections_obey_the_policy() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let timeout = Duration::from_secs(5);
        let open = AddressPolicy::command_line();
        for host in ["127.0.0.1", "localhost"] {
            let host = Host::parse(host).unwrap();
            connect(&open, &host, port, timeout).await.unwrap();
        }
        let closed = AddressPolicy::controller(ClusterServices::default());
        // As numbers, the host is still an address.
        for host in ["127.0.0.1", "localhost", "0x7f.1", "2130706433", "[::1]"] {
            let refused = connect(&closed, &Host::parse(host).unwrap(), port, timeout).await;
            let refused = refused.map(drop).unwrap_err();
            let why = ConnectError::Unresolved(Unresolved::Refused(Refusal::Loopback));
            assert_eq!(refused.to_string(), why.to_string(), "{host}");
        }
        let metadata = Host::parse("169.254.169.254").unwrap();
        let refused = connect(&open, &metadata, 22, timeout)
            .await
            .map(drop)
            .unwrap_err();
        assert_eq!(refused.to_string(), "link-local addresses are not allowed");
    }

    #[tokio::test]
    async fn closed_port_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let host = Host::parse("127.0.0.1").unwrap();
        let failed = connect(
            &AddressPolicy::unrestricted(),
            &host,
            port,
            Duration::from_secs(5),
        )
        .await;
        assert!(matches!(failed, Err(ConnectError::Failed(_))));
    }
}
