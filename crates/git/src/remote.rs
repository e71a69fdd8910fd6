//! The address of a repository and what is needed to enter it.

use api::Secret;
use net::AddressPolicy;
use url::Url;

use crate::Error;

/// A name and a password for HTTP basic authentication.
#[derive(Debug, Clone)]
pub struct Auth {
    /// Name of the user.
    pub username: String,
    /// The password or access token.
    pub password: Secret<String>,
}

/// A repository on a server.
#[derive(Debug, Clone)]
pub struct Remote {
    url: Url,
    auth: Option<Auth>,
    ca: Option<Vec<u8>>,
}

impl Remote {
    /// Reads the address of a repository. A user and password in it become the credentials until
    /// [`Remote::with_auth`] gives others; they are in no message and no request line.
    ///
    /// # Errors
    /// Fails when it is anything but an http or https URL of a host that may be talked to.
    pub fn new(text: &str) -> Result<Self, Error> {
        let mut url = Url::parse(text).map_err(|error| Error::InvalidUrl {
            url: api::redact(text),
            why: error.to_string(),
        })?;
        let refuse = |url: &Url, why: &str| {
            Err(Error::InvalidUrl {
                url: shown(url),
                why: why.to_owned(),
            })
        };
        if !matches!(url.scheme(), "http" | "https") {
            return refuse(&url, "only http and https are supported");
        }
        if url.username().starts_with('-') || url.host_str().is_none_or(|host| host.starts_with('-')) {
            return refuse(&url, "neither the user nor the host may begin with '-'");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return refuse(&url, "remove what follows '?' or '#'");
        }
        // The rest of the policy belongs to the network.
        if let Err(why) = AddressPolicy::command_line().check_url(&url) {
            return refuse(&url, &why.to_string());
        }
        let auth = userinfo(&url);
        // Neither can fail: the URL has a host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        Ok(Self { url, auth, ca: None })
    }

    /// Sets the credentials for the server.
    #[must_use]
    pub fn with_auth(mut self, auth: Auth) -> Self {
        self.auth = Some(auth);
        self
    }

    /// Trusts these CA certificates (PEM) beside the system's.
    #[must_use]
    pub fn with_ca(mut self, pem: Vec<u8>) -> Self {
        self.ca = Some(pem);
        self
    }

    /// The address, without credentials.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The credentials, if any.
    #[must_use]
    pub fn auth(&self) -> Option<&Auth> {
        self.auth.as_ref()
    }

    pub(crate) fn ca(&self) -> Option<&[u8]> {
        self.ca.as_deref()
    }

    /// The address as it stands in messages.
    pub(crate) fn shown(&self) -> String {
        shown(&self.url)
    }

    /// Returns true if a request to `target` may carry the credentials: the same server only, or the same host's https
    /// when the address itself is http.
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

fn percent_decode(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let hex = (first == b'%')
            .then(|| tail.get(..2))
            .flatten()
            .and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = tail.get(2..).unwrap_or_default();
            }
            None => {
                out.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// A URL without credentials, query and fragment.
pub(crate) fn shown(url: &Url) -> String {
    // In such a URL it is unclear what is a password.
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
    fn only_http_and_https_urls_of_ordinary_hosts_are_taken() {
        for good in [
            "http://h/r",
            "https://h:8443/a/b.git",
            "https://u:p@h/r",
            "http://127.0.0.1:1/r",
        ] {
            assert!(Remote::new(good).is_ok(), "{good}");
        }
        for bad in [
            "ssh://git@h/r",
            "git@h:r",
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
        assert_eq!(remote.shown(), "https://h/r");
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
