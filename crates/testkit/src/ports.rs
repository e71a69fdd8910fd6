//! Free ports on the loopback interface.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use anyhow::{Result, bail};

/// Below the range that systems hand out to outgoing connections, so that none of those takes the port in the moment
/// between finding it and listening on it.
const RANGE: std::ops::Range<u16> = 12_000..32_000;

/// Returns a port that is free at the moment.
///
/// # Errors
/// Returns an error if a thousand random ports were all taken.
pub fn free_port() -> Result<u16> {
    for _ in 0..1000 {
        let port = fastrand::u16(RANGE);
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    bail!(
        "found no free port on 127.0.0.1 between {} and {}",
        RANGE.start,
        RANGE.end
    )
}

/// Returns a loopback address with a port that is free at the moment.
///
/// # Errors
/// Returns an error if there is none.
pub fn free_address() -> Result<SocketAddr> {
    Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?)))
}
