//! Free ports on the loopback interface.

use std::{
    collections::HashSet,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    ops::Range,
};

use anyhow::{Result, bail};
use parking_lot::Mutex;

/// Below the range that systems hand out to outgoing connections, so that none of those takes the port in the moment
/// between finding it and listening on it.
const RANGE: Range<u16> = 12_000..32_000;

/// Parts of [`RANGE`]: test binaries that run side by side take ports of different ones.
const LANES: u16 = 8;

/// The ports that this process has given away: one is free until its owner listens on it, and while its owner restarts.
static GIVEN: Mutex<Option<HashSet<u16>>> = Mutex::new(None);

/// Returns the lane of this process, which `xtask test` sets.
pub(crate) fn lane() -> Option<u16> {
    let lane: u16 = std::env::var("WEIR_TEST_LANE").ok()?.parse().ok()?;
    Some(lane % LANES)
}

fn range_of(lane: Option<u16>) -> Range<u16> {
    let Some(lane) = lane else { return RANGE };
    let each = (RANGE.end - RANGE.start) / LANES;
    let start = RANGE.start + lane * each;
    start..start + each
}

/// Returns a port that is free at the moment, and never one that it returned before.
pub fn free_port() -> Result<u16> {
    let mut given = GIVEN.lock();
    let given = given.get_or_insert_default();
    let range = range_of(lane());
    for _ in 0..1000 {
        let port = fastrand::u16(range.clone());
        if !given.contains(&port) && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            given.insert(port);
            return Ok(port);
        }
    }
    bail!(
        "found no free port on 127.0.0.1 between {} and {}",
        range.start,
        range.end
    )
}

/// Returns a loopback address with a port that is free at the moment, and never one that it returned before.
pub fn free_address() -> Result<SocketAddr> {
    Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{LANES, RANGE, free_port, range_of};

    #[test]
    fn free_ports_are_different() {
        let ports: Vec<u16> = (0..1000).map(|_| free_port().unwrap()).collect();
        assert_eq!(ports.iter().collect::<HashSet<_>>().len(), ports.len());
    }

    #[test]
    fn lanes_have_different_ports() {
        let ends: Vec<_> = (0..LANES).map(|lane| range_of(Some(lane))).collect();
        assert_eq!(ends[0].start, RANGE.start);
        assert!(ends.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert!(ends[usize::from(LANES) - 1].end <= RANGE.end);
    }
}
