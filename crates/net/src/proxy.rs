//! HTTP and SOCKS5 proxies of users.

use api::Secret;
use url::Url;

use crate::Error;

const MAX_ADDRESS: usize = 2048;

const SOCKS_PORT: u16 = 1080;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProxyProtocol {
    Http,
    /// SOCKS5. The proxy resolves names, as with clients of Go.
    Socks5,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Proxy {
    /// Address without credentials. Its scheme is `http` or `https`; SOCKS5 has `http`, so that its host is parsed as others
    /// are.
    pub url: Url,
    pub protocol: ProxyProtocol,
    pub auth: Option<(String, Secret<String>)>,
}

/// An invalid proxy. No message contains the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidProxy {
    #[error("address is longer than 2048 bytes")]
    Long,
    #[error("address is not the URL of a proxy")]
    NoUrl,
    #[error("the proxy is not supported: only http, https and socks5 are")]
    Scheme,
    #[error("a password needs a username")]
    PasswordAlone,
}

impl Proxy {
    /// Creates a proxy from its address and separate credentials, which take precedence over credentials in the address.
    ///
    /// # Errors
    /// Fails when the address is not an `http`, `https`, `socks5` or `socks5h` URL with a host, or a password has no username.
    pub fn parse(
        address: &str,
        username: Option<&str>,
        password: Option<Secret<String>>,
    ) -> Result<Self, InvalidProxy> {
        if address.len() > MAX_ADDRESS {
            return Err(InvalidProxy::Long);
        }
        let url = Url::parse(address.trim()).map_err(|_| InvalidProxy::NoUrl)?;
        let (protocol, mut url) = match url.scheme() {
            "http" | "https" => (ProxyProtocol::Http, url),
            "socks5" | "socks5h" => (ProxyProtocol::Socks5, of_socks(&url)?),
            _ => return Err(InvalidProxy::Scheme),
        };
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
        Ok(Self { url, protocol, auth })
    }

    pub(crate) fn for_all(&self) -> Result<reqwest::Proxy, Error> {
        let proxy = match self.protocol {
            ProxyProtocol::Http => reqwest::Proxy::all(self.url.clone())?,
            ProxyProtocol::Socks5 => {
                let host = self.url.host_str().unwrap_or_default();
                let port = self.url.port_or_known_default().unwrap_or(SOCKS_PORT);
                reqwest::Proxy::all(format!("socks5h://{host}:{port}"))?
            }
        };
        Ok(match &self.auth {
            Some((user, password)) => proxy.basic_auth(user, password.expose()),
            None => proxy,
        })
    }
}

/// Returns the `http` URL with the address and the credentials of a SOCKS5 proxy.
fn of_socks(url: &Url) -> Result<Url, InvalidProxy> {
    if url.host_str().is_none_or(str::is_empty) {
        return Err(InvalidProxy::NoUrl);
    }
    let (_, rest) = url.as_str().split_once("://").ok_or(InvalidProxy::NoUrl)?;
    let mut http = Url::parse(&format!("http://{rest}")).map_err(|_| InvalidProxy::NoUrl)?;
    let port = url.port().unwrap_or(SOCKS_PORT);
    http.set_port(Some(port)).map_err(|()| InvalidProxy::NoUrl)?;
    Ok(http)
}

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
    fn socks_proxy_has_a_port_of_its_own_and_an_address_like_others() {
        for (address, host, port) in [
            ("socks5://proxy", "proxy", 1080),
            ("SOCKS5H://u:p%40@proxy:80", "proxy", 80),
            ("socks5://169.254.169.254:1", "169.254.169.254", 1),
            ("socks5://2852039166", "169.254.169.254", 1080),
        ] {
            let found = Proxy::parse(address, None, None).unwrap();
            assert_eq!(found.protocol, ProxyProtocol::Socks5, "{address}");
            assert_eq!(found.url.host_str(), Some(host), "{address}");
            assert_eq!(found.url.port_or_known_default(), Some(port), "{address}");
            assert!(found.for_all().is_ok());
        }
        let found = Proxy::parse("socks5://u:p%40@proxy", None, None).unwrap();
        assert_eq!((found.url.username(), found.auth), ("", auth("u", "p@")));
    }

    #[test]
    fn invalid_proxies_are_refused_without_their_credentials() {
        let long = format!("http://{}", "canary".repeat(400));
        for (address, expected) in [
            (long.as_str(), InvalidProxy::Long),
            ("canary", InvalidProxy::NoUrl),
            ("http://", InvalidProxy::NoUrl),
            ("socks4://u:canary@proxy:1080", InvalidProxy::Scheme),
            ("socks5:canary", InvalidProxy::NoUrl),
            ("socks5:///canary", InvalidProxy::NoUrl),
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
