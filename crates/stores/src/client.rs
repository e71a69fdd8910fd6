//! The client for all stores, and the common parts of their answers.

use cloud::http::{Answer, Request, Settings};

use crate::Error;

const MAX_REASON_CHARS: usize = 300;

#[derive(Debug, Clone)]
pub struct Client(cloud::http::Client);

impl Client {
    pub fn new(settings: Settings) -> Result<Self, Error> {
        Ok(Self(cloud::http::Client::new(settings)?))
    }

    #[must_use]
    pub fn http(&self) -> &cloud::http::Client {
        &self.0
    }

    pub async fn send(&self, request: Request<'_>) -> Result<Answer, Error> {
        Ok(self.0.send(request).await?)
    }
}

pub(crate) fn json(answer: &Answer, store: &'static str) -> Result<serde_json::Value, Error> {
    let why = "it is not JSON";
    serde_json::from_slice(&answer.body).map_err(|_| cloud::Error::Answer { service: store, why }.into())
}

/// Returns the first of these members of a JSON answer that is a string; empty without an answer.
pub(crate) fn member(answer: &Answer, pointers: &[&str]) -> Option<String> {
    let json: serde_json::Value = serde_json::from_slice(&answer.body).ok()?;
    let mut members = pointers.iter();
    let found = members.find_map(|pointer| json.pointer(pointer)?.as_str());
    found.map(str::to_owned)
}

/// Returns the error for a refusal, with its message: the first of these members of its JSON.
pub(crate) fn refusal(answer: &Answer, store: &'static str, pointers: &[&str]) -> Error {
    let message = member(answer, pointers);
    let line = message.as_deref().and_then(|message| message.lines().next());
    let line = line.unwrap_or("it gives no reason");
    Error::Refused {
        store,
        status: answer.status,
        why: api::redact(&line.chars().take(MAX_REASON_CHARS).collect::<String>()),
    }
}
