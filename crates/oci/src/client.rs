//! One way over HTTP for indexes, archives, manifests and tokens.

use std::time::Duration;

use api::SafeUrl;
use bytes::{Bytes, BytesMut};
use net::{Resolver, innermost};
use reqwest::{
    Certificate, ClientBuilder, Response, StatusCode, Url,
    header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION},
    redirect::Policy,
};

use crate::{Access, Error, Limits, hop};

/// How long a connection may take to stand, and a server may send nothing.
const SILENCE: Duration = Duration::from_secs(30);

/// The way to the places that one set of credentials and certificates is for.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    access: Access,
    limits: Limits,
}

/// What is asked.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) url: &'a Url,
    /// The place that credentials belong to.
    pub(crate) home: &'a Url,
    pub(crate) authorization: Option<&'a HeaderValue>,
    pub(crate) accept: &'static str,
    /// Whether the answer may be packed.
    pub(crate) packed: bool,
}

/// An answer, and what messages call it.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) url: String,
    pub(crate) response: Response,
    /// Whether the credentials came to the one who answered.
    pub(crate) trusted: bool,
}

impl Client {
    /// A client that has connected to nobody. Proxies are those of the environment.
    ///
    /// # Errors
    /// When certificates cannot be used.
    pub fn new(access: Access, limits: Limits) -> Result<Self, Error> {
        // Another part of the process may have chosen already; then that choice stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Ok(Self {
            http: build(&access, &limits)?,
            access,
            limits,
        })
    }

    pub(crate) fn access(&self) -> &Access {
        &self.access
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Sends a form, and follows nothing. Any status is an answer.
    pub(crate) async fn post(&self, url: &Url, form: String) -> Result<Answer, Error> {
        let shown = shown(url);
        if let Some(why) = hop::refusal(url) {
            let why = why.to_owned();
            return Err(Error::InvalidUrl { url: shown, why });
        }
        let request = self.http.post(url.clone()).header(ACCEPT, "application/json");
        let kind = "application/x-www-form-urlencoded";
        let sent = request.header(CONTENT_TYPE, kind).body(form).send().await;
        Ok(Answer {
            response: sent.map_err(|error| Error::of_request(&shown, &error))?,
            url: shown,
            trusted: true,
        })
    }

    /// Asks, and follows redirects. Any status is an answer.
    pub(crate) async fn get(&self, ask: Ask<'_>) -> Result<Answer, Error> {
        let mut url = ask.url.clone();
        let shown = shown(&url);
        if let Some(why) = hop::refusal(&url) {
            let why = why.to_owned();
            return Err(Error::InvalidUrl { url: shown, why });
        }
        let mut followed = 0;
        loop {
            let trusted = hop::is_trusted(ask.home, ask.url, &url, self.access.pass_credentials);
            let mut request = self.http.get(url.clone()).header(ACCEPT, ask.accept);
            if ask.packed {
                request = request.header(ACCEPT_ENCODING, "gzip");
            }
            if let Some(value) = ask.authorization.filter(|_| trusted) {
                request = request.header(AUTHORIZATION, value.clone());
            }
            let sent = request.send().await;
            let response = sent.map_err(|error| Error::of_request(&shown, &error))?;
            let location = response.headers().get(LOCATION);
            let Some(location) = location.filter(|_| is_redirect(response.status())) else {
                return Ok(Answer {
                    url: shown,
                    response,
                    trusted,
                });
            };
            let location = String::from_utf8_lossy(location.as_bytes());
            url = hop::next(&url, &location, followed).map_err(|why| Error::Redirect {
                url: shown.clone(),
                why: api::redact(&why),
            })?;
            followed += 1;
        }
    }
}

/// What messages call an address.
pub(crate) fn shown(url: &Url) -> String {
    SafeUrl::from(url.clone()).to_string()
}

/// An address without the user and password that it may hold: they would be sent to it whatever else is decided.
pub(crate) fn bare(mut url: Url) -> Url {
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

impl Answer {
    /// An answer of success, or what to say of it.
    pub(crate) fn ok(self, has_credentials: bool) -> Result<Self, Error> {
        let url = self.url.clone();
        match self.response.status() {
            status if status.is_success() => Ok(self),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                // Begins with the words of the libraries of kluctl and Helm, which scripts search for.
                let is_registry = url.contains("/v2/");
                let is_forbidden = self.response.status() == StatusCode::FORBIDDEN;
                let why = match (has_credentials, self.trusted) {
                    (_, true) if is_forbidden => "403 Forbidden: the server refused the credentials",
                    (false, _) if is_registry => {
                        "basic credential not found: the server asks for credentials, and none are given"
                    }
                    (false, _) => "401 Unauthorized: the server asks for credentials, and none are given",
                    (true, true) if is_registry => "401: Unauthorized: the server refused the credentials",
                    (true, true) => "401 Unauthorized: the server refused the credentials",
                    (true, false) => {
                        "another host asks for credentials, and they are sent to their own host alone unless they are \
                         passed on"
                    }
                };
                Err(Error::Unauthorized { url, why })
            }
            StatusCode::NOT_FOUND | StatusCode::GONE => Err(Error::NotFound { url }),
            status => Err(Error::Status {
                url,
                status: status.as_u16(),
            }),
        }
    }

    /// The next piece of the body.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let chunk = self.response.chunk().await;
        chunk.map_err(|error| Error::of_request(&self.url, &error))
    }

    /// The whole body, if it is no larger than `limit`.
    pub(crate) async fn bytes(mut self, limit: u64) -> Result<Bytes, Error> {
        let too_large = |url: &str| Error::TooLarge {
            url: url.to_owned(),
            what: "bytes",
            limit,
        };
        if self.response.content_length().is_some_and(|len| len > limit) {
            return Err(too_large(&self.url));
        }
        let mut body = BytesMut::new();
        while let Some(chunk) = self.next().await? {
            if body.len() as u64 + chunk.len() as u64 > limit {
                return Err(too_large(&self.url));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    }
}

fn build(access: &Access, limits: &Limits) -> Result<reqwest::Client, Error> {
    let unusable = |what: &'static str| {
        move |error: reqwest::Error| Error::InvalidAccess {
            what,
            why: innermost(&error),
        }
    };
    let extra = match &access.ca {
        Some(pem) => Certificate::from_pem_bundle(pem).map_err(unusable("the CA certificates"))?,
        None => Vec::new(),
    };
    if access.ca.is_some() && extra.is_empty() {
        return Err(Error::InvalidAccess {
            what: "the CA certificates",
            why: "no certificate found".to_owned(),
        });
    }
    let identity = match &access.identity {
        Some(identity) => {
            let pem = [identity.certificate.as_slice(), b"\n", identity.key.expose()].concat();
            let read = reqwest::Identity::from_pem(&pem);
            // What is said of a key may show it.
            Some(read.map_err(|_| Error::InvalidAccess {
                what: "the client's certificate",
                why: "it needs a certificate and its private key, both as PEM".to_owned(),
            })?)
        }
        None => None,
    };
    let builder = || {
        let builder = builder(limits).tls_danger_accept_invalid_certs(access.insecure_skip_verify);
        match &identity {
            Some(identity) => builder.identity(identity.clone()),
            None => builder,
        }
    };
    // A system without any CA certificates can still use those that are given, and plain http.
    builder()
        .tls_certs_merge(extra.clone())
        .build()
        .or_else(|_| builder().tls_certs_only(extra).build())
        .map_err(unusable("the certificates"))
}

fn builder(limits: &Limits) -> ClientBuilder {
    reqwest::Client::builder()
        .user_agent(concat!("weir/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .connect_timeout(SILENCE)
        .read_timeout(SILENCE)
        .timeout(limits.timeout)
        .pool_idle_timeout(Duration::from_secs(15))
        .dns_resolver(Resolver)
}

#[cfg(test)]
mod tests {
    use api::Secret;

    use super::*;
    use crate::Identity;

    #[test]
    fn certificates_that_are_none_are_named_without_them() {
        for access in [
            Access {
                ca: Some(b"s3cret".to_vec()),
                ..Access::default()
            },
            Access {
                identity: Some(Identity {
                    certificate: b"x".to_vec(),
                    key: Secret::new(b"s3cret".to_vec()),
                }),
                ..Access::default()
            },
        ] {
            let error = Client::new(access, Limits::default()).unwrap_err().to_string();
            assert!(
                error.contains("certificate") && !error.contains("s3cret"),
                "{error}"
            );
        }
    }

    #[test]
    fn addresses_lose_their_credentials() {
        let url = bare(Url::parse("https://u:p@host/x?y=1").unwrap());
        assert_eq!(url.as_str(), "https://host/x?y=1");
    }
}
