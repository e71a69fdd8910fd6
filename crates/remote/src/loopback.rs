//! Detects registries on loopback addresses that don't use TLS.

use std::{
    io::{Read as _, Write as _},
    net::{IpAddr, TcpStream, ToSocketAddrs as _},
    time::Duration,
};

use net::AddressPolicy;

const TIMEOUT: Duration = Duration::from_secs(2);

/// Returns true if a registry (`host:port`) is on a loopback address that the policy allows, and responds to plain HTTP. Blocks for at most
/// a few seconds.
///
/// Servers that use TLS close the connection, or respond with status 400.
#[must_use]
pub fn uses_plain_http(host: &str, addresses: &AddressPolicy) -> bool {
    is_loopback(host) && responds(host, addresses).unwrap_or(false)
}

/// Returns true for `localhost`, the names below it, 127.0.0.0/8 and ::1.
fn is_loopback(host: &str) -> bool {
    let (name, _) = name_and_port(host);
    let name = name
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

fn name_and_port(host: &str) -> (&str, u16) {
    let split = host.rsplit_once(':');
    let split = split.and_then(|(name, port)| Some((name, port.parse().ok()?)));
    split
        .filter(|(name, _)| !name.ends_with(':'))
        .unwrap_or((host, 80))
}

fn responds(host: &str, policy: &AddressPolicy) -> std::io::Result<bool> {
    let (name, port) = name_and_port(host);
    let name = name.trim_start_matches('[').trim_end_matches(']');
    let mut addresses = (name, port).to_socket_addrs()?.filter(|address| {
        address.ip().is_loopback() && policy.check_address(address.ip(), Some(port)).is_ok()
    });
    let Some(mut stream) = addresses.find_map(|address| TcpStream::connect_timeout(&address, TIMEOUT).ok())
    else {
        return Ok(false);
    };
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    write!(
        stream,
        "GET /v2/ HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )?;
    let mut status = [0; "HTTP/1.1 200".len()];
    stream.read_exact(&mut status)?;
    Ok(status.starts_with(b"HTTP/1.") && !status.ends_with(b" 400"))
}

#[cfg(test)]
mod tests {
    use net::ClusterServices;

    use super::*;

    #[test]
    fn loopback_hosts_are_names_and_addresses_of_this_machine() {
        for (host, expected) in [
            ("localhost:5000", true),
            ("127.0.0.1:5000", true),
            ("[::1]:5000", true),
            ("localhost", true),
            ("LOCALHOST:5000", true),
            ("registry.localhost:5000", true),
            ("127.8.0.1", true),
            ("[::1]", true),
            ("notlocalhost", false),
            ("registry.local:5000", false),
            ("10.0.0.1:5000", false),
            ("localhost.example.com:5000", false),
        ] {
            assert_eq!(is_loopback(host), expected, "{host}");
        }
    }

    #[test]
    fn only_allowed_registries_without_tls_use_plain_http() {
        let server = testkit::WebServer::start().unwrap();
        let tls =
            testkit::WebServer::start_tls(testkit::tls::Authority::new(&["127.0.0.1"]).unwrap()).unwrap();
        let host = |server: &testkit::WebServer| {
            let url = url::Url::parse(&server.url("")).unwrap();
            format!("127.0.0.1:{}", url.port().unwrap())
        };
        let (open, closed) = (
            AddressPolicy::command_line(),
            AddressPolicy::controller(ClusterServices::default()),
        );
        assert!(uses_plain_http(&host(&server), &open) && !uses_plain_http(&host(&tls), &open));
        assert!(!uses_plain_http(&host(&server), &closed));
        assert_eq!(server.asked().len(), 1, "the policy refuses the second");
    }
}
