//! Free ports on the loopback interface.

use std::{
    collections::HashSet,
    net::{Ipv4Addr, SocketAddr, TcpListener},
};

use anyhow::{Result, bail};
use parking_lot::Mutex;

/// Below the range that systems hand out to outgoing connections, so that none of those takes the port in the moment
/// between finding it and listening on it.
const RANGE: std::ops::Range<u16> = 12_000..32_000;

/// The ports that this process has given away: one is free until its owner listens on it, and while its owner restarts.
static GIVEN: Mutex<Option<HashSet<u16>>> = Mutex::new(None);

/// Returns a port that is free at the moment, and never one that it returned before.
pub fn free_port() -> Result<u16> {
    let mut given = GIVEN.lock();
    let given = given.get_or_insert_default();
    for _ in 0..1000 {
        let port = fastrand::u16(RANGE);
        if !given.contains(&port) && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            given.insert(port);
            return Ok(port);
        }
    }
    bail!(
        "found no free port on 127.0.0.1 between {} and {}",
        RANGE.start,
        RANGE.end
    )
}

/// Returns a loopback address with a port that is free at the moment, and never one that it returned before.
pub fn free_address() -> Result<SocketAddr> {
    Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::free_port;

    #[test]
    fn free_ports_are_different() {
        let ports: Vec<u16> = (0..2000).map(|_| free_port().unwrap()).collect();
        assert_eq!(ports.iter().collect::<HashSet<_>>().len(), ports.len());
    }
}
