//! HTTP proxies that users name.

use api::Secret;
use url::Url;

use crate::Error;

/// Longest address of a proxy, in bytes.
const MAX_ADDRESS: usize = 2048;

/// An HTTP proxy that users name, and the credentials for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// URL of the proxy, `http` or `https`, without credentials.
    pub url: Url,
    /// Username and password for the proxy.
    pub auth: Option<(String, Secret<String>)>,
}

/// The reason why an address names no proxy. No message holds the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidProxy {
    /// The address is longer than 2048 bytes.
    #[error("address is longer than 2048 bytes")]
    Long,
    /// The address is not a URL with a host.
    #[error("address is not the URL of a proxy")]
    NoUrl,
    /// The proxy speaks another protocol than HTTP.
    #[error("the proxy is not supported: only http and https are")]
    Scheme,
    /// A password is there, and no username.
    #[error("a password needs a username")]
    PasswordAlone,
}

impl Proxy {
    /// Makes a proxy of its address and the credentials that are named beside it; those in the address come second.
    ///
    /// # Errors
    /// Fails when the address is not an http or https URL with a host, or a password has no username.
    pub fn parse(
        address: &str,
        username: Option<&str>,
        password: Option<Secret<String>>,
    ) -> Result<Self, InvalidProxy> {
        if address.len() > MAX_ADDRESS {
            return Err(InvalidProxy::Long);
        }
        let mut url = Url::parse(address.trim()).map_err(|_| InvalidProxy::NoUrl)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(InvalidProxy::Scheme);
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(InvalidProxy::NoUrl);
        }
        let auth = match (username, password) {
            (Some(username), password) => Some((username.to_owned(), password.unwrap_or_default())),
            (None, Some(_)) => return Err(InvalidProxy::PasswordAlone),
            (None, None) => inside(&url),
        };
        // Neither can fail: the URL has a host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        Ok(Self { url, auth })
    }

    pub(crate) fn for_all(&self) -> Result<reqwest::Proxy, Error> {
        let proxy = reqwest::Proxy::all(self.url.clone())?;
        Ok(match &self.auth {
            Some((user, password)) => proxy.basic_auth(user, password.expose()),
            None => proxy,
        })
    }
}

/// The credentials in a URL, decoded.
fn inside(url: &Url) -> Option<(String, Secret<String>)> {
    let text = |text: &str| {
        percent_encoding::percent_decode_str(text)
            .decode_utf8_lossy()
            .into_owned()
    };
    let name = Some(url.username()).filter(|name| !name.is_empty())?;
    Some((text(name), Secret::new(text(url.password().unwrap_or_default()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auth(user: &str, password: &str) -> Option<(String, Secret<String>)> {
        Some((user.to_owned(), Secret::new(password.to_owned())))
    }

    #[test]
    fn proxy_has_an_address_and_credentials() {
        let found = Proxy::parse(" http://proxy:3128\n", None, None).unwrap();
        assert_eq!((found.url.as_str(), found.auth), ("http://proxy:3128/", None));
        let found = Proxy::parse("https://u:p%40@proxy", None, None).unwrap();
        assert_eq!(
            (found.url.as_str(), found.auth),
            ("https://proxy/", auth("u", "p@"))
        );
        let named = Proxy::parse("http://x:y@proxy", Some("u"), Some(Secret::new("p".into()))).unwrap();
        assert_eq!(
            (named.url.as_str(), named.auth),
            ("http://proxy/", auth("u", "p"))
        );
    }

    #[test]
    fn invalid_proxies_are_refused_without_their_credentials() {
        let long = format!("http://{}", "canary".repeat(400));
        for (address, expected) in [
            (long.as_str(), InvalidProxy::Long),
            ("canary", InvalidProxy::NoUrl),
            ("http://", InvalidProxy::NoUrl),
            ("socks5://u:canary@proxy:1080", InvalidProxy::Scheme),
            ("file:///canary", InvalidProxy::Scheme),
        ] {
            let error = Proxy::parse(address, None, None).unwrap_err();
            assert_eq!(error, expected, "{address}");
            assert!(!error.to_string().contains("canary"));
        }
        let alone = Proxy::parse("http://proxy", None, Some(Secret::new("canary".into())));
        assert_eq!(alone.unwrap_err(), InvalidProxy::PasswordAlone);
    }
}
