//! The address of a repository, and credentials and certificates for it.

use api::Secret;
use net::{AddressPolicy, Proxy, basic_auth, bearer_auth};
use reqwest::header::HeaderValue;
use url::Url;

use crate::{
    Error,
    ssh::{
        address::{self, SshAddress, percent_decode},
        login::SshLogin,
    },
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Auth {
    pub username: String,
    pub password: Secret<String>,
}

/// A repository on a server. Equality compares address, credentials, certificates, proxy and trusted host keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    url: Url,
    auth: Option<Auth>,
    token: Option<Secret<String>>,
    tls: Option<ClientTls>,
    ssh: Option<(SshAddress, SshLogin)>,
}

/// Certificates of https connections, and the proxy of all connections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ClientTls {
    pub(crate) ca: Option<Vec<u8>>,
    pub(crate) identity: Option<Secret<Vec<u8>>>,
    pub(crate) proxy: Option<Proxy>,
}

impl Remote {
    /// Parses the address of a repository. A user and password in it become the credentials until [`Remote::with_auth`]
    /// replaces them; no message and no request line contains them.
    ///
    /// # Errors
    /// Fails unless it is an http, https or ssh URL, or `[user@]host:path`, with a permitted host.
    pub fn new(text: &str) -> Result<Self, Error> {
        if address::is_ssh(text) {
            return Self::over_ssh(text);
        }
        let mut url = Url::parse(text).map_err(|error| Error::InvalidUrl {
            url: api::redact(text),
            why: error.to_string(),
        })?;
        let refuse = |url: &Url, why: &str| {
            Err(Error::InvalidUrl {
                url: safe_url(url),
                why: why.to_owned(),
            })
        };
        if !matches!(url.scheme(), "http" | "https") {
            return refuse(&url, "only http, https and ssh are supported");
        }
        if url.username().starts_with('-') || url.host_str().is_none_or(|host| host.starts_with('-')) {
            return refuse(&url, "neither the user nor the host may begin with '-'");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return refuse(&url, "remove what follows '?' or '#'");
        }
        // The network checks the rest of the policy.
        if let Err(why) = AddressPolicy::command_line().check_url(&url) {
            return refuse(&url, &why.to_string());
        }
        let auth = userinfo(&url);
        // Neither can fail: the URL has a host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        Ok(Self {
            url,
            auth,
            token: None,
            tls: None,
            ssh: None,
        })
    }

    fn over_ssh(text: &str) -> Result<Self, Error> {
        let invalid = |url: String, why: String| Error::InvalidUrl { url, why };
        // It may contain a password, though it is not a URL.
        let hidden = || match text.rsplit_once('@') {
            Some((_, rest)) => format!("ssh://{rest}"),
            None => api::redact(text),
        };
        let address = address::parse(text).map_err(|why| invalid(hidden(), why.to_string()))?;
        let safe_url = address.safe_url();
        if let Err(why) = AddressPolicy::command_line().check_host(&address.host, address.port) {
            return Err(invalid(safe_url, why.to_string()));
        }
        let url = Url::parse(&safe_url).map_err(|why| invalid(safe_url, why.to_string()))?;
        Ok(Self {
            url,
            auth: None,
            token: None,
            tls: None,
            ssh: Some((address, SshLogin::default())),
        })
    }

    #[must_use]
    pub fn is_ssh(&self) -> bool {
        self.ssh.is_some()
    }

    #[must_use]
    pub fn ssh_user(&self) -> Option<&str> {
        self.ssh.as_ref()?.0.user.as_deref()
    }

    #[must_use]
    pub fn with_ssh(mut self, login: SshLogin) -> Self {
        if let Some((_, own)) = &mut self.ssh {
            *own = login;
        }
        self
    }

    /// Connects to another SSH host and port, as aliases of `~/.ssh/config` do. Fails if the host is not permitted.
    pub fn with_ssh_host(mut self, host: Option<&str>, port: Option<u16>) -> Result<Self, Error> {
        if let Some((own, _)) = &mut self.ssh {
            let refused = |why: String| Error::InvalidUrl {
                url: safe_url(&self.url),
                why,
            };
            if let Some(host) = host {
                own.host = address::parse_host(host).map_err(|why| refused(why.to_string()))?;
            }
            own.port = own.port.or(port);
            let allowed = AddressPolicy::command_line().check_host(&own.host, own.port);
            allowed.map_err(|why| refused(why.to_string()))?;
        }
        Ok(self)
    }

    #[must_use]
    pub fn with_token(mut self, token: Secret<String>) -> Self {
        self.token = Some(token);
        self
    }

    /// Sets the client certificate (PEM, with its intermediates) and its private key (PEM).
    #[must_use]
    pub fn with_identity(mut self, certificate: &[u8], key: &Secret<Vec<u8>>) -> Self {
        let pem = [certificate, b"\n", key.expose()].concat();
        self.tls_mut().identity = Some(Secret::new(pem));
        self
    }

    /// Sets a proxy that replaces the environment's, for SSH, too.
    #[must_use]
    pub fn with_proxy(mut self, proxy: Proxy) -> Self {
        self.tls_mut().proxy = Some(proxy);
        self
    }

    /// Takes over proxy and CA certificates of another repository, and the rest if it may be sent to this one's server.
    pub(crate) fn inherit(&mut self, parent: &Self) {
        let trusted = parent.trusts(&self.url);
        self.tls = parent.tls.clone().map(|tls| ClientTls {
            identity: tls.identity.filter(|_| trusted),
            ..tls
        });
        if trusted {
            self.auth = self.auth.take().or_else(|| parent.auth.clone());
            self.token = parent.token.clone();
        }
    }

    fn tls_mut(&mut self) -> &mut ClientTls {
        self.tls.get_or_insert_default()
    }

    #[must_use]
    pub fn with_auth(mut self, auth: Auth) -> Self {
        self.auth = Some(auth);
        self
    }

    #[must_use]
    pub fn with_ca(mut self, pem: Vec<u8>) -> Self {
        self.tls_mut().ca = Some(pem);
        self
    }

    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    #[must_use]
    pub fn auth(&self) -> Option<&Auth> {
        self.auth.as_ref()
    }

    pub(crate) fn token(&self) -> Option<&Secret<String>> {
        self.token.as_ref()
    }

    pub(crate) fn tls(&self) -> Option<&ClientTls> {
        self.tls.as_ref()
    }

    pub(crate) fn ssh(&self) -> Option<&(SshAddress, SshLogin)> {
        self.ssh.as_ref()
    }

    pub(crate) fn safe_url(&self) -> String {
        safe_url(&self.url)
    }

    /// Returns the header with the credentials, if a request to `target` may carry them.
    pub(crate) fn authorization_for(&self, target: &Url) -> Option<HeaderValue> {
        if !self.trusts(target) {
            return None;
        }
        if let Some(token) = self.token() {
            return bearer_auth(token.expose());
        }
        let auth = self.auth()?;
        Some(basic_auth(&auth.username, auth.password.expose()))
    }

    /// Returns true if a request to `target` may carry the credentials: the same server only, or https on the same host if the
    /// address is http.
    pub(crate) fn trusts(&self, target: &Url) -> bool {
        if self.url.host() != target.host() {
            return false;
        }
        let (from, to) = (self.url.port_or_known_default(), target.port_or_known_default());
        match (self.url.scheme(), target.scheme()) {
            (a, b) if a == b => from == to,
            ("http", "https") => from == to || (from, to) == (Some(80), Some(443)),
            _ => false,
        }
    }
}

fn userinfo(url: &Url) -> Option<Auth> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    Some(Auth {
        username: percent_decode(url.username()),
        password: Secret::new(percent_decode(url.password().unwrap_or_default())),
    })
}

pub(crate) fn safe_url(url: &Url) -> String {
    // In such a URL it is unclear which part is a password.
    if url.cannot_be_a_base() {
        return format!("{}:...", url.scheme());
    }
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_https_and_ssh_urls_of_ordinary_hosts_are_taken() {
        for good in [
            "http://h/r",
            "https://h:8443/a/b.git",
            "https://u:p@h/r",
            "http://127.0.0.1:1/r",
            "ssh://git@h/r",
            "git@h:r",
        ] {
            assert!(Remote::new(good).is_ok(), "{good}");
        }
        for bad in [
            "ssh://git@169.254.169.254/r",
            "git@[fe80::1]:r",
            "file:///etc",
            "/srv/r",
            "ext::sh -c id",
            "git://h/r",
            "https://-oProxy/r",
            "https://-u@h/r",
            "https://h/r?x=1",
            "http://169.254.169.254/latest",
            "http://[fe80::1]/r",
            "http://[::ffff:169.254.169.254]/r",
            "http://[64:ff9b::a9fe:a9fe]/r",
            "http://[fd00:ec2::254]/r",
            "https://",
            "",
        ] {
            assert!(matches!(Remote::new(bad), Err(Error::InvalidUrl { .. })), "{bad}");
        }
    }

    #[test]
    fn credentials_in_a_url_are_used_but_never_shown() {
        let remote = Remote::new("https://us%40er:p%2Fw@h/r").unwrap();
        let auth = remote.auth().unwrap();
        assert_eq!(
            (auth.username.as_str(), auth.password.expose().as_str()),
            ("us@er", "p/w")
        );
        assert_eq!(remote.safe_url(), "https://h/r");
        assert!(!format!("{remote:?}").contains("p/w"));
        for broken in [
            "ssh://user:canary@h/r",
            "https://user:canary@/r",
            "user:canary@h:x",
            "https://-u:canary@h/r",
        ] {
            let message = Remote::new(broken).unwrap_err().to_string();
            assert!(!message.contains("canary"), "{message}");
        }
    }

    #[test]
    fn credentials_stay_on_their_server() {
        let cases = [
            ("https://h/r", "https://h/other", true),
            ("https://h/r", "https://h:444/r", false),
            ("https://h/r", "https://g/r", false),
            ("https://h/r", "http://h/r", false),
            ("http://h/r", "https://h/r", true),
            ("http://h:8080/r", "https://h/r", false),
            ("http://h/r", "https://g/r", false),
        ];
        for (from, to, trusted) in cases {
            let remote = Remote::new(from).unwrap();
            assert_eq!(remote.trusts(&Url::parse(to).unwrap()), trusted, "{from} -> {to}");
        }
    }
}
