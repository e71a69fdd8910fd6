//! Server of a URL.

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
