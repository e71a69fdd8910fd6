//! Server of a URL, and glob patterns for paths.

use oci::Reference;
use reqwest::Url;

/// Server and path of a URL.
///
/// URLs are parsed as the HTTP client does, so that credentials can't be sent to a host that only looks like another one.
pub(super) struct ServerAddress {
    pub(super) scheme: String,
    /// Host, with the port unless it is the default of the scheme.
    pub(super) host: String,
    /// Host, always with the port.
    pub(super) host_with_port: String,
    pub(super) path: String,
}

impl ServerAddress {
    pub(super) fn parse(address: &str) -> Option<Self> {
        if address.starts_with("oci://") {
            let reference = Reference::parse(address).ok()?;
            return Some(Self {
                scheme: "oci".to_owned(),
                host: reference.host().to_owned(),
                host_with_port: reference.host().to_owned(),
                path: reference.repository().to_owned(),
            });
        }
        let url = Url::parse(address).ok()?;
        let host = url.host_str()?;
        let at = |port: Option<u16>| port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        Some(Self {
            scheme: url.scheme().to_owned(),
            host: at(url.port()),
            host_with_port: at(url.port_or_known_default()),
            path: url.path().trim_matches('/').to_owned(),
        })
    }
}

/// Matches a path against a glob pattern: `*` matches within one path segment, `**` across segments, `?` one character.
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
