//! Asking key services over HTTP: where to, with what bounds, and what an answer of refusal says.

use std::time::Duration;

use api::Secret;
use cloud::TokenRequest;
use net::Resolver;
use reqwest::{
    Method, Response,
    header::{HeaderMap, HeaderName, HeaderValue},
    redirect::Policy,
};
use serde_json::Value;
use url::Url;
use zeroize::Zeroizing;

/// How long a service may take for an answer.
const PATIENCE: Duration = Duration::from_secs(15);
/// How large an answer may be.
const LARGEST: usize = 256 << 10;
/// How much of a service's words a message repeats.
const WORDS: usize = 300;

/// A client that follows no redirect and asks no link-local address.
#[derive(Debug, Clone)]
pub(super) struct Http(reqwest::Client);

/// A request to a service.
pub(super) struct Ask<'a> {
    pub(super) url: &'a Url,
    /// What else a request has: content type, signatures, tokens. Values are marked as sensitive.
    pub(super) headers: HeaderMap,
    pub(super) body: Zeroizing<String>,
}

/// An answer, whose body may hold a key.
pub(super) struct Answer {
    pub(super) ok: bool,
    pub(super) status: u16,
    pub(super) body: Zeroizing<Vec<u8>>,
}

impl Http {
    pub(super) fn new() -> Result<Self, String> {
        // Another part of the process may have chosen already; then that choice stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .dns_resolver(Resolver)
            .redirect(Policy::none())
            .timeout(PATIENCE)
            .build();
        client
            .map(Self)
            .map_err(|error| format!("no client for key services: {}", net::innermost(&error)))
    }

    /// Sends a request by POST. Any status is an answer.
    pub(super) async fn post(&self, ask: Ask<'_>) -> Result<Answer, String> {
        if !matches!(ask.url.scheme(), "http" | "https") || net::is_refused(ask.url) {
            return Err("its address may not be asked".to_owned());
        }
        let request = self
            .0
            .request(Method::POST, ask.url.clone())
            .headers(ask.headers)
            .body(ask.body.as_bytes().to_vec());
        let sent = request.send().await;
        let response = sent.map_err(|error| failed(&error))?;
        read(response).await
    }
}

async fn read(mut response: Response) -> Result<Answer, String> {
    let status = response.status();
    let mut body = Zeroizing::new(Vec::new());
    while let Some(piece) = response.chunk().await.map_err(|error| failed(&error))? {
        if body.len() + piece.len() > LARGEST {
            return Err("the service's answer is too large".to_owned());
        }
        body.extend_from_slice(&piece);
    }
    Ok(Answer {
        ok: status.is_success(),
        status: status.as_u16(),
        body,
    })
}

fn failed(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("the service did not answer within {} s", PATIENCE.as_secs());
    }
    let cause = net::tls_cause(error).unwrap_or_else(|| net::innermost(error));
    format!("the service could not be asked: {cause}")
}

impl Answer {
    /// The text at `path` of an answer of success, or what the service said instead.
    pub(super) fn text(&self, path: &str) -> Result<Zeroizing<String>, String> {
        let json: Value = match serde_json::from_slice(&self.body) {
            Ok(json) => json,
            Err(_) if self.ok => return Err("the service's answer is no JSON".to_owned()),
            Err(_) => return Err(format!("the service answered with status {}", self.status)),
        };
        if !self.ok {
            return Err(self.refusal(&json));
        }
        match json.pointer(path).and_then(Value::as_str) {
            Some(text) => Ok(Zeroizing::new(text.to_owned())),
            None => Err("the service's answer holds no key".to_owned()),
        }
    }

    /// The words of AWS, of Google and Azure, and of Vault.
    fn refusal(&self, json: &Value) -> String {
        let words = ["/message", "/Message", "/error/message", "/errors/0", "/__type"]
            .iter()
            .find_map(|path| json.pointer(path).and_then(Value::as_str))
            .unwrap_or_default();
        let line = words.lines().next().unwrap_or_default().trim();
        let shown: String = api::redact(line).chars().take(WORDS).collect();
        if shown.is_empty() {
            format!("the service answered with status {}", self.status)
        } else {
            format!("the service answered with status {}: {shown}", self.status)
        }
    }
}

/// Headers whose values are not to be printed.
pub(super) fn headers<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let name = HeaderName::from_bytes(name.as_bytes());
        let value = HeaderValue::from_str(value);
        let (Ok(name), Ok(mut value)) = (name, value) else {
            return Err("its credentials hold characters that no request bears".to_owned());
        };
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// The headers of a JSON request with a token.
pub(super) fn bearer(token: &Secret<String>) -> Result<HeaderMap, String> {
    let value = Zeroizing::new(format!("Bearer {}", token.expose()));
    headers(
        [
            ("content-type", "application/json"),
            ("authorization", value.as_str()),
        ]
        .into_iter(),
    )
}

/// A form that asks for a token.
pub(super) fn form(request: &TokenRequest) -> Result<Ask<'_>, String> {
    Ok(Ask {
        url: &request.url,
        headers: headers([("content-type", "application/x-www-form-urlencoded")].into_iter())?,
        body: Zeroizing::new(request.body.expose().clone()),
    })
}
