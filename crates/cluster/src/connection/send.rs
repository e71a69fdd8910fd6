//! Sends requests to a cluster, with retries and limits of their answers.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use kube::client::Body;
use limits::{ByteBudgetError, Share};
use tokio::time;
use tokio_util::sync::CancellationToken;

use crate::{AnswerLimit, ApiError, Cluster, Error};

/// Time after which an operation that waits for an answer counts as waiting.
const SLOW_REQUEST: Duration = Duration::from_secs(2);
/// Bytes of memory of a value in an answer, beside its text.
const VALUE: u64 = 64;

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) warnings: Vec<String>,
    pub(crate) body: Bytes,
    pub(crate) share: Share,
}

#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) accept: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) body: Bytes,
}

impl Call {
    pub(crate) fn get(url: String) -> Self {
        Self {
            method: Method::GET,
            url,
            accept: "application/json",
            content_type: "",
            body: Bytes::new(),
        }
    }
}

enum Attempt {
    Done(Result<Answer, Error>),
    Again { after: Option<Duration>, error: Error },
}

impl Cluster {
    /// Sends a request until it is answered, with backoff. Everything sent here is idempotent: reads, server-side applies, and
    /// deletes with a UID. A 404 or 409 is an answer; so is every other error that a retry can't heal.
    pub(crate) async fn send(&self, what: &str, call: &Call) -> Result<Answer, Error> {
        self.send_beside(what, call, &self.no_memory()).await
    }

    /// Does the same for one of several answers; `share` is the memory of the others.
    pub(crate) async fn send_beside(&self, what: &str, call: &Call, share: &Share) -> Result<Answer, Error> {
        let settings = &self.shared.settings;
        let mut backoff = Duration::from_millis(100);
        let mut timeouts = 0;
        for attempt in 1.. {
            let outcome = self
                .unless_cancelled(self.attempt_with_pause(what, call, share))
                .await?;
            let (after, error) = match outcome {
                Attempt::Done(result) => return result,
                Attempt::Again { after, error } => (after, error),
            };
            timeouts += u32::from(matches!(error, Error::Timeout { .. }));
            if attempt >= settings.attempts || timeouts >= 2 {
                return Err(error);
            }
            tracing::debug!(what, attempt, %error, "request failed, trying again");
            let jittered = backoff.mul_f64(0.75 + fastrand::f64() / 2.0);
            self.pause(after.unwrap_or(jittered)).await?;
            backoff = (backoff * 3).min(Duration::from_secs(5));
        }
        Err(Error::Cancelled)
    }

    /// Makes one attempt at a request that has a fallback; `None` if it failed.
    pub(crate) async fn send_once(&self, what: &str, call: &Call) -> Option<Answer> {
        let share = self.no_memory();
        let attempt = self.attempt_with_pause(what, call, &share);
        match self.unless_cancelled(attempt).await {
            Ok(Attempt::Done(Ok(answer))) => Some(answer),
            _ => None,
        }
    }

    async fn attempt_with_pause(&self, what: &str, call: &Call, share: &Share) -> Attempt {
        let mut attempt = std::pin::pin!(self.attempt(what, call, share));
        if self.is_wanted_after(self.shared.settings.held) {
            return self.waiting(attempt).await;
        }
        match time::timeout(SLOW_REQUEST, attempt.as_mut()).await {
            Ok(attempt) => attempt,
            Err(_) => self.waiting(attempt).await,
        }
    }

    async fn attempt(&self, what: &str, call: &Call, share: &Share) -> Attempt {
        let limit = self.shared.settings.request_timeout;
        let permit = self.shared.permits.acquire(&self.tenant).await;
        let answered = tokio::select! {
            biased;
            answered = time::timeout(limit, self.exchange(what, call, share)) => answered.ok(),
            () = permit.evicted().cancelled() => None,
            () = share.revoked() => {
                let why = AnswerLimit::Memory(ByteBudgetError::Revoked);
                return Attempt::Done(Err(self.too_large(what, why)));
            }
        };
        answered.unwrap_or_else(|| Attempt::Again {
            after: None,
            error: Error::Timeout {
                what: what.to_owned(),
                after: limit.min(permit.elapsed()),
            },
        })
    }

    async fn exchange(&self, what: &str, call: &Call, share: &Share) -> Attempt {
        let unreachable = |reason: String| Error::Unreachable {
            what: what.to_owned(),
            reason,
        };
        let request = match self.request(what, call) {
            Ok(request) => request,
            Err(error) => return Attempt::Done(Err(error)),
        };
        let answer = match self.shared.client.send(request).await {
            Ok(answer) => answer,
            Err(error @ kube::Error::Auth(_)) => return Attempt::Done(Err(unreachable(chain(&error)))),
            Err(error) => {
                return Attempt::Again {
                    after: None,
                    error: unreachable(chain(&error)),
                };
            }
        };
        let (parts, body) = answer.into_parts();
        let (body, share) = match self.body(body, share.beside()).await {
            Ok(read) => read,
            // Releases its bytes: answers never hold memory while they wait for memory of others.
            Err(BodyError::Limit(why @ AnswerLimit::Memory(ByteBudgetError::InUse))) => {
                return Attempt::Again {
                    after: None,
                    error: self.too_large(what, why),
                };
            }
            Err(BodyError::Limit(why)) => return Attempt::Done(Err(self.too_large(what, why))),
            Err(BodyError::Broken(why)) => {
                return Attempt::Again {
                    after: None,
                    error: unreachable(why),
                };
            }
        };
        let status = parts.status.as_u16();
        if is_transient(parts.status, &body) {
            let after = parts
                .headers
                .get(header::RETRY_AFTER)
                .filter(|_| !api::is_initializing(status, &body))
                .and_then(|value| value.to_str().ok()?.trim().parse::<u64>().ok())
                .map(|seconds| Duration::from_secs(seconds.min(60)));
            return Attempt::Again {
                after,
                error: Error::Api(ApiError::parse(status, &body)),
            };
        }
        let warnings = parts
            .headers
            .get_all(header::WARNING)
            .iter()
            .filter_map(warning_text)
            .collect();
        Attempt::Done(Ok(Answer {
            status,
            warnings,
            body,
            share,
        }))
    }

    /// Reads a body, whose bytes and values are counted before they are stored.
    async fn body(&self, mut body: Body, mut share: Share) -> Result<(Bytes, Share), BodyError> {
        let limit = self.shared.settings.answer_bytes;
        let (mut bytes, mut values) = (BytesMut::new(), 0);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| BodyError::Broken(error.to_string()))?;
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len() + data.len() > limit {
                return Err(BodyError::Limit(AnswerLimit::Bytes(limit)));
            }
            values += values_in(&data);
            // Buffers double, so they have twice the bytes at most.
            let grown = share.try_grow(2 * data.len() as u64);
            grown.map_err(|why| BodyError::Limit(why.into()))?;
            bytes.extend_from_slice(&data);
        }
        let grown = share.try_grow(values * VALUE);
        grown.map_err(|why| BodyError::Limit(why.into()))?;
        Ok((bytes.freeze(), share))
    }

    pub(crate) fn too_large(&self, what: &str, why: AnswerLimit) -> Error {
        Error::TooLarge {
            what: what.to_owned(),
            server: self.shared.settings.server.clone(),
            why,
        }
    }

    /// Sends a request once, and returns the status and the unread body of the answer.
    pub(crate) async fn open(&self, what: &str, call: &Call) -> Result<(u16, Body), Error> {
        let answer = self.answer(what, self.request(what, call)?).await?;
        Ok((answer.status().as_u16(), answer.into_body()))
    }

    /// Sends a request once, and returns the answer with its unread body.
    pub(crate) async fn answer(&self, what: &str, request: Request<Body>) -> Result<Response<Body>, Error> {
        let sent = time::timeout(self.request_timeout(), self.shared.client.send(request));
        let answer = self.unless_cancelled(sent).await?.map_err(|_| Error::Timeout {
            what: what.to_owned(),
            after: self.request_timeout(),
        })?;
        answer.map_err(|error| Error::Unreachable {
            what: what.to_owned(),
            reason: chain(&error),
        })
    }

    pub(crate) fn request_timeout(&self) -> Duration {
        self.shared.settings.request_timeout
    }

    /// Returns an empty share of the memory for answers. It may be revoked for other tenants while a server takes its time.
    pub(crate) fn no_memory(&self) -> Share {
        self.memory.revoked_by(&CancellationToken::new()).share()
    }

    pub(crate) fn request(&self, what: &str, call: &Call) -> Result<Request<Body>, Error> {
        let mut builder = Request::builder()
            .method(&call.method)
            .uri(&call.url)
            .header(header::ACCEPT, call.accept);
        if !call.content_type.is_empty() {
            builder = builder.header(header::CONTENT_TYPE, call.content_type);
        }
        if let Some(user) = &self.impersonate {
            builder = builder.header("Impersonate-User", user.as_ref());
        }
        builder
            .body(Body::from(call.body.clone()))
            .map_err(|error| Error::Malformed {
                what: what.to_owned(),
                reason: error.to_string(),
            })
    }
}

enum BodyError {
    Limit(AnswerLimit),
    Broken(String),
}

/// Returns at least the number of values in a piece of JSON: each but the first follows one of these characters.
fn values_in(json: &[u8]) -> u64 {
    json.iter()
        .filter(|byte| matches!(byte, b',' | b':' | b'[' | b'{'))
        .count() as u64
}

/// Returns true if the same request may succeed later.
fn is_transient(status: StatusCode, body: &[u8]) -> bool {
    match status.as_u16() {
        429 | 502..=504 => true,
        // A manifest that does not fit its schema is answered with 500 and no reason: a retry can't heal that.
        500 => !ApiError::parse(500, body).reason.is_empty(),
        _ => false,
    }
}

fn warning_text(header: &http::HeaderValue) -> Option<String> {
    let text = header.to_str().ok()?;
    let (_, quoted) = text.split_once('"')?;
    let quoted = quoted.trim_end().strip_suffix('"').unwrap_or(quoted);
    Some(quoted.replace("\\\"", "\"").replace("\\\\", "\\"))
}

/// Joins an error with its causes, as each is incomplete. Some name URLs.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    api::redact(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_transient_accepts_errors_that_may_pass() {
        for (code, body, expected) in [
            (429, &b"{}"[..], true),
            (503, b"{}", true),
            (500, br#"{"reason":"InternalError","message":"failed calling webhook"}"#, true),
            (500, br#"{"message":"failed to create typed patch object: .spec.x: field not declared in schema"}"#, false),
            (404, b"{}", false),
            (409, b"{}", false),
            (422, b"{}", false),
        ] {
            assert_eq!(is_transient(StatusCode::from_u16(code).unwrap(), body), expected, "{code}");
        }
    }

    #[test]
    fn warnings_are_unquoted() {
        let text = |value: &'static str| warning_text(&http::HeaderValue::from_static(value));
        assert_eq!(
            text(r#"299 - "unknown field \"spec.x\"""#).as_deref(),
            Some(r#"unknown field "spec.x""#)
        );
        assert_eq!(text("nonsense"), None);
    }
}
