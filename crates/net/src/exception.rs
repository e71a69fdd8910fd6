//! Exceptions of an address policy, as in `--allow-addresses`.

use std::{net::IpAddr, str::FromStr};

use crate::address::unmasked;

/// A host or a network that a policy allows although its class is refused.
///
/// ```
/// use net::Exception;
///
/// for text in ["git.example.com", "*.example.com", "127.0.0.1", "10.0.0.0/8", "fd00::/8"] {
///     assert!(text.parse::<Exception>().is_ok(), "{text}");
/// }
/// assert!("10.0.0.0/33".parse::<Exception>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exception(ExceptionKind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum ExceptionKind {
    Host(String),
    /// All names below a domain; begins with a dot.
    Below(String),
    Address(IpAddr),
    Network {
        address: IpAddr,
        bits: u8,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a host, an IP address or a network such as 10.0.0.0/8")]
pub struct InvalidException(String);

impl FromStr for Exception {
    type Err = InvalidException;

    fn from_str(text: &str) -> Result<Self, InvalidException> {
        parse(text.trim())
            .map(Self)
            .ok_or_else(|| InvalidException(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<ExceptionKind> {
    if let Some((address, bits)) = text.split_once('/') {
        let address: IpAddr = address.parse().ok()?;
        let bits: u8 = bits.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        return (bits <= most).then_some(ExceptionKind::Network { address, bits });
    }
    if let Ok(address) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Some(ExceptionKind::Address(unmasked(address)));
    }
    let (below, name) = match text.strip_prefix("*.") {
        Some(domain) => (true, domain),
        None => (false, text),
    };
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let known = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || !name.chars().all(known) {
        return None;
    }
    Some(match below {
        true => ExceptionKind::Below(format!(".{name}")),
        false => ExceptionKind::Host(name),
    })
}

impl Exception {
    pub(crate) fn names(&self, host: &str) -> bool {
        match &self.0 {
            ExceptionKind::Host(name) => name == host,
            ExceptionKind::Below(domain) => host.ends_with(domain),
            ExceptionKind::Address(_) | ExceptionKind::Network { .. } => false,
        }
    }

    pub(crate) fn is(&self, wanted: IpAddr) -> bool {
        matches!(&self.0, ExceptionKind::Address(address) if *address == wanted)
    }

    pub(crate) fn holds(&self, wanted: IpAddr) -> bool {
        match (&self.0, wanted) {
            (
                ExceptionKind::Network {
                    address: IpAddr::V4(network),
                    bits,
                },
                IpAddr::V4(wanted),
            ) => {
                let shift = 32_u32.saturating_sub(u32::from(*bits));
                let prefix = |address: u32| address.checked_shr(shift).unwrap_or(0);
                prefix(network.to_bits()) == prefix(wanted.to_bits())
            }
            (
                ExceptionKind::Network {
                    address: IpAddr::V6(network),
                    bits,
                },
                IpAddr::V6(wanted),
            ) => {
                let shift = 128_u32.saturating_sub(u32::from(*bits));
                let prefix = |address: u128| address.checked_shr(shift).unwrap_or(0);
                prefix(network.to_bits()) == prefix(wanted.to_bits())
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exception(text: &str) -> Exception {
        text.parse().unwrap()
    }

    #[test]
    fn networks_hold_their_addresses() {
        for (network, address, holds) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("127.0.0.1/32", "127.0.0.1", true),
            ("127.0.0.1/32", "127.0.0.2", false),
            ("0.0.0.0/0", "8.8.8.8", true),
            ("0.0.0.0/0", "::1", false),
            ("fd00::/8", "fd12::1", true),
            ("::1/128", "::1", true),
            ("::/0", "fe80::1", true),
            ("fd00::/8", "fe80::1", false),
        ] {
            let found = exception(network).holds(address.parse().unwrap());
            assert_eq!(found, holds, "{network} {address}");
        }
    }

    #[test]
    fn hosts_match_exactly_or_below_a_domain() {
        for (text, host, names) in [
            ("Git.example.com.", "git.example.com", true),
            ("git.example.com", "example.com", false),
            ("*.example.com", "git.example.com", true),
            ("*.example.com", "example.com", false),
            ("*.example.com", "evilexample.com", false),
            ("10.0.0.1", "10.0.0.1", false),
        ] {
            assert_eq!(exception(text).names(host), names, "{text} {host}");
        }
    }

    #[test]
    fn invalid_exceptions_are_refused() {
        for text in [
            "",
            "*",
            "*.",
            "10.0.0.0/33",
            "::/129",
            "x/8",
            "a b",
            "https://host",
            "10.0.0.0/",
        ] {
            assert!(text.parse::<Exception>().is_err(), "{text:?}");
        }
    }
}
