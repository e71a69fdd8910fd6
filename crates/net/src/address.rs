//! Classes of IP addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::Host;

/// Metadata and host services of clouds outside of the link-local ranges: Azure, Alibaba Cloud, Oracle Cloud.
const METADATA_V4: &[Ipv4Addr] = &[
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
];

/// The same over IPv6: AWS (instances and Pod identities), Google Cloud, Oracle Cloud, Scaleway.
const METADATA_V6: &[Ipv6Addr] = &[
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
    Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressClass {
    LinkLocal,
    Metadata,
    Loopback,
    Unspecified,
    Multicast,
    Broadcast,
    Private,
    Public,
}

/// Returns true for an address of the machine itself.
#[must_use]
pub fn is_loopback(host: &Host<&str>) -> bool {
    match *host {
        Host::Ipv4(ip) => IpAddr::from(ip).is_loopback(),
        Host::Ipv6(ip) => IpAddr::from(ip).is_loopback(),
        Host::Domain(name) => name == "localhost",
    }
}

/// Returns the IPv4 address that an IPv6 address embeds (IPv4-mapped, IPv4-compatible, NAT64 and 6to4), or else the address
/// itself.
pub(crate) fn unmasked(address: IpAddr) -> IpAddr {
    let IpAddr::V6(six) = address.to_canonical() else {
        return address.to_canonical();
    };
    match six.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => IpAddr::V6(six),
        [0, 0, 0, 0, 0, 0, high, low] | [0x64, 0xff9b, 0 | 1, _, _, _, high, low] => embedded(high, low),
        [0x2002, high, low, ..] => embedded(high, low),
        _ => IpAddr::V6(six),
    }
}

fn embedded(high: u16, low: u16) -> IpAddr {
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    IpAddr::from([a, b, c, d])
}

pub(crate) fn classify(address: IpAddr) -> AddressClass {
    match unmasked(address) {
        IpAddr::V4(four) => classify_v4(four),
        IpAddr::V6(six) => classify_v6(six),
    }
}

fn classify_v4(address: Ipv4Addr) -> AddressClass {
    match address.octets() {
        _ if METADATA_V4.contains(&address) => AddressClass::Metadata,
        [169, 254, ..] => AddressClass::LinkLocal,
        [127, ..] => AddressClass::Loopback,
        [0, ..] => AddressClass::Unspecified,
        [224..=239, ..] => AddressClass::Multicast,
        [240..=255, ..] => AddressClass::Broadcast,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => AddressClass::Private,
        // Carrier-grade NAT, protocol assignments, benchmarks: none of them is routed publicly.
        [100, 64..=127, ..] | [192, 0, 0, _] | [198, 18 | 19, ..] => AddressClass::Private,
        _ => AddressClass::Public,
    }
}

fn classify_v6(address: Ipv6Addr) -> AddressClass {
    match address.segments() {
        _ if METADATA_V6.contains(&address) => AddressClass::Metadata,
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressClass::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressClass::Loopback,
        [0xfe80..=0xfebf, ..] => AddressClass::LinkLocal,
        [0xff00..=0xffff, ..] => AddressClass::Multicast,
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => AddressClass::Private,
        _ => AddressClass::Public,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_classified_in_every_form() {
        use AddressClass::{
            Broadcast, LinkLocal, Loopback, Metadata, Multicast, Private, Public, Unspecified,
        };
        for (address, class) in [
            ("169.254.169.254", LinkLocal),
            ("169.254.0.23", LinkLocal),
            ("::ffff:169.254.169.254", LinkLocal),
            ("::169.254.169.254", LinkLocal),
            ("64:ff9b::a9fe:a9fe", LinkLocal),
            ("64:ff9b:1::a9fe:a9fe", LinkLocal),
            ("2002:a9fe:a9fe::1", LinkLocal),
            ("fe80::1", LinkLocal),
            ("febf::1", LinkLocal),
            ("168.63.129.16", Metadata),
            ("::ffff:168.63.129.16", Metadata),
            ("100.100.100.200", Metadata),
            ("192.0.0.192", Metadata),
            ("fd00:ec2::254", Metadata),
            ("fd00:ec2::23", Metadata),
            ("fd20:ce::254", Metadata),
            ("fd00:c1::a9fe:a9fe", Metadata),
            ("fd00:42::42", Metadata),
            ("127.0.0.1", Loopback),
            ("127.255.0.1", Loopback),
            ("::1", Loopback),
            ("::ffff:127.0.0.1", Loopback),
            ("64:ff9b::7f00:1", Loopback),
            ("2002:7f00:1::", Loopback),
            ("0.0.0.0", Unspecified),
            ("0.1.2.3", Unspecified),
            ("::", Unspecified),
            ("224.0.0.1", Multicast),
            ("ff02::1", Multicast),
            ("255.255.255.255", Broadcast),
            ("240.0.0.1", Broadcast),
            ("10.1.2.3", Private),
            ("172.16.0.1", Private),
            ("172.31.255.255", Private),
            ("192.168.0.1", Private),
            ("100.64.0.1", Private),
            ("::ffff:10.0.0.1", Private),
            ("fd00:ec2::255", Private),
            ("fec0::1", Private),
            ("172.32.0.1", Public),
            ("169.253.1.1", Public),
            ("168.63.129.17", Public),
            ("100.128.0.1", Public),
            ("2001:db8::1", Public),
            ("64:ff9b::808:808", Public),
        ] {
            assert_eq!(classify(address.parse().unwrap()), class, "{address}");
        }
    }
}
