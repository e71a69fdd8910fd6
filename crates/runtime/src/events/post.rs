//! One POST of an event to the notification-controller.

use std::{path::PathBuf, time::Duration};

use api::Event;
use net::{AddressPolicy, Client, ClientOptions, Proxies, Timeouts, TokenFile};
use reqwest::{
    Method, Request, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue},
};
use url::Url;

use crate::error::Error;

const TIMEOUT: Duration = Duration::from_secs(5);
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) why: String,
    pub(super) is_answer: bool,
    /// True if the name of the receiver cannot be resolved.
    pub(super) is_unknown_host: bool,
}

impl Failure {
    fn of(why: String) -> Self {
        Self {
            why,
            is_answer: false,
            is_unknown_host: false,
        }
    }

    pub(super) fn ended() -> Self {
        Self::of("the process ends".to_owned())
    }
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
        let status = self.send(body).await?;
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
                is_answer: true,
                is_unknown_host: false,
            }),
        }
    }

    async fn send(&self, body: Vec<u8>) -> Result<StatusCode, Failure> {
        let mut request = Request::new(Method::POST, self.url.clone());
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(file) = &self.token_file {
            let value = file.authorization().await;
            headers.insert(
                AUTHORIZATION,
                value.map_err(|error| Failure::of(error.to_string()))?,
            );
        }
        *request.body_mut() = Some(body.into());
        match self.client.send(request).await {
            Ok(answer) => Ok(answer.status()),
            Err(error) => Err(Failure {
                is_unknown_host: matches!(error, net::Error::Unresolved),
                ..Failure::of(api::redact(&error.to_string()))
            }),
        }
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
