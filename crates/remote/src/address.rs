//! Server of a URL, and glob patterns for paths.

use oci::Reference;
use url::Url;

/// Server and path of a URL.
///
/// URLs are parsed as the HTTP client does, so that credentials can't be sent to a host that only looks like another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddress {
    pub scheme: String,
    /// Host, with the port unless it is the default of the scheme.
    pub host: String,
    /// Host, always with the port.
    pub host_with_port: String,
    /// Path of the repository, without slashes around it.
    pub path: String,
}

impl ServerAddress {
    /// Parses the URL of a repository; `None` if it has no host.
    #[must_use]
    pub fn parse(address: &str) -> Option<Self> {
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
#[must_use]
pub fn is_path_match(pattern: &[u8], path: &[u8]) -> bool {
    match pattern {
        [] => path.is_empty(),
        [b'*', b'*', rest @ ..] => {
            (0..=path.len()).any(|at| path.get(at..).is_some_and(|tail| is_path_match(rest, tail)))
        }
        [b'*', rest @ ..] => {
            let end = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
            (0..=end).any(|at| path.get(at..).is_some_and(|tail| is_path_match(rest, tail)))
        }
        [first, rest @ ..] => match path {
            [byte, tail @ ..] if byte == first || (*first == b'?' && *byte != b'/') => {
                is_path_match(rest, tail)
            }
            _ => false,
        },
    }
}
