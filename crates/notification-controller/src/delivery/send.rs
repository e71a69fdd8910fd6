//! One delivery: several attempts within its timeout. The provider's answer is checked and discarded.

use std::time::Duration;

use http::{HeaderMap, StatusCode, header};
use net::{Client, read_body};
use reqwest::{Method, Response};
use serde::Deserialize;
use tokio::time::{Instant, sleep, timeout_at};

use crate::{
    Error,
    providers::{Check, Request},
};

/// Attempts after the first.
const RETRIES: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The longest answer that is read, in bytes, when its body is checked.
const ANSWER: u64 = 64 * 1024;

/// The result of one attempt.
#[derive(Debug, PartialEq, Eq)]
enum Attempt {
    Taken,
    Final(Error),
    /// Worth another attempt, after the time that the provider asked for.
    Again(Error, Option<Duration>),
}

/// Sends a request until it is accepted, finally refused, or `deadline` has passed.
pub(super) async fn send(client: &Client, request: &Request, deadline: Instant) -> Result<(), Error> {
    let started = Instant::now();
    let mut pause = FIRST_PAUSE;
    let mut retries = 0;
    loop {
        let late = || Error::TimedOut(deadline.saturating_duration_since(started).as_secs());
        let (error, asked) = match timeout_at(deadline, attempt(client, request)).await {
            Err(_) => return Err(late()),
            Ok(Attempt::Taken) => return Ok(()),
            Ok(Attempt::Final(error)) => return Err(error),
            Ok(Attempt::Again(error, asked)) => (error, asked),
        };
        let wait = asked.unwrap_or(pause);
        if retries >= RETRIES || Instant::now() + wait >= deadline {
            return Err(error);
        }
        sleep(wait).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        retries += 1;
    }
}

async fn attempt(client: &Client, request: &Request) -> Attempt {
    let mut post = reqwest::Request::new(Method::POST, request.address.expose().clone());
    *post.headers_mut() = request.headers.clone();
    *post.body_mut() = Some(request.body.clone().into());
    match client.send(post).await {
        Ok(answer) => match judge(answer.status(), answer.headers()) {
            Attempt::Taken if request.check == Check::Ok => says_ok(answer).await,
            attempt => attempt,
        },
        Err(net::Error::Refused(why)) => Attempt::Final(Error::RefusedAddress(why)),
        Err(net::Error::Unresolved) => Attempt::Final(Error::Unresolved),
        Err(error) if error.is_connect() => Attempt::Again(Error::Unreachable("the connection failed"), None),
        Err(error) if error.is_timeout() => Attempt::Again(Error::Unreachable("it took too long"), None),
        Err(_) => Attempt::Again(Error::Unreachable("the connection broke off"), None),
    }
}

fn judge(status: StatusCode, headers: &HeaderMap) -> Attempt {
    let error = Error::Status(status.as_u16());
    match status {
        _ if status.is_success() => Attempt::Taken,
        _ if status.is_redirection() => Attempt::Final(Error::Redirect(status.as_u16())),
        StatusCode::TOO_MANY_REQUESTS => Attempt::Again(error, retry_after(headers)),
        StatusCode::NOT_IMPLEMENTED => Attempt::Final(error),
        StatusCode::SERVICE_UNAVAILABLE => Attempt::Again(error, retry_after(headers)),
        _ if status.is_server_error() => Attempt::Again(error, None),
        _ => Attempt::Final(error),
    }
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers
        .get(header::RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Some(Duration::from_secs(seconds))
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
            HeaderValue::from_static("Fri, 21 Nov 2026 10:00:00 GMT"),
        );
        assert_eq!(retry_after(&headers), None);
    }
}
