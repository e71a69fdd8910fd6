//! Answers requests by `git http-backend`, which speaks CGI, or wrongly where a fault is set.

use std::{io, path::Path, process::Stdio, sync::Arc};

use anyhow::{Context as _, Result};
use axum::{
    body::Body,
    extract::{Request, State},
    response::{IntoResponse as _, Response},
};
use base64::Engine as _;
use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt as _, stream};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStdout, Command},
};

use super::{Behaviour, Fault, Inner, Request as Logged, Step, hostile};
use crate::process::lock;

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
        let mut requests = lock(&inner.requests);
        requests.push(logged);
        requests.len() - 1
    };
    let behaviour = lock(&inner.behaviours).get(repo).cloned();
    let response = match behaviour {
        None => StatusCode::NOT_FOUND.into_response(),
        Some(behaviour) => {
            let ask = Ask {
                repo,
                rest,
                query,
                method: head.method.as_str(),
                headers: &head.headers,
                body,
                step,
            };
            behave(&inner, &behaviour, authorization, ask).await
        }
    };
    if let Some(logged) = lock(&inner.requests).get_mut(index) {
        logged.status = Some(response.status().as_u16());
    }
    response
}

/// A request to one repository.
struct Ask<'a> {
    repo: &'a str,
    /// The path behind the repository.
    rest: &'a str,
    query: &'a str,
    method: &'a str,
    headers: &'a HeaderMap,
    body: Bytes,
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
    let answered = match backend(inner, ask, behaviour.is_old).await {
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
        // Only long bodies are compressed, and those name what the client has.
        "git-upload-pack" if contains(b"command=fetch") || !headers.contains_key("git-protocol") => {
            Step::Fetch
        }
        "git-upload-pack" if headers.contains_key(header::CONTENT_ENCODING) => Step::Fetch,
        _ => Step::Other,
    }
}

/// Runs `git http-backend` for one request.
async fn backend(inner: &Inner, ask: Ask<'_>, is_old: bool) -> Result<Response> {
    let header = |name: &str| {
        ask.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    };
    let protocol = if is_old { "" } else { header("git-protocol") };
    let mut child = Command::new(&inner.backend)
        .env("GIT_PROJECT_ROOT", inner.root.path())
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("HOME", inner.root.path())
        .env("PATH_INFO", format!("/{}.git/{}", ask.repo, ask.rest))
        .env("QUERY_STRING", ask.query)
        .env("REQUEST_METHOD", ask.method)
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", ask.body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("GIT_PROTOCOL", protocol)
        .env("REMOTE_USER", "test")
        .env("REMOTE_ADDR", "127.0.0.1")
        .current_dir(Path::new("/"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("can't run {}", inner.backend.display()))?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    let body = ask.body.clone();
    tokio::spawn(async move {
        // It may answer without having read everything.
        let _ = stdin.write_all(&body).await;
    });
    let mut stdout = BufReader::new(child.stdout.take().context("no standard output")?);
    let (status, headers) = cgi_head(&mut stdout).await?;
    let mut response = Response::new(Body::from_stream(output(child, stdout)));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}

/// Reads the headers of a CGI answer; `Status` is one of them.
async fn cgi_head(stdout: &mut BufReader<ChildStdout>) -> Result<(StatusCode, HeaderMap)> {
    let (mut status, mut headers) = (StatusCode::OK, HeaderMap::new());
    loop {
        let mut line = String::new();
        let read = stdout.read_line(&mut line).await?;
        anyhow::ensure!(read > 0, "git http-backend ended without an answer");
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            return Ok((status, headers));
        };
        if name.eq_ignore_ascii_case("status") {
            status = value.split(' ').next().unwrap_or_default().parse()?;
        } else {
            headers.insert(name.parse::<HeaderName>()?, HeaderValue::from_str(value)?);
        }
    }
}

/// The rest of the program's output; dropping it ends the program.
fn output(child: Child, stdout: BufReader<ChildStdout>) -> impl Stream<Item = io::Result<Bytes>> {
    stream::try_unfold((child, stdout), |(mut child, mut stdout)| async move {
        let mut chunk = BytesMut::with_capacity(64 * 1024);
        if stdout.read_buf(&mut chunk).await? == 0 {
            child.wait().await?;
            return Ok(None);
        }
        Ok(Some((chunk.freeze(), (child, stdout))))
    })
}
