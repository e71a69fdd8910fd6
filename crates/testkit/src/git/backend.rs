//! Answers requests as Git does, or wrongly where a fault is set.

use std::{io, sync::Arc};

use axum::{
    body::Body,
    extract::{Request, State},
    response::{IntoResponse as _, Response},
};
use base64::Engine as _;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{HeaderMap, StatusCode, header};

use super::{Behaviour, Fault, Inner, Request as Logged, Step, hostile, service};

pub(super) const MAX_BODY: usize = 512 * 1024 * 1024;

pub(super) async fn answer(State(inner): State<Arc<Inner>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, MAX_BODY).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let path = head.uri.path().trim_start_matches('/').to_owned();
    // A clone URL may leave out `.git`.
    let (repo, rest) = path
        .split_once(".git/")
        .or_else(|| split_bare(&path))
        .unwrap_or((&path, ""));
    let query = head.uri.query().unwrap_or_default();
    let step = step(rest, query, &head.headers, &body);
    let authorization = head
        .headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let logged = Logged {
        repo: repo.to_owned(),
        step,
        authorization: authorization.map(str::to_owned),
        status: None,
    };
    let index = {
        let mut requests = inner.requests.lock();
        requests.push(logged);
        requests.len() - 1
    };
    let behaviour = inner.behaviours.lock().get(repo).cloned();
    let response = match behaviour {
        None => StatusCode::NOT_FOUND.into_response(),
        Some(behaviour) => {
            let ask = Ask {
                repo,
                rest,
                query,
                headers: &head.headers,
                body,
                step,
            };
            behave(&inner, &behaviour, authorization, ask).await
        }
    };
    if let Some(logged) = inner.requests.lock().get_mut(index) {
        logged.status = Some(response.status().as_u16());
    }
    response
}

pub(super) struct Ask<'a> {
    pub(super) repo: &'a str,
    /// The path behind the repository.
    pub(super) rest: &'a str,
    pub(super) query: &'a str,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: Bytes,
    step: Step,
}

async fn behave(inner: &Inner, behaviour: &Behaviour, authorization: Option<&str>, ask: Ask<'_>) -> Response {
    tokio::time::sleep(behaviour.delay).await;
    match &behaviour.fault {
        Some(Fault::Status(code)) => return refuse(*code),
        Some(Fault::Hang) => return std::future::pending().await,
        Some(Fault::Page(text)) => {
            return ([(header::CONTENT_TYPE, "text/html")], text.clone()).into_response();
        }
        Some(Fault::Redirect(to, code)) => {
            let query = if ask.query.is_empty() {
                String::new()
            } else {
                format!("?{}", ask.query)
            };
            let to = format!("{}/{}{query}", to.trim_end_matches('/'), ask.rest);
            return (
                StatusCode::from_u16(*code).unwrap_or(StatusCode::FOUND),
                [(header::LOCATION, to)],
            )
                .into_response();
        }
        _ => {}
    }
    if let Some((user, password)) = &behaviour.basic_auth {
        let expected = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
        if authorization.and_then(|value| value.strip_prefix("Basic ")) != Some(&expected) {
            return refuse(401);
        }
    }
    let step = ask.step;
    let answered = match service::answer(inner, ask, behaviour.is_old).await {
        Ok(response) => response,
        Err(error) => return (StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}")).into_response(),
    };
    match (&behaviour.fault, step) {
        (Some(Fault::Cut), _) | (Some(Fault::CutMidPack), Step::Fetch) => half(answered, true).await,
        (Some(Fault::HangMidPack), Step::Fetch) => half(answered, false).await,
        (Some(Fault::DripPack), Step::Fetch) => drip(answered).await,
        (Some(Fault::Pack(pack)), Step::Fetch) => hostile::with_pack(answered, pack).await,
        (Some(Fault::EndlessRefs), Step::LsRefs) => hostile::with_endless_refs(answered),
        _ => answered,
    }
}

fn refuse(code: u16) -> Response {
    let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if status == StatusCode::UNAUTHORIZED {
        return (status, [(header::WWW_AUTHENTICATE, "Basic realm=\"git\"")]).into_response();
    }
    status.into_response()
}

/// Sends half of an answer; then the connection is cut, or nothing more comes.
async fn half(response: Response, cut: bool) -> Response {
    let (mut head, body) = response.into_parts();
    let whole = axum::body::to_bytes(body, MAX_BODY).await.unwrap_or_default();
    let first = whole.slice(..whole.len() / 2);
    let end = async move {
        if !cut {
            std::future::pending::<()>().await;
        }
        // Time for the first half to be sent: a body that fails at once may fail the whole answer.
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        Err::<Bytes, _>(io::Error::other("cut"))
    };
    head.headers.remove(header::CONTENT_LENGTH);
    let body = stream::once(async move { Ok(first) }).chain(stream::once(end));
    Response::from_parts(head, Body::from_stream(body))
}

/// Sends half of an answer, and then one byte at a time.
async fn drip(response: Response) -> Response {
    let (mut head, body) = response.into_parts();
    let whole = axum::body::to_bytes(body, MAX_BODY).await.unwrap_or_default();
    let (first, rest) = (whole.slice(..whole.len() / 2), whole.slice(whole.len() / 2..));
    head.headers.remove(header::CONTENT_LENGTH);
    let drops = stream::iter(0..rest.len()).then(move |at| {
        let drop = rest.slice(at..=at);
        async move {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            Ok::<_, io::Error>(drop)
        }
    });
    let body = stream::once(async move { Ok(first) }).chain(drops);
    Response::from_parts(head, Body::from_stream(body))
}

/// Splits a path into repository and rest where the repository is named without `.git`.
fn split_bare(path: &str) -> Option<(&str, &str)> {
    ["info/refs", "git-upload-pack", "git-receive-pack"]
        .into_iter()
        .find_map(|rest| {
            path.strip_suffix(rest)
                .map(|repo| (repo.trim_end_matches('/'), rest))
        })
}

fn step(rest: &str, query: &str, headers: &HeaderMap, body: &[u8]) -> Step {
    let contains = |needle: &[u8]| body.windows(needle.len()).take(64).any(|window| window == needle);
    match rest {
        "git-receive-pack" => Step::Push,
        "info/refs" if query.contains("git-receive-pack") => Step::Push,
        "info/refs" => Step::Info,
        "git-upload-pack" if contains(b"command=ls-refs") => Step::LsRefs,
        // Only long bodies are compressed, and those name the objects that the client has.
        "git-upload-pack" if contains(b"command=fetch") || !headers.contains_key("git-protocol") => {
            Step::Fetch
        }
        "git-upload-pack" if headers.contains_key(header::CONTENT_ENCODING) => Step::Fetch,
        _ => Step::Other,
    }
}
