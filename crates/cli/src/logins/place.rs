//! Where an address leads, and which paths a pattern means.

use oci::Reference;
use reqwest::Url;

/// Where an address leads, as those read it who connect: what only looks like the address of another host gets no login of that.
pub(super) struct Place {
    pub(super) scheme: String,
    /// The host, with its port unless it is the usual one.
    pub(super) host: String,
    /// The host, with its port in any case.
    pub(super) whole: String,
    pub(super) path: String,
}

impl Place {
    pub(super) fn of(address: &str) -> Option<Self> {
        if address.starts_with("oci://") {
            let reference = Reference::parse(address).ok()?;
            return Some(Self {
                scheme: "oci".to_owned(),
                host: reference.host().to_owned(),
                whole: reference.host().to_owned(),
                path: reference.repository().to_owned(),
            });
        }
        let url = Url::parse(address).ok()?;
        let host = url.host_str()?;
        let at = |port: Option<u16>| port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        Some(Self {
            scheme: url.scheme().to_owned(),
            host: at(url.port()),
            whole: at(url.port_or_known_default()),
            path: url.path().trim_matches('/').to_owned(),
        })
    }
}

/// Whether a path is what a pattern means: `*` is anything in one part, `**` anything at all, `?` one character.
pub(super) fn is_match(pattern: &[u8], path: &[u8]) -> bool {
    match pattern {
        [] => path.is_empty(),
        [b'*', b'*', rest @ ..] => {
            (0..=path.len()).any(|at| path.get(at..).is_some_and(|tail| is_match(rest, tail)))
        }
        [b'*', rest @ ..] => {
            let end = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
            (0..=end).any(|at| path.get(at..).is_some_and(|tail| is_match(rest, tail)))
        }
        [first, rest @ ..] => match path {
            [byte, tail @ ..] if byte == first || (*first == b'?' && *byte != b'/') => is_match(rest, tail),
            _ => false,
        },
    }
}
