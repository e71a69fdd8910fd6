//! The client for all stores, and the answers that they have in common.

use cloud::http::{Answer, Request, Settings};

use crate::Error;

/// The largest number of characters of a store's message that an error repeats.
const LONGEST_REASON: usize = 300;

/// A client for servers and stores of secrets.
#[derive(Debug, Clone)]
pub struct Client(cloud::http::Client);

impl Client {
    /// Makes a client that has connected to no server yet. Proxies are those of the environment.
    ///
    /// # Errors
    /// Fails when TLS cannot be set up.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        Ok(Self(cloud::http::Client::new(settings)?))
    }

    /// Returns the HTTP client, with which [`cloud::Ambient`] asks for credentials.
    #[must_use]
    pub fn http(&self) -> &cloud::http::Client {
        &self.0
    }

    /// Sends a request and returns the answer, whichever status it has.
    ///
    /// # Errors
    /// Fails when the request is invalid, its address is refused, the server gives no answer, or one that is too large.
    pub async fn send(&self, request: Request<'_>) -> Result<Answer, Error> {
        Ok(self.0.send(request).await?)
    }
}

/// Parses an answer of a store as JSON.
pub(crate) fn json(answer: &Answer, store: &'static str) -> Result<serde_json::Value, Error> {
    let why = "it is not JSON";
    serde_json::from_slice(&answer.body).map_err(|_| cloud::Error::Answer { service: store, why }.into())
}

/// Returns the first of these members of an answer's JSON that is a string; none if a store did not answer.
pub(crate) fn member(answer: &Answer, pointers: &[&str]) -> Option<String> {
    let json: serde_json::Value = serde_json::from_slice(&answer.body).ok()?;
    let mut members = pointers.iter();
    let found = members.find_map(|pointer| json.pointer(pointer)?.as_str());
    found.map(str::to_owned)
}

/// Returns the error for an answer by which a store refuses, with its message: the first of these members of its JSON.
pub(crate) fn refusal(answer: &Answer, store: &'static str, pointers: &[&str]) -> Error {
    let message = member(answer, pointers);
    let line = message.as_deref().and_then(|message| message.lines().next());
    let line = line.unwrap_or("it gives no reason");
    Error::Refused {
        store,
        status: answer.status,
        why: api::redact(&line.chars().take(LONGEST_REASON).collect::<String>()),
    }
}
