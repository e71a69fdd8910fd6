//! Requests to key services, and messages of their refusals.

use api::Secret;
use cloud::http::{Answer, Client, Request, Settings};
use net::{AddressPolicy, Redirects};
use serde_json::Value;
use url::Url;
use zeroize::Zeroizing;

use super::error::{OpenError, TIMEOUT};

const MAX_ANSWER: u64 = 256 << 10;
const MAX_REASON: usize = 300;

pub(super) fn client(addresses: AddressPolicy) -> Result<Client, OpenError> {
    let settings = Settings {
        addresses,
        answer_bytes: MAX_ANSWER,
        timeout: TIMEOUT,
        redirects: Redirects::None,
        ..Settings::default()
    };
    Client::new(settings).map_err(OpenError::Client)
}

/// Sends JSON by POST. Any status is an answer.
pub(super) async fn post(
    http: &Client,
    url: &Url,
    header: (&str, &str),
    body: &Value,
) -> Result<Answer, OpenError> {
    let body = Zeroizing::new(body.to_string());
    let request = Request {
        method: "POST",
        url,
        headers: &[("content-type", "application/json"), header],
        body: body.as_bytes(),
    };
    http.send(request).await.map_err(failed)
}

pub(super) fn bearer(token: &Secret<String>) -> Zeroizing<String> {
    Zeroizing::new(format!("Bearer {}", token.expose()))
}

pub(super) fn failed(error: cloud::Error) -> OpenError {
    OpenError::Request(error)
}

/// Returns the string at `path` of a successful answer, or the service's message.
pub(super) fn text(answer: &Answer, path: &str) -> Result<Zeroizing<String>, OpenError> {
    let is_ok = (200..300).contains(&answer.status);
    let json: Value = match serde_json::from_slice(&answer.body) {
        Ok(json) => json,
        Err(_) if is_ok => return Err(OpenError::InvalidAnswer("the service's answer is not JSON")),
        Err(_) => {
            return Err(OpenError::Refused {
                status: answer.status,
                message: String::new(),
            });
        }
    };
    if !is_ok {
        return Err(refusal(answer.status, &json));
    }
    match json.pointer(path).and_then(Value::as_str) {
        Some(text) => Ok(Zeroizing::new(text.to_owned())),
        None => Err(OpenError::InvalidAnswer("the service's answer holds no key")),
    }
}

/// Returns a refusal with the message of AWS, Google, Azure or Vault.
fn refusal(status: u16, json: &Value) -> OpenError {
    let message = ["/message", "/Message", "/error/message", "/errors/0", "/__type"]
        .iter()
        .find_map(|path| json.pointer(path).and_then(Value::as_str))
        .unwrap_or_default();
    let line = message.lines().next().unwrap_or_default().trim();
    let message: String = api::redact(line).chars().take(MAX_REASON).collect();
    let message = if message.is_empty() {
        message
    } else {
        format!(": {message}")
    };
    OpenError::Refused { status, message }
}
