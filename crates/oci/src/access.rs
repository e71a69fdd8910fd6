//! Access to repositories and registries: credentials and trusted certificates.

use api::Secret;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use reqwest::header::HeaderValue;

/// Credentials for a repository or registry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Credentials {
    /// A user and a password.
    Basic {
        /// The user.
        username: String,
        /// The password.
        password: Secret<String>,
    },
    /// A token that a registry takes as it is.
    Bearer(Secret<String>),
    /// A token that a registry gives others for.
    Identity(Secret<String>),
}

impl Credentials {
    /// The value of the header; `None` when a header can't hold it, or must not.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        let text = match self {
            Self::Identity(_) => return None,
            Self::Basic { username, password } => {
                let pair = format!("{username}:{}", password.expose());
                format!("Basic {}", STANDARD.encode(pair))
            }
            Self::Bearer(token) => format!("Bearer {}", token.expose()),
        };
        secret_header(&text)
    }
}

/// A header that no log shows.
pub(crate) fn secret_header(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// A certificate by which the server knows the client.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The certificate, and those above it, as PEM.
    pub certificate: Vec<u8>,
    /// Its key as PEM.
    pub key: Secret<Vec<u8>>,
}

/// Settings for access to a repository or registry. By default, access is anonymous and trusts the
/// certificates that the system trusts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Access {
    /// The credentials. They are sent only to the scheme, host and port of the repository or registry, and to
    /// the registry's token service, unless `pass_credentials` is set.
    pub credentials: Option<Credentials>,
    /// True if the credentials are also sent to the hosts that an index names.
    pub pass_credentials: bool,
    /// Certificates of authorities that are trusted beside the system's, as PEM.
    pub ca: Option<Vec<u8>>,
    /// The client's own certificate.
    pub identity: Option<Identity>,
    /// True if servers' certificates are accepted without verification.
    pub insecure_skip_verify: bool,
    /// True if a registry is accessed over http instead of https.
    pub plain_http: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_made_and_never_printed() {
        let basic = Credentials::Basic {
            username: "me".to_owned(),
            password: Secret::new("s3cret".to_owned()),
        };
        let header = basic.header().unwrap();
        assert_eq!(header.to_str().unwrap(), "Basic bWU6czNjcmV0");
        assert!(header.is_sensitive());
        let access = Access {
            credentials: Some(basic),
            ..Access::default()
        };
        let shown = format!("{access:?} {header:?}");
        assert!(!shown.contains("s3cret") && !shown.contains("bWU6"), "{shown}");
        assert!(
            Credentials::Bearer(Secret::new("a\nb".to_owned()))
                .header()
                .is_none()
        );
    }
}
