//! Detects registries on loopback addresses that don't use TLS.

use std::{
    io::{Read as _, Write as _},
    net::{IpAddr, TcpStream, ToSocketAddrs as _},
    time::Duration,
};

/// Timeout for connecting, and for the response.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Returns true if a registry is on a loopback address, with a port, and responds to plain HTTP.
///
/// Servers that use TLS close the connection, or respond with status 400.
pub(super) fn uses_plain_http(host: &str) -> bool {
    is_loopback(host) && responds(host).unwrap_or(false)
}

fn is_loopback(host: &str) -> bool {
    let Some((name, port)) = host.rsplit_once(':') else {
        return false;
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    let is_local =
        name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    is_local && port.parse::<u16>().is_ok()
}

fn responds(host: &str) -> std::io::Result<bool> {
    let mut addresses = host
        .to_socket_addrs()?
        .filter(|address| address.ip().is_loopback());
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
    use super::*;

    #[test]
    fn loopback_hosts_have_a_port() {
        for (host, expected) in [
            ("localhost:5000", true),
            ("127.0.0.1:5000", true),
            ("[::1]:5000", true),
            ("localhost", false),
            ("10.0.0.1:5000", false),
            ("localhost.example.com:5000", false),
        ] {
            assert_eq!(is_loopback(host), expected, "{host}");
        }
    }
}
