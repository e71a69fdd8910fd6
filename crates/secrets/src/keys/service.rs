//! HTTP requests to key services: bounds, and the messages of services that refuse.

use std::time::Duration;

use api::Secret;
use cloud::TokenRequest;
use net::{AddressPolicy, ClientOptions, Timeouts, read_body};
use reqwest::{
    Method, Request,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use serde_json::Value;
use url::Url;
use zeroize::Zeroizing;

/// Timeout for an answer.
const PATIENCE: Duration = Duration::from_secs(15);
/// The largest size of an answer in bytes.
const LARGEST: u64 = 256 << 10;
/// The largest number of characters of a service's message that an error repeats.
const WORDS: usize = 300;

/// A client that follows no redirect, under the policy of the keys.
#[derive(Debug, Clone)]
pub(super) struct Http(net::Client);

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
    pub(super) fn new(addresses: AddressPolicy) -> Result<Self, String> {
        let options = ClientOptions {
            timeouts: Timeouts {
                connect: PATIENCE,
                read: None,
                total: Some(PATIENCE),
            },
            ..ClientOptions::new(addresses)
        };
        let client = options.build();
        client
            .map(Self)
            .map_err(|error| format!("no client for key services: {error}"))
    }

    /// Sends a request by POST. Any status is an answer.
    pub(super) async fn post(&self, ask: Ask<'_>) -> Result<Answer, String> {
        let mut request = Request::new(Method::POST, ask.url.clone());
        *request.headers_mut() = ask.headers;
        *request.body_mut() = Some(ask.body.as_bytes().to_vec().into());
        let mut response = self.0.send(request).await.map_err(failed)?;
        let status = response.status();
        let body = read_body(&mut response, LARGEST).await.map_err(failed)?;
        Ok(Answer {
            ok: status.is_success(),
            status: status.as_u16(),
            body: Zeroizing::new(body),
        })
    }
}

fn failed(error: net::Error) -> String {
    match error {
        net::Error::Refused(why) => format!("its address is refused: {why}"),
        net::Error::TooLarge { .. } => "the service's answer is too large".to_owned(),
        error if error.is_timeout() => {
            format!("the service did not answer within {} s", PATIENCE.as_secs())
        }
        error => {
            let cause = error.tls_cause().unwrap_or_else(|| error.to_string());
            format!("the service could not be asked: {cause}")
        }
    }
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
