//! Credentials and trusted certificates for repositories and registries.

use api::Secret;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use reqwest::header::HeaderValue;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Credentials {
    Basic {
        username: String,
        password: Secret<String>,
    },
    /// A token that a registry accepts directly.
    Bearer(Secret<String>),
    /// A token that a registry exchanges for others.
    Identity(Secret<String>),
}

impl Credentials {
    /// Returns the value of the header; `None` if a header can't contain it, or must not.
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

/// Returns a header that logs don't print.
pub(crate) fn secret_header(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// PEM, with its intermediates.
    pub certificate: Vec<u8>,
    pub key: Secret<Vec<u8>>,
}

/// Settings for access to a repository or registry. Default: anonymous, trusting the system's certificates.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Access {
    /// Sent only to the scheme, host and port of the repository or registry, and to the registry's token service, unless
    /// `pass_credentials` is set.
    pub credentials: Option<Credentials>,
    /// True if the credentials are also sent to the hosts in an index.
    pub pass_credentials: bool,
    /// Certificates of authorities (PEM), trusted beside the system's.
    pub ca: Option<Vec<u8>>,
    pub identity: Option<Identity>,
    pub insecure_skip_verify: bool,
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
