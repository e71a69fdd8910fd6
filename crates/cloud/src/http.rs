//! The HTTP client for the services of clouds, and for servers that users name.

use std::time::Duration;

use api::SafeUrl;
use net::{AddressPolicy, ClientOptions, Proxies, Redirects, Timeouts, Tls, read_body};
use reqwest::{
    Method,
    header::{HeaderName, HeaderValue},
};
use url::Url;
use zeroize::Zeroizing;

use crate::{Error, Token, TokenRequest};

/// Timeout for making a connection, and for each read of a response.
const SILENCE: Duration = Duration::from_secs(15);

/// The servers that a [`Client`] may ask, and the size of their answers.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The policy of addresses; that of the command line by default.
    pub addresses: AddressPolicy,
    /// The largest size of an answer in bytes; default 5 MiB.
    pub answer_bytes: u64,
    /// Timeout for a request, its answer included; default 60 s.
    pub timeout: Duration,
    /// The redirects that are followed; up to ten by default.
    pub redirects: Redirects,
    /// Trusted authorities and client certificate; those of the system and none by default.
    pub tls: Tls,
    /// The proxies; those of the environment by default.
    pub proxies: Proxies,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            addresses: AddressPolicy::command_line(),
            answer_bytes: 5 << 20,
            timeout: Duration::from_secs(60),
            redirects: Redirects::FOLLOW,
            tls: Tls::default(),
            proxies: Proxies::Environment,
        }
    }
}

/// An HTTP request to a server.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The method, such as `GET`.
    pub method: &'a str,
    /// The URL of the request.
    pub url: &'a Url,
    /// The headers. They are not sent to another origin.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body; empty for none.
    pub body: &'a [u8],
}

/// The answer of a server.
#[derive(Clone)]
pub struct Answer {
    /// The status code of the answer.
    pub status: u16,
    /// The body, which may be a secret.
    pub body: Zeroizing<Vec<u8>>,
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Answer({} ***)", self.status)
    }
}

/// A client for servers and stores.
#[derive(Debug, Clone)]
pub struct Client {
    http: net::Client,
    answer_bytes: u64,
}

impl Client {
    /// Makes a client that has connected to no server yet.
    ///
    /// # Errors
    /// Fails when TLS cannot be set up.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let options = ClientOptions {
            timeouts: Timeouts {
                connect: SILENCE,
                read: Some(SILENCE),
                total: Some(settings.timeout),
            },
            redirects: settings.redirects,
            tls: settings.tls,
            proxies: settings.proxies,
            ..ClientOptions::new(settings.addresses)
        };
        let http = options.build().map_err(|error| Error::Request {
            url: "any server".to_owned(),
            why: error.to_string(),
        })?;
        Ok(Self {
            http,
            answer_bytes: settings.answer_bytes,
        })
    }

    /// Sends a request and returns the answer, whichever status it has.
    ///
    /// # Errors
    /// Fails when the request is invalid, its address is refused, the server gives no answer, or one that is too large.
    pub async fn send(&self, request: Request<'_>) -> Result<Answer, Error> {
        let shown = shown(request.url);
        let invalid = |why: &str| Error::Request {
            url: shown.clone(),
            why: why.to_owned(),
        };
        let method = Method::from_bytes(request.method.as_bytes());
        let method = method.map_err(|_| invalid("its method is invalid"))?;
        let mut asked = reqwest::Request::new(method, request.url.clone());
        for (name, value) in request.headers {
            let name = HeaderName::from_bytes(name.as_bytes());
            let name = name.map_err(|_| invalid("a header has an invalid name"))?;
            let value = HeaderValue::from_str(value);
            let mut value = value.map_err(|_| invalid("a header has an invalid value"))?;
            value.set_sensitive(true);
            asked.headers_mut().append(name, value);
        }
        if !request.body.is_empty() {
            *asked.body_mut() = Some(request.body.to_vec().into());
        }
        let failed = |error| Error::of_request(shown.clone(), error);
        let mut response = self.http.send(asked).await.map_err(failed)?;
        let body = read_body(&mut response, self.answer_bytes)
            .await
            .map_err(failed)?;
        Ok(Answer {
            status: response.status().as_u16(),
            body: Zeroizing::new(body),
        })
    }

    /// Sends a form for a token, and returns the token of the answer.
    ///
    /// # Errors
    /// Fails when the service refuses the credentials or gives no valid answer.
    pub async fn token(&self, service: &'static str, form: &TokenRequest) -> Result<Token, Error> {
        let answer = self.form(form, &[]).await?;
        Token::from_answer(service, &answer.body)
    }

    /// Sends a form with more headers.
    pub(crate) async fn form(&self, form: &TokenRequest, headers: &[(&str, &str)]) -> Result<Answer, Error> {
        let mut all = vec![("content-type", "application/x-www-form-urlencoded")];
        all.extend(headers);
        let request = Request {
            method: "POST",
            url: &form.url,
            headers: &all,
            body: form.body.expose().as_bytes(),
        };
        self.send(request).await
    }
}

/// Returns an address as messages show it.
#[must_use]
pub fn shown(url: &Url) -> String {
    SafeUrl::from(url.clone()).to_string()
}

/// Parses an address that a user wrote.
///
/// # Errors
/// Fails when it is not a URL.
pub fn address(text: &str) -> Result<Url, Error> {
    Url::parse(text).map_err(|_| Error::Address {
        url: api::redact(text),
        why: "it is not a URL".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use testkit::{Page, WebServer};

    use super::*;

    fn client(settings: Settings) -> Client {
        Client::new(settings).unwrap()
    }

    async fn get(client: &Client, url: &str) -> Result<Answer, Error> {
        let url = Url::parse(url).unwrap();
        let headers = [("x-key", "s3cret")];
        client
            .send(Request {
                method: "GET",
                url: &url,
                headers: &headers,
                body: b"",
            })
            .await
    }

    #[tokio::test]
    async fn answers_are_bounded_and_any_status_is_one() {
        let server = WebServer::start().unwrap();
        server.page("/a", Page::Content("hello".into()));
        let all = client(Settings::default());
        let answer = get(&all, &server.url("/a")).await.unwrap();
        assert_eq!((answer.status, &answer.body[..]), (200, &b"hello"[..]));
        assert!(!format!("{answer:?}").contains("hello"));
        assert_eq!(get(&all, &server.url("/nope")).await.unwrap().status, 404);
        let little = client(Settings {
            answer_bytes: 4,
            ..Settings::default()
        });
        let error = get(&little, &server.url("/a?key=s3cret"))
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.ends_with("is longer than 4 bytes") && !error.contains("s3cret"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn refused_addresses_are_not_asked() {
        let strict = client(Settings {
            addresses: AddressPolicy::controller(net::ClusterServices::default()),
            ..Settings::default()
        });
        for (url, expected) in [
            (
                "http://169.254.169.254/latest",
                "link-local addresses are not allowed",
            ),
            (
                "http://[::ffff:127.0.0.1]:1/",
                "loopback addresses are not allowed",
            ),
            ("https://Kubernetes.default./", "the API server is not allowed"),
            ("ftp://127.0.0.1/", "only http and https are supported"),
        ] {
            let error = get(&strict, url).await.unwrap_err();
            assert!(matches!(error, Error::Address { .. }), "{error:?}");
            assert!(error.to_string().ends_with(expected), "{error}");
        }
    }

    #[tokio::test]
    async fn redirects_neither_reach_refused_addresses_nor_carry_credentials() {
        let (first, second) = (WebServer::start().unwrap(), WebServer::start().unwrap());
        second.page("/end", Page::Content("x".into()));
        first.page("/other", Page::Redirect(second.url("/end")));
        first.page(
            "/cloud",
            Page::Redirect("http://169.254.169.254/latest".to_owned()),
        );
        let client = client(Settings::default());
        let error = get(&client, &first.url("/cloud")).await.unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("link-local addresses are not allowed"),
            "{error}"
        );
        let url = Url::parse(&first.url("/other")).unwrap();
        let headers = [("authorization", "Bearer s3cret")];
        let request = Request {
            method: "GET",
            url: &url,
            headers: &headers,
            body: b"",
        };
        assert_eq!(client.send(request).await.unwrap().status, 200);
        assert!(first.asked().iter().any(|asked| asked.authorization.is_some()));
        assert_eq!(second.asked()[0].authorization, None);
    }
}
