//! One way over HTTP for all of them.

use std::{net::IpAddr, time::Duration};

use api::SafeUrl;
use bytes::{Bytes, BytesMut};
use cloud::{Token, TokenRequest};
use net::{Resolver, innermost};
use reqwest::{
    Method,
    header::{HeaderName, HeaderValue},
    redirect::Policy,
};
use url::Url;

use crate::Error;

/// How long a connection may take to stand, and a server may send nothing.
const SILENCE: Duration = Duration::from_secs(15);
/// How long a request may take, its answer included.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How many redirects are followed.
const MAX_REDIRECTS: usize = 10;
/// How much of the words of a store a message repeats.
const LONGEST_REASON: usize = 300;

/// Whom a [`Client`] never asks, and how much it takes in.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Hosts that are not asked: that of the API server, for users who may not reach it.
    pub refused_hosts: Vec<String>,
    /// Bytes of an answer.
    pub answer_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            refused_hosts: Vec::new(),
            answer_bytes: 5 << 20,
        }
    }
}

/// What a server is asked.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// `GET` and the like.
    pub method: &'a str,
    /// The address.
    pub url: &'a Url,
    /// The headers.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body.
    pub body: &'a [u8],
}

/// What a server answered.
#[derive(Clone)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The body, which may be a secret.
    pub body: Bytes,
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Answer({} ***)", self.status)
    }
}

/// Asks servers and stores.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    settings: Settings,
}

impl Client {
    /// A client that has connected to nobody. Proxies are those of the environment.
    ///
    /// # Errors
    /// When TLS can't be set up.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        // Another part of the process may have chosen already; then that choice stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let refused = settings.refused_hosts.clone();
        let policy = Policy::custom(move |attempt| {
            if attempt.previous().len() > MAX_REDIRECTS {
                attempt.error("too many redirects")
            } else if refusal(attempt.url(), &refused).is_some() {
                attempt.error("it leads to an address that may not be asked")
            } else if attempt
                .previous()
                .last()
                .is_some_and(|from| is_bared(from, attempt.url()))
            {
                attempt.error("it leads from https to http")
            } else {
                attempt.follow()
            }
        });
        let http = reqwest::Client::builder()
            .user_agent(concat!("weir-", env!("CARGO_PKG_VERSION")))
            .redirect(policy)
            .connect_timeout(SILENCE)
            .read_timeout(SILENCE)
            .timeout(TIMEOUT)
            .dns_resolver(Resolver)
            .build()
            .map_err(|error| Error::Request {
                url: "any server".to_owned(),
                why: innermost(&error),
            })?;
        Ok(Self { http, settings })
    }

    /// What a server answers, with whatever status.
    ///
    /// # Errors
    /// When it may not be asked or gives no answer.
    pub async fn send(&self, request: Request<'_>) -> Result<Answer, Error> {
        let shown = shown(request.url);
        if let Some(why) = refusal(request.url, &self.settings.refused_hosts) {
            let why = why.to_owned();
            return Err(Error::Address { url: shown, why });
        }
        let invalid = |why: &str| Error::Request {
            url: shown.clone(),
            why: why.to_owned(),
        };
        let method = Method::from_bytes(request.method.as_bytes());
        let method = method.map_err(|_| invalid("its method is no word"))?;
        let mut asked = self.http.request(method, request.url.clone());
        for (name, value) in request.headers {
            let name = HeaderName::from_bytes(name.as_bytes());
            let name = name.map_err(|_| invalid("a header has no name that can be sent"))?;
            let mut value = HeaderValue::from_str(value)
                .map_err(|_| invalid("a header has a value that can't be sent"))?;
            value.set_sensitive(true);
            asked = asked.header(name, value);
        }
        if !request.body.is_empty() {
            asked = asked.body(request.body.to_vec());
        }
        let failed = |error: &reqwest::Error| Error::Unreachable {
            url: shown.clone(),
            why: match error.is_timeout() {
                true => "no answer in time".to_owned(),
                false => innermost(error),
            },
        };
        let mut response = asked.send().await.map_err(|error| failed(&error))?;
        let (status, limit) = (response.status().as_u16(), self.settings.answer_bytes);
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| failed(&error))? {
            if (body.len() + chunk.len()) as u64 > limit {
                return Err(Error::TooLarge { url: shown, limit });
            }
            body.extend_from_slice(&chunk);
        }
        let body = body.freeze();
        Ok(Answer { status, body })
    }

    /// The token that a service gives for a form.
    pub(crate) async fn token(&self, service: &'static str, form: &TokenRequest) -> Result<Token, Error> {
        let answer = self.form(form, &[]).await?;
        Ok(Token::from_answer(service, &answer.body)?)
    }

    /// Sends a form.
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

impl Answer {
    /// The answer as JSON.
    pub(crate) fn json(&self, store: &'static str) -> Result<serde_json::Value, Error> {
        let why = "it is no JSON";
        serde_json::from_slice(&self.body).map_err(|_| Error::Unknown { store, why })
    }

    /// The text of the first of these members of the JSON; none when what answers is no store.
    pub(crate) fn said(&self, pointers: &[&str]) -> Option<String> {
        let json: serde_json::Value = serde_json::from_slice(&self.body).ok()?;
        let said = pointers
            .iter()
            .find_map(|pointer| json.pointer(pointer)?.as_str());
        said.map(str::to_owned)
    }

    /// What a store says when it refuses, by the first of these members of its JSON.
    pub(crate) fn refused(&self, store: &'static str, pointers: &[&str]) -> Error {
        let said = self.said(pointers);
        let line = said.as_deref().and_then(|said| said.lines().next());
        let line = line.unwrap_or("it says no more");
        Error::Refused {
            store,
            status: self.status,
            why: api::redact(&line.chars().take(LONGEST_REASON).collect::<String>()),
        }
    }
}

/// What messages call an address.
pub(crate) fn shown(url: &Url) -> String {
    SafeUrl::from(url.clone()).to_string()
}

/// An address of a user.
pub(crate) fn address(text: &str) -> Result<Url, Error> {
    Url::parse(text).map_err(|_| Error::Address {
        url: api::redact(text),
        why: "it is no address".to_owned(),
    })
}

/// Why an address is not asked.
fn refusal(url: &Url, refused: &[String]) -> Option<&'static str> {
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    if !matches!(url.scheme(), "http" | "https") {
        return Some("only http and https are supported");
    }
    if net::is_refused(url) {
        return Some("link-local addresses are not asked");
    }
    let is_refused = refused.iter().any(|refused| is_same(refused, host));
    is_refused.then_some("the API server is not asked")
}

/// Whether both are the same host, whatever way an address is written in.
fn is_same(one: &str, other: &str) -> bool {
    let address = |host: &str| {
        host.trim_matches(['[', ']'])
            .parse::<IpAddr>()
            .ok()
            .map(net::plain)
    };
    match (address(one), address(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one.eq_ignore_ascii_case(other),
    }
}

/// Whether a redirect would show on the way what was sent encrypted.
fn is_bared(from: &Url, to: &Url) -> bool {
    from.scheme() == "https" && to.scheme() != "https"
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

    #[test]
    fn what_was_encrypted_stays_so() {
        let bared = |from: &str, to: &str| is_bared(&Url::parse(from).unwrap(), &Url::parse(to).unwrap());
        assert!(bared("https://vault.test/v1", "http://vault.test/v1"));
        assert!(!bared("https://a.test", "https://b.test") && !bared("http://a.test", "https://a.test"));
        assert!(!bared("http://a.test", "http://b.test"));
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
    async fn some_are_never_asked() {
        let strict = client(Settings {
            refused_hosts: ["127.0.0.1", "fd00::1", "kubernetes.default"]
                .map(str::to_owned)
                .to_vec(),
            ..Settings::default()
        });
        for (url, expected) in [
            (
                "http://169.254.169.254/latest",
                "link-local addresses are not asked",
            ),
            ("http://127.0.0.1:1/", "the API server is not asked"),
            ("http://[::ffff:127.0.0.1]:1/", "the API server is not asked"),
            ("https://[fd00:0::1]/", "the API server is not asked"),
            ("https://Kubernetes.default./", "the API server is not asked"),
            ("ftp://127.0.0.1/", "only http and https are supported"),
        ] {
            let error = get(&strict, url).await.unwrap_err().to_string();
            assert!(error.ends_with(expected), "{error}");
        }
    }
}
