//! Addresses that no object may lead a controller to, whatever they are written as.

use std::net::{IpAddr, Ipv6Addr};

/// The metadata service of a cloud under IPv6.
const METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// The IPv4 address that an IPv6 address stands for, if it does: mapped, or by the prefix of NAT64.
#[must_use]
pub fn plain(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) => match six.segments() {
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
                IpAddr::from([a, b, c, d])
            }
            _ => IpAddr::V6(six),
        },
        four => four,
    }
}

/// Whether an address is link-local, where clouds keep their metadata services, or such a service elsewhere.
#[must_use]
pub fn is_link_local(address: IpAddr) -> bool {
    match plain(address) {
        IpAddr::V4(four) => four.is_link_local(),
        IpAddr::V6(six) => six.is_unicast_link_local() || six == METADATA,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_local_addresses_are_known_in_every_dress() {
        for (address, expected) in [
            ("169.254.169.254", true),
            ("::ffff:169.254.169.254", true),
            ("64:ff9b::a9fe:a9fe", true),
            ("fe80::1", true),
            ("fd00:ec2::254", true),
            ("169.253.1.1", false),
            ("127.0.0.1", false),
            ("::1", false),
            ("fd00:ec2::255", false),
            ("64:ff9b::7f00:1", false),
        ] {
            assert_eq!(is_link_local(address.parse().unwrap()), expected, "{address}");
        }
        assert_eq!(
            plain("64:ff9b::7f00:1".parse().unwrap()),
            IpAddr::from([127, 0, 0, 1])
        );
    }
}
