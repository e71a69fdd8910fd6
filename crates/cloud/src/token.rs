//! Asking for an access token by a form.

use api::Secret;
use serde::Deserialize;
use url::{Url, form_urlencoded::Serializer};

use crate::Error;

const MAX_REASON_CHARS: usize = 300;

/// Form to send by POST, as `application/x-www-form-urlencoded`.
#[derive(Debug, Clone)]
pub struct TokenRequest {
    pub url: Url,
    pub body: Secret<String>,
}

impl TokenRequest {
    #[must_use]
    pub fn new(url: Url, fields: &[(&str, &str)]) -> Self {
        let body = Serializer::new(String::new()).extend_pairs(fields).finish();
        Self {
            url,
            body: Secret::new(body),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Follows `Bearer` in the header.
    pub access: Secret<String>,
    /// Lifetime in seconds; 0 if the answer has none.
    pub expires_in: u64,
}

#[derive(Deserialize)]
struct Answer {
    access_token: Option<Secret<String>>,
    expires_in: Option<serde_json::Value>,
    error: Option<serde_json::Value>,
    error_description: Option<String>,
}

impl Token {
    /// Reads the answer to a [`TokenRequest`], whatever its status.
    pub fn from_answer(service: &'static str, body: &[u8]) -> Result<Self, Error> {
        let answer: Answer = serde_json::from_slice(body).map_err(|_| Error::Answer {
            service,
            why: "it is no JSON object of OAuth",
        })?;
        if let Some(access) = answer.access_token.filter(|token| !token.expose().is_empty()) {
            return Ok(Self {
                access,
                expires_in: answer.expires_in.as_ref().map_or(0, seconds),
            });
        }
        match answer.error {
            Some(error) => Err(Error::Refused {
                service,
                why: reason(&error, answer.error_description.as_deref()),
            }),
            None => Err(Error::Answer {
                service,
                why: "it has no access_token",
            }),
        }
    }
}

/// Parses seconds: a number, or a number in quotes.
fn seconds(value: &serde_json::Value) -> u64 {
    value
        .as_u64()
        .or_else(|| value.as_str()?.parse().ok())
        .unwrap_or_default()
}

fn reason(error: &serde_json::Value, description: Option<&str>) -> String {
    let code = error.as_str().unwrap_or("an error");
    match description {
        Some(words) => shortened(&format!("{code}: {words}")),
        None => shortened(code),
    }
}

/// Returns the beginning of the first line of an untrusted string.
pub(crate) fn shortened(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().trim();
    line.chars().take(MAX_REASON_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_tokens_or_say_why_not() {
        let token = Token::from_answer(
            "x",
            br#"{"access_token":"t","expires_in":3599,"token_type":"Bearer"}"#,
        );
        assert_eq!(
            token,
            Ok(Token {
                access: "t".to_owned().into(),
                expires_in: 3599
            })
        );
        let quoted = Token::from_answer("x", br#"{"access_token":"t","expires_in":"60"}"#);
        assert_eq!(quoted.map(|token| token.expires_in), Ok(60));
        for (body, message) in [
            (
                r#"{"error":"invalid_grant","error_description":"Invalid JWT.\nTrace"}"#,
                "x refused the credentials: invalid_grant: Invalid JWT.",
            ),
            (r#"{"error":{"code":1}}"#, "x refused the credentials: an error"),
            ("{}", "the answer of x is not understood: it has no access_token"),
            (
                "<html>",
                "the answer of x is not understood: it is no JSON object of OAuth",
            ),
        ] {
            let error = Token::from_answer("x", body.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), message, "{body}");
        }
    }

    #[test]
    fn forms_are_encoded() {
        let request = TokenRequest::new(
            Url::parse("https://example.com/t").unwrap(),
            &[("a", "b c&d"), ("e", "é")],
        );
        assert_eq!(request.body.expose(), "a=b+c%26d&e=%C3%A9");
        assert!(format!("{request:?}").contains("***"));
    }
}
