//! The HTTP client for services of clouds, and for servers that users name.

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

/// Timeout for connecting, and for each read of a response.
const SILENCE: Duration = Duration::from_secs(15);

#[derive(Debug, Clone)]
pub struct Settings {
    /// Default: the policy of the command line.
    pub addresses: AddressPolicy,
    /// Maximum size of an answer in bytes; default 5 MiB.
    pub answer_bytes: u64,
    /// Timeout for a request with its answer; default 60 s.
    pub timeout: Duration,
    /// Default: up to ten.
    pub redirects: Redirects,
    /// Default: the system's authorities, and no client certificate.
    pub tls: Tls,
    /// Default: the environment's proxies.
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

#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub method: &'a str,
    pub url: &'a Url,
    /// Not sent to another origin.
    pub headers: &'a [(&'a str, &'a str)],
    pub body: &'a [u8],
}

#[derive(Clone)]
pub struct Answer {
    pub status: u16,
    /// May be a secret.
    pub body: Zeroizing<Vec<u8>>,
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Answer({} ***)", self.status)
    }
}

#[derive(Debug, Clone)]
pub struct Client {
    http: net::Client,
    answer_bytes: u64,
}

impl Client {
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

    /// Sends a request and returns the answer, whatever its status.
    ///
    /// # Errors
    /// Fails when the request is invalid, its address is refused, the server gives no answer, or one that is too large.
    pub async fn send(&self, request: Request<'_>) -> Result<Answer, Error> {
        let safe_url = safe_url(request.url);
        let invalid = |why: &str| Error::Request {
            url: safe_url.clone(),
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
        let failed = |error| Error::of_request(safe_url.clone(), error);
        let mut response = self.http.send(asked).await.map_err(failed)?;
        let body = read_body(&mut response, self.answer_bytes)
            .await
            .map_err(failed)?;
        Ok(Answer {
            status: response.status().as_u16(),
            body: Zeroizing::new(body),
        })
    }

    /// Sends a form for a token.
    pub async fn token(&self, service: &'static str, form: &TokenRequest) -> Result<Token, Error> {
        let answer = self.form(form, &[]).await?;
        Token::from_answer(service, &answer.body)
    }

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

#[must_use]
pub fn safe_url(url: &Url) -> String {
    SafeUrl::from(url.clone()).to_string()
}

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
