//! The HTTP client for indexes, archives, manifests and tokens.

use api::{SafeUrl, Secret};
use bytes::Bytes;
use net::{AddressPolicy, ClientOptions, Need, Proxies, Timeouts, Tls, read_body};
use reqwest::{
    Method, Request, Response, StatusCode, Url,
    header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderValue, IF_NONE_MATCH, LOCATION},
};

use crate::{Access, Error, Limits, hop};

#[derive(Debug, Clone)]
pub struct Client {
    http: net::Client,
    access: Access,
    limits: Limits,
}

#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) url: &'a Url,
    /// Origin that the credentials belong to.
    pub(crate) home: &'a Url,
    pub(crate) authorization: Option<&'a HeaderValue>,
    pub(crate) accept: &'static str,
    /// True if the response may be compressed with gzip.
    pub(crate) packed: bool,
    pub(crate) head: bool,
    /// Tag of known content, which the server need not send again.
    pub(crate) known: Option<&'a HeaderValue>,
}

impl<'a> Ask<'a> {
    /// Creates a request for the whole content of `url` as it is, without credentials.
    pub(crate) fn of(url: &'a Url, accept: &'static str) -> Self {
        Self {
            url,
            home: url,
            authorization: None,
            accept,
            packed: false,
            head: false,
            known: None,
        }
    }
}

pub(crate) struct Upload<'a> {
    pub(crate) method: Method,
    pub(crate) url: &'a Url,
    pub(crate) media_type: Option<&'static str>,
    pub(crate) body: Bytes,
}

impl<'a> Upload<'a> {
    pub(crate) fn new(method: Method, url: &'a Url) -> Self {
        Self {
            method,
            url,
            media_type: None,
            body: Bytes::new(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) url: String,
    pub(crate) response: Response,
    /// True if the server may receive the credentials.
    pub(crate) trusted: bool,
}

impl Client {
    pub fn new(access: Access, limits: Limits, addresses: AddressPolicy) -> Result<Self, Error> {
        Self::with_proxies(access, limits, addresses, Proxies::Environment)
    }

    pub fn with_proxies(
        access: Access,
        limits: Limits,
        addresses: AddressPolicy,
        proxies: Proxies,
    ) -> Result<Self, Error> {
        Ok(Self {
            http: build(&access, &limits, addresses, proxies)?,
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

    pub(crate) async fn post(&self, url: &Url, form: String) -> Result<Answer, Error> {
        let safe_url = safe_url(url);
        let mut request = Request::new(Method::POST, url.clone());
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(CONTENT_TYPE, kind);
        *request.body_mut() = Some(form.into());
        let sent = self.http.send(request).await;
        Ok(Answer {
            response: sent.map_err(|error| Error::of_request(&safe_url, error))?,
            url: safe_url,
            trusted: true,
        })
    }

    /// Sends an upload. Follows no redirects; any status is an answer. The authorization is sent to the origin of `home` alone.
    pub(crate) async fn upload(
        &self,
        upload: &Upload<'_>,
        home: &Url,
        authorization: Option<&HeaderValue>,
    ) -> Result<Answer, Error> {
        let safe_url = safe_url(upload.url);
        let trusted = hop::is_trusted(home, home, upload.url, false);
        let mut request = Request::new(upload.method.clone(), upload.url.clone());
        let headers = request.headers_mut();
        if let Some(media_type) = upload.media_type {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        }
        if let Some(value) = authorization.filter(|_| trusted) {
            headers.insert(AUTHORIZATION, value.clone());
        }
        *request.body_mut() = Some(upload.body.clone().into());
        let sent = self.http.send(request).await;
        Ok(Answer {
            response: sent.map_err(|error| Error::of_request(&safe_url, error))?,
            url: safe_url,
            trusted,
        })
    }

    /// Sends a request and follows redirects. Any status is an answer.
    pub(crate) async fn get(&self, ask: Ask<'_>) -> Result<Answer, Error> {
        let mut url = ask.url.clone();
        let safe_url = safe_url(&url);
        let mut followed = 0;
        loop {
            let trusted = hop::is_trusted(ask.home, ask.url, &url, self.access.pass_credentials);
            let method = if ask.head { Method::HEAD } else { Method::GET };
            let mut request = Request::new(method, url.clone());
            let headers = request.headers_mut();
            headers.insert(ACCEPT, HeaderValue::from_static(ask.accept));
            if ask.packed {
                headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
            }
            if let Some(value) = ask.authorization.filter(|_| trusted) {
                headers.insert(AUTHORIZATION, value.clone());
            }
            if let Some(tag) = ask.known {
                headers.insert(IF_NONE_MATCH, tag.clone());
            }
            let response = self.http.send(request).await.map_err(|error| match error {
                net::Error::Refused(why) if followed > 0 => Error::Redirect {
                    url: safe_url.clone(),
                    why: why.to_string(),
                },
                error => Error::of_request(&safe_url, error),
            })?;
            let location = response.headers().get(LOCATION);
            let Some(location) = location.filter(|_| is_redirect(response.status())) else {
                return Ok(Answer {
                    url: safe_url,
                    response,
                    trusted,
                });
            };
            let location = String::from_utf8_lossy(location.as_bytes());
            url = hop::next(&url, &location, followed).map_err(|why| Error::Redirect {
                url: safe_url.clone(),
                why: api::redact(&why.to_string()),
            })?;
            followed += 1;
        }
    }
}

pub(crate) fn safe_url(url: &Url) -> String {
    SafeUrl::from(url.clone()).to_string()
}

/// Returns an address without the user and password in it, which would be sent whatever else is decided.
pub(crate) fn bare(mut url: Url) -> Url {
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

impl Answer {
    pub(crate) fn ok(self, has_credentials: bool) -> Result<Self, Error> {
        let url = self.url.clone();
        match self.response.status() {
            status if status.is_success() => Ok(self),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let status = self.response.status();
                let (why, need) = refusal(status, url.contains("/v2/"), has_credentials, self.trusted);
                Err(Error::Unauthorized { url, why, need })
            }
            StatusCode::NOT_FOUND | StatusCode::GONE => Err(Error::NotFound { url }),
            status => Err(Error::Status {
                url,
                status: status.as_u16(),
            }),
        }
    }

    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let chunk = self.response.chunk().await;
        chunk.map_err(|error| Error::of_request(&self.url, error.into()))
    }

    pub(crate) async fn bytes(mut self, limit: u64) -> Result<Bytes, Error> {
        match read_body(&mut self.response, limit).await {
            Ok(body) => Ok(body.into()),
            Err(error) => Err(Error::of_request(&self.url, error)),
        }
    }
}

/// Returns the reason of a refusal, and the credentials that the server requires. Starts with the words of the libraries of
/// kluctl and Helm, which scripts search for.
fn refusal(
    status: StatusCode,
    is_registry: bool,
    has_credentials: bool,
    is_trusted: bool,
) -> (&'static str, Option<Need>) {
    match (has_credentials, is_trusted) {
        (true, true) if status == StatusCode::FORBIDDEN => {
            ("403 Forbidden: the server refused the credentials", None)
        }
        (false, _) if status == StatusCode::FORBIDDEN => (
            "403 Forbidden: the server refuses access without credentials",
            Some(Need::Credentials),
        ),
        (false, _) if is_registry => (
            "401 Unauthorized: basic credential not found: the server asks for credentials, and none are given",
            Some(Need::Credentials),
        ),
        (false, _) => (
            "401 Unauthorized: the server asks for credentials, and none are given",
            Some(Need::Credentials),
        ),
        (true, true) if is_registry => (
            "401 Unauthorized: the server refused the credentials (status 401: Unauthorized)",
            Some(Need::OtherCredentials),
        ),
        (true, true) => (
            "401 Unauthorized: the server refused the credentials",
            Some(Need::OtherCredentials),
        ),
        (true, false) => (
            "another host asks for credentials, and they are sent to their own host alone unless they are passed on",
            None,
        ),
    }
}

fn build(
    access: &Access,
    limits: &Limits,
    addresses: AddressPolicy,
    proxies: Proxies,
) -> Result<net::Client, Error> {
    let identity = access.identity.as_ref().map(|identity| {
        let pem = [identity.certificate.as_slice(), b"\n", identity.key.expose()].concat();
        Secret::new(pem)
    });
    let options = ClientOptions {
        tls: Tls {
            identity,
            insecure_skip_verify: access.insecure_skip_verify,
            ..Tls::with_ca(access.ca.as_deref())
        },
        timeouts: Timeouts {
            total: Some(limits.timeout),
            ..Timeouts::default()
        },
        proxies,
        // HTTP/2 hides why a server that asks for a certificate closes the connection.
        http1_only: true,
        ..ClientOptions::new(addresses)
    };
    options.build().map_err(|error| Error::InvalidAccess {
        what: match error {
            net::Error::InvalidCa(_) => "the CA certificates",
            net::Error::InvalidIdentity => "the client's certificate",
            _ => "the certificates",
        },
        why: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use api::Secret;

    use super::*;
    use crate::Identity;

    #[test]
    fn invalid_certificates_are_named_without_their_content() {
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
            let error = Client::new(access, Limits::default(), AddressPolicy::command_line())
                .unwrap_err()
                .to_string();
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
