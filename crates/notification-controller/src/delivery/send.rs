//! One delivery: several attempts within its timeout. The provider's response is checked and discarded.

use std::{collections::VecDeque, sync::LazyLock, time::Duration};

use http::{HeaderMap, StatusCode, header};
use jiff::Timestamp;
use limits::FairPermits;
use net::{Client, read_body};
use reqwest::{Method, Response};
use serde::Deserialize;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::{attempt::Attempt, clients::Clients, lanes::LanePermit, nats, settings::Connection, steps};
use crate::{
    error::Error,
    providers::{
        interface::{Check, Request, Step},
        nats::publish::Publish,
    },
};

/// Attempts after the first.
const RETRIES: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Maximum size of a response whose body is checked, in bytes.
const ANSWER: u64 = 64 * 1024;
/// Maximum size of a response from which the next step follows, in bytes: a hundred comments.
const LONG_ANSWER: u64 = 4 * 1024 * 1024;
/// Maximum number of long responses that are read at the same time.
const LONG_ANSWERS: usize = 8;
const LONG_ANSWER_TIME: Duration = Duration::from_secs(10);
const STEPS: usize = 8;

/// Permits for long responses, shared by the namespaces of the Providers.
static READING: LazyLock<FairPermits> = LazyLock::new(|| FairPermits::new(LONG_ANSWERS));

pub(super) struct Transport<'a> {
    clients: &'a Clients,
    connection: Connection,
    http: Client,
    permit: &'a LanePermit,
    /// Namespace of the Provider.
    namespace: &'a str,
}

impl<'a> Transport<'a> {
    /// Fails when the certificates or the proxy cannot be used.
    pub(super) async fn new(
        clients: &'a Clients,
        connection: Connection,
        permit: &'a LanePermit,
        namespace: &'a str,
    ) -> Result<Self, Error> {
        let http = clients.get(namespace, &connection).await?;
        Ok(Self {
            clients,
            connection,
            http,
            permit,
            namespace,
        })
    }
}

/// Sends the requests of a delivery, each until it is accepted, finally refused, or `deadline` has passed.
pub(super) async fn follow(
    transport: &Transport<'_>,
    steps: Vec<Step>,
    deadline: Instant,
) -> Result<(), Error> {
    let mut steps = VecDeque::from(steps);
    for _ in 0..STEPS {
        match steps.pop_front() {
            None => return Ok(()),
            Some(Step::Send(request)) => drop(persist(transport, Task::Send(&request), deadline).await?),
            Some(Step::Publish(publish)) => {
                drop(persist(transport, Task::Publish(&publish), deadline).await?);
            }
            Some(Step::Ask(request, next)) => {
                let answer = persist(transport, Task::Ask(&request), deadline).await?;
                let follow = steps::after(transport.namespace, answer, next).await?;
                for step in follow.into_iter().rev() {
                    steps.push_front(step);
                }
            }
        }
    }
    if steps.is_empty() {
        Ok(())
    } else {
        Err(Error::Answer)
    }
}

#[derive(Clone, Copy)]
enum Task<'a> {
    Send(&'a Request),
    Ask(&'a Request),
    Publish(&'a Publish),
}

impl Task<'_> {
    async fn attempt(self, transport: &Transport<'_>) -> Attempt {
        match self {
            Self::Send(request) => attempt(transport, request, false).await,
            Self::Ask(request) => attempt(transport, request, true).await,
            Self::Publish(publish) => nats::attempt(transport.clients, &transport.connection, publish).await,
        }
    }
}

/// Repeats a task until it is accepted, finally refused, or `deadline` has passed; returns the body of the response if it was read.
async fn persist(transport: &Transport<'_>, task: Task<'_>, deadline: Instant) -> Result<Vec<u8>, Error> {
    let started = Instant::now();
    let mut pause = FIRST_PAUSE;
    let mut retries = 0;
    loop {
        let late = || Error::TimedOut(deadline.saturating_duration_since(started).as_secs());
        let (error, asked) = match timeout_at(deadline, task.attempt(transport)).await {
            Err(_) => return Err(late()),
            Ok(Attempt::Taken) => return Ok(Vec::new()),
            Ok(Attempt::Answered(body)) => return Ok(body),
            Ok(Attempt::Final(error)) => return Err(error),
            Ok(Attempt::Again(error, asked)) => (error, asked),
        };
        // The provider's other notifications wait, too.
        if let Some(asked) = asked {
            transport.permit.pause(asked);
        }
        let wait = asked.unwrap_or(pause);
        if retries >= RETRIES || Instant::now() + wait >= deadline {
            return Err(error);
        }
        sleep(wait).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        retries += 1;
    }
}

async fn attempt(transport: &Transport<'_>, request: &Request, read: bool) -> Attempt {
    let mut sent = reqwest::Request::new(request.method.clone(), request.address.expose().clone());
    *sent.headers_mut() = request.headers.clone();
    if request.method != Method::GET {
        *sent.body_mut() = Some(request.body.clone().into());
    }
    match transport.http.send(sent).await {
        Ok(answer) if request.check == Check::Found && answer.status() == StatusCode::NOT_FOUND => {
            Attempt::Taken
        }
        Ok(mut answer) => match judge(answer.status(), answer.headers()) {
            Attempt::Taken if request.check == Check::Ok => says_ok(answer).await,
            Attempt::Taken if read => read_answer(transport.namespace, &mut answer).await,
            attempt => attempt,
        },
        Err(net::Error::Refused(why)) => Attempt::Final(Error::RefusedAddress(why)),
        Err(net::Error::Unresolved) => Attempt::Final(Error::Unresolved),
        Err(error) if error.is_connect() => Attempt::Again(Error::Unreachable("the connection failed"), None),
        Err(error) if error.is_timeout() => Attempt::Again(Error::Unreachable("it took too long"), None),
        Err(_) => Attempt::Again(Error::Unreachable("the connection broke off"), None),
    }
}

/// Reads a long response. Their memory is bounded for all deliveries together, and none may hold it for long.
async fn read_answer(namespace: &str, answer: &mut Response) -> Attempt {
    let _reading = READING.acquire(namespace).await;
    match timeout(LONG_ANSWER_TIME, read_body(answer, LONG_ANSWER)).await {
        Ok(Ok(body)) => Attempt::Answered(body.to_vec()),
        Ok(Err(_)) => Attempt::Final(Error::Answer),
        Err(_) => Attempt::Again(Error::Unreachable("it took too long"), None),
    }
}

fn judge(status: StatusCode, headers: &HeaderMap) -> Attempt {
    let error = Error::Status(status.as_u16());
    match status {
        _ if status.is_success() => Attempt::Taken,
        _ if status.is_redirection() => Attempt::Final(Error::Redirect(status.as_u16())),
        StatusCode::TOO_MANY_REQUESTS => Attempt::Again(error, retry_after(headers, Timestamp::now())),
        StatusCode::NOT_IMPLEMENTED => Attempt::Final(error),
        StatusCode::SERVICE_UNAVAILABLE => Attempt::Again(error, retry_after(headers, Timestamp::now())),
        _ if status.is_server_error() => Attempt::Again(error, None),
        _ => Attempt::Final(error),
    }
}

/// Returns the delay that a response asks for, in seconds or as a date.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    let seconds = at.as_second().saturating_sub(now.as_second());
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or_default()))
}

#[derive(Deserialize)]
struct Said {
    ok: bool,
}

async fn says_ok(mut answer: Response) -> Attempt {
    let Ok(read) = read_body(&mut answer, ANSWER).await else {
        return Attempt::Final(Error::NotTaken);
    };
    match serde_json::from_slice::<Said>(&read) {
        Ok(Said { ok: true }) => Attempt::Taken,
        _ => Attempt::Final(Error::NotTaken),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn answers_are_taken_final_or_worth_another_attempt() {
        let mut headers = HeaderMap::new();
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("7"));
        let asked = Some(Duration::from_secs(7));
        for (code, expected) in [
            (200, Attempt::Taken),
            (204, Attempt::Taken),
            (302, Attempt::Final(Error::Redirect(302))),
            (400, Attempt::Final(Error::Status(400))),
            (404, Attempt::Final(Error::Status(404))),
            (429, Attempt::Again(Error::Status(429), asked)),
            (500, Attempt::Again(Error::Status(500), None)),
            (501, Attempt::Final(Error::Status(501))),
            (503, Attempt::Again(Error::Status(503), asked)),
        ] {
            assert_eq!(
                judge(StatusCode::from_u16(code).unwrap(), &headers),
                expected,
                "{code}"
            );
        }
        headers.insert(
            header::RETRY_AFTER,
            HeaderValue::from_static("Sat, 21 Nov 2026 10:00:00 GMT"),
        );
        let now: Timestamp = "2026-11-21T09:59:30Z".parse().unwrap();
        assert_eq!(retry_after(&headers, now), Some(Duration::from_secs(30)));
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("soon"));
        assert_eq!(retry_after(&headers, now), None);
    }
}
