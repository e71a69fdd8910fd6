//! Posting events to the notification-controller, one after the other.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use api::Event;
use net::{AddressPolicy, Client, ClientOptions, Proxies, Timeouts};
use reqwest::{
    Method, Request, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue},
};
use tokio::io::AsyncReadExt as _;
use url::Url;

use super::inbox::Inbox;
use crate::{error::Error, metrics::Metrics};

/// Longest token that is sent, in bytes.
const MAX_TOKEN: u64 = 16 * 1024;
/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The pauses before the second and later attempts.
const PAUSES: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
];

/// Meaning of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Response {
    Accepted,
    Duplicate,
    Refused,
    Retry,
}

fn meaning(status: StatusCode) -> Response {
    match status {
        _ if status.is_success() => Response::Accepted,
        StatusCode::TOO_MANY_REQUESTS => Response::Duplicate,
        StatusCode::NOT_IMPLEMENTED => Response::Refused,
        _ if status.is_server_error() => Response::Retry,
        _ => Response::Refused,
    }
}

/// Reason why a post is not sent.
#[derive(Debug, thiserror::Error)]
enum TokenError {
    #[error("cannot read the file of --events-token-file: {0}")]
    Unreadable(std::io::Error),
    #[error("the file of --events-token-file has no token of at most {MAX_TOKEN} characters")]
    NoToken,
}

/// Posts events to one address.
pub(super) struct Poster {
    client: Client,
    url: Url,
    token_file: Option<PathBuf>,
}

impl Poster {
    /// Makes a poster whose client follows no redirect and uses no proxy: events, and the token, go to the address that
    /// the operator chose.
    pub(super) fn new(url: Url, token_file: Option<PathBuf>) -> Result<Self, Error> {
        let options = ClientOptions {
            timeouts: Timeouts {
                connect: TIMEOUT,
                read: None,
                total: Some(TIMEOUT),
            },
            proxies: Proxies::Direct,
            idle_per_host: 1,
            ..ClientOptions::new(AddressPolicy::unrestricted())
        };
        let client = options
            .build()
            .map_err(|error| Error::Client(error.to_string()))?;
        Ok(Self {
            client,
            url,
            token_file,
        })
    }

    /// Posts the events of the queue until it ends.
    pub(super) async fn run(self, mut events: Inbox<Event>, metrics: Metrics) {
        while let Some(event) = events.next().await {
            if !self.post(&event).await {
                metrics.event_dropped("webhook");
            }
        }
    }

    /// Posts an event; returns false if it was dropped.
    async fn post(&self, event: &Event) -> bool {
        let object = &event.involved_object;
        let names = (
            object.kind.as_deref(),
            object.namespace.as_deref(),
            object.name.as_deref(),
        );
        let (Some(kind), Some(namespace), Some(name)) = names else {
            tracing::error!("an event without kind, namespace or name is not posted");
            return false;
        };
        let Ok(body) = serde_json::to_vec(event) else {
            tracing::error!(
                kind,
                namespace,
                name,
                "an event that cannot be encoded is not posted"
            );
            return false;
        };
        let mut pauses = PAUSES.iter();
        loop {
            let why = match self
                .send(body.clone())
                .await
                .map(|status| (status, meaning(status)))
            {
                Err(why) => why,
                Ok((_, Response::Accepted)) => return true,
                Ok((_, Response::Duplicate)) => {
                    tracing::debug!(
                        kind,
                        namespace,
                        name,
                        "the notification-controller has this event already"
                    );
                    return true;
                }
                Ok((status, Response::Refused)) => {
                    let help = help(status, self.token_file.is_some());
                    tracing::error!(kind, namespace, name, %status, "the notification-controller refused an event{help}");
                    return false;
                }
                Ok((status, Response::Retry)) => format!("status {status}"),
            };
            let Some(pause) = pauses.next() else {
                tracing::error!(
                    kind,
                    namespace,
                    name,
                    error = why,
                    "cannot post an event to the notification-controller"
                );
                return false;
            };
            tokio::time::sleep(*pause).await;
        }
    }

    /// Sends one request; returns the status of the response, or why there is none.
    async fn send(&self, body: Vec<u8>) -> Result<StatusCode, String> {
        let mut request = Request::new(Method::POST, self.url.clone());
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(file) = &self.token_file {
            let value = authorization(file).await.map_err(|error| error.to_string())?;
            headers.insert(AUTHORIZATION, value);
        }
        *request.body_mut() = Some(body.into());
        let sent = self.client.send(request).await;
        sent.map(|answer| answer.status())
            .map_err(|error| api::redact(&error.to_string()))
    }
}

/// Returns what an operator should check when the receiver refuses an event with this status.
fn help(status: StatusCode, with_token: bool) -> &'static str {
    match (status, with_token) {
        (StatusCode::UNAUTHORIZED, false) => ": it wants a token, see --events-token-file",
        (StatusCode::UNAUTHORIZED, true) => {
            ": compare the audience of the token with its --event-token-audience"
        }
        (StatusCode::FORBIDDEN, _) => {
            ": its --event-senders do not let this controller's ServiceAccount report this object"
        }
        _ => "",
    }
}

/// Reads the token of a file of at most [`MAX_TOKEN`] bytes; returns the value of the header that sends it.
async fn authorization(file: &Path) -> Result<HeaderValue, TokenError> {
    let mut text = String::new();
    let opened = tokio::fs::File::open(file)
        .await
        .map_err(TokenError::Unreadable)?;
    let read = opened.take(MAX_TOKEN + 1).read_to_string(&mut text).await;
    read.map_err(TokenError::Unreadable)?;
    let token = text.trim();
    if token.is_empty() || text.len() as u64 > MAX_TOKEN {
        return Err(TokenError::NoToken);
    }
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| TokenError::NoToken)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meaning_separates_accepted_retried_and_refused() {
        for (code, response) in [
            (200, Response::Accepted),
            (202, Response::Accepted),
            (429, Response::Duplicate),
            (400, Response::Refused),
            (404, Response::Refused),
            (500, Response::Retry),
            (503, Response::Retry),
            (501, Response::Refused),
        ] {
            assert_eq!(meaning(StatusCode::from_u16(code).unwrap()), response, "{code}");
        }
    }

    /// Answers each request with `answer`, and sends the headers of each to `seen`.
    async fn receiver(answer: String) -> (Url, tokio::sync::mpsc::UnboundedReceiver<String>) {
        use tokio::io::AsyncWriteExt as _;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let (seen, requests) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                seen.send(String::from_utf8(head).unwrap()).unwrap();
                let head = format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                stream.write_all(head.as_bytes()).await.unwrap();
            }
        });
        (url.parse().unwrap(), requests)
    }

    fn event() -> Event {
        serde_json::from_value(serde_json::json!({
            "involvedObject": {"kind": "GitRepository", "name": "a", "namespace": "b"}, "severity": "info",
            "timestamp": "2026-11-21T10:00:00Z", "message": "m", "reason": "r",
            "reportingController": "c",
        }))
        .unwrap()
    }

    #[tokio::test]
    async fn each_post_sends_the_token_that_the_file_has_then() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        let (url, mut requests) = receiver("202 Accepted".into()).await;
        let poster = Poster::new(url, Some(file.clone())).unwrap();
        for token in ["first", "renewed"] {
            std::fs::write(&file, format!("{token}\n")).unwrap();
            assert!(poster.post(&event()).await);
            let head = requests.recv().await.unwrap().to_lowercase();
            assert!(
                head.contains(&format!("authorization: bearer {token}\r\n")),
                "{head}"
            );
        }
        for unusable in ["", "two\nlines", &"x".repeat(20_000)] {
            std::fs::write(&file, unusable).unwrap();
            let error = poster.send(Vec::new()).await.unwrap_err();
            assert!(error.contains("--events-token-file"), "{error}");
            assert!(!error.contains("two"), "{error}");
        }
        assert!(
            requests.try_recv().is_err(),
            "nothing is posted without the token"
        );
    }

    #[tokio::test]
    async fn a_redirect_gets_neither_the_event_nor_the_token() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        std::fs::write(&file, "token").unwrap();
        let (elsewhere, mut stolen) = receiver("202 Accepted".into()).await;
        let (url, mut requests) = receiver(format!("307 Moved\r\nlocation: {elsewhere}")).await;
        let poster = Poster::new(url, Some(file)).unwrap();
        assert!(!poster.post(&event()).await, "a redirect is a refusal");
        assert!(requests.recv().await.is_some());
        assert!(stolen.try_recv().is_err(), "the redirect was followed");
    }
}
