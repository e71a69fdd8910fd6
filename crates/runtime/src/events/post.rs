//! One POST of an event to the notification-controller.

use std::{path::PathBuf, time::Duration};

use api::Event;
use net::{AddressPolicy, Client, ClientOptions, Proxies, Timeouts, TokenFile};
use reqwest::{
    Method, Request, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER},
};
use url::Url;

use crate::error::Error;

const TIMEOUT: Duration = Duration::from_secs(5);
/// Longest pause that an answer may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    Accepted,
    /// The receiver will never take it; the reason is in the log.
    Refused,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// The receiver answered that it cannot take the event now, and maybe until when.
    Answer {
        retry_after: Duration,
    },
    /// The receiver did not answer in time, or the connection broke off.
    Silence,
    Unreachable,
    /// The name of the receiver cannot be resolved.
    UnknownHost,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) why: String,
    pub(super) cause: Cause,
}

impl Failure {
    pub(super) fn ended() -> Self {
        Self {
            why: "the process ends".to_owned(),
            cause: Cause::Silence,
        }
    }
}

impl From<net::Error> for Failure {
    fn from(error: net::Error) -> Self {
        let cause = match error.failure() {
            _ if matches!(error, net::Error::Unresolved) => Cause::UnknownHost,
            Some(failure) if !failure.is_connect() => Cause::Silence,
            _ => Cause::Unreachable,
        };
        Self {
            why: api::redact(&error.to_string()),
            cause,
        }
    }
}

/// Returns the delay that an answer asks for, in seconds; 0 without one.
fn retry_after(headers: &HeaderMap) -> Duration {
    let text = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let seconds = text.and_then(|text| text.trim().parse().ok());
    Duration::from_secs(seconds.unwrap_or_default()).min(LONGEST_PAUSE)
}

pub(super) struct Poster {
    client: Client,
    url: Url,
    token_file: Option<TokenFile>,
}

impl Poster {
    /// Makes a poster whose client follows no redirect and uses no proxy: events, and the token, go only to the address that the operator
    /// chose.
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
            token_file: token_file.map(|path| TokenFile {
                path,
                flag: "--events-token-file",
            }),
        })
    }

    pub(super) async fn post(&self, event: &Event) -> Result<Sent, Failure> {
        let object = &event.involved_object;
        let names = (
            object.kind.as_deref(),
            object.namespace.as_deref(),
            object.name.as_deref(),
        );
        let (Some(kind), Some(namespace), Some(name)) = names else {
            tracing::error!("an event without kind, namespace or name is not posted");
            return Ok(Sent::Refused);
        };
        let Ok(body) = serde_json::to_vec(event) else {
            tracing::error!(
                kind,
                namespace,
                name,
                "an event that cannot be encoded is not posted"
            );
            return Ok(Sent::Refused);
        };
        let (status, retry_after) = self.send(body).await?;
        match meaning(status) {
            Response::Accepted => Ok(Sent::Accepted),
            Response::Duplicate => {
                tracing::debug!(
                    kind,
                    namespace,
                    name,
                    "the notification-controller has this event already"
                );
                Ok(Sent::Accepted)
            }
            Response::Refused => {
                let help = help(status, self.token_file.is_some());
                tracing::error!(kind, namespace, name, %status, "the notification-controller refused an event{help}");
                Ok(Sent::Refused)
            }
            Response::Retry => Err(Failure {
                why: format!("status {status}"),
                cause: Cause::Answer { retry_after },
            }),
        }
    }

    /// Returns the status of the answer, and the delay that it asks for.
    async fn send(&self, body: Vec<u8>) -> Result<(StatusCode, Duration), Failure> {
        let mut request = Request::new(Method::POST, self.url.clone());
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(file) = &self.token_file {
            let value = file.authorization().await.map_err(|error| Failure {
                why: error.to_string(),
                cause: Cause::Unreachable,
            })?;
            headers.insert(AUTHORIZATION, value);
        }
        *request.body_mut() = Some(body.into());
        let answer = self.client.send(request).await?;
        Ok((answer.status(), retry_after(answer.headers())))
    }
}

/// Returns advice for an operator when the receiver refuses an event with this status.
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

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

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

    /// Answers each request with `answer`, and sends its headers to `seen`.
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

    #[test]
    fn answer_may_ask_for_a_bounded_delay() {
        let mut headers = HeaderMap::new();
        assert_eq!(retry_after(&headers), Duration::ZERO);
        for (text, seconds) in [("7", 7), ("99999999", 300), ("soon", 0), ("-1", 0)] {
            headers.insert(RETRY_AFTER, HeaderValue::from_static(text));
            assert_eq!(retry_after(&headers), Duration::from_secs(seconds), "{text}");
        }
    }

    #[tokio::test]
    async fn failure_says_if_the_receiver_answered() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let cause = async |url| {
            Poster::new(url, None)
                .unwrap()
                .post(&event())
                .await
                .unwrap_err()
                .cause
        };
        let (url, _requests) = receiver("503 Busy\r\nretry-after: 7".into()).await;
        let retry_after = Duration::from_secs(7);
        assert_eq!(cause(url).await, Cause::Answer { retry_after });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url: Url = format!("http://{}/", listener.local_addr().unwrap())
            .parse()
            .unwrap();
        let broken = tokio::spawn(async move {
            drop(listener.accept().await.unwrap());
            listener
        });
        assert_eq!(cause(url.clone()).await, Cause::Silence);
        drop(broken.await.unwrap());
        assert_eq!(cause(url).await, Cause::Unreachable);
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
            assert_eq!(poster.post(&event()).await, Ok(Sent::Accepted));
            let head = requests.recv().await.unwrap().to_lowercase();
            assert!(
                head.contains(&format!("authorization: bearer {token}\r\n")),
                "{head}"
            );
        }
        for unusable in ["", "two\nlines", &"x".repeat(20_000)] {
            std::fs::write(&file, unusable).unwrap();
            let error = poster.send(Vec::new()).await.unwrap_err().why;
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
        assert_eq!(
            poster.post(&event()).await,
            Ok(Sent::Refused),
            "a redirect is a refusal"
        );
        assert!(requests.recv().await.is_some());
        assert!(stolen.try_recv().is_err(), "the redirect was followed");
    }
}
