//! Git's smart protocol over HTTP: one process of `git upload-pack` or `git receive-pack` for each request.
//!
//! Forges do the same: `git http-backend`, a process more for each request, is for web servers that only speak CGI.

use std::{
    io::{self, Read as _},
    process::Stdio,
};

use anyhow::{Context as _, Result, ensure};
use axum::{
    body::Body,
    response::{IntoResponse as _, Response},
};
use bytes::{Bytes, BytesMut};
use flate2::read::MultiGzDecoder;
use futures::{Stream, StreamExt as _, stream};
use http::{StatusCode, header};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, ChildStdout, Command},
};

use super::{
    Inner,
    backend::{Ask, MAX_BODY},
    repo::git,
};

const CHUNK: usize = 64 * 1024;

/// Answers a request by the program that it names; any other path is not found.
///
/// `is_old` answers in protocol 0, whatever is asked for.
pub(super) async fn answer(inner: &Inner, ask: Ask<'_>, is_old: bool) -> Result<Response> {
    let is_info = ask.rest == "info/refs";
    let service = match (is_info, ask.query.strip_prefix("service=")) {
        (true, Some(service)) => service,
        (true, None) => return Ok(StatusCode::FORBIDDEN.into_response()),
        (false, _) => ask.rest,
    };
    let Some(program @ ("upload-pack" | "receive-pack")) = service.strip_prefix("git-") else {
        return Ok(StatusCode::NOT_FOUND.into_response());
    };
    let text = |name: &str| ask.headers.get(name).and_then(|value| value.to_str().ok());
    let protocol = text("git-protocol").filter(|_| !is_old).unwrap_or_default();
    let (kind, greeting) = if is_info {
        ("advertisement", greeting(service, protocol))
    } else {
        if text("content-type") != Some(&format!("application/x-{service}-request")) {
            return Ok(StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response());
        }
        ("result", Bytes::new())
    };
    let input = match text("content-encoding") {
        Some("gzip" | "x-gzip") => inflate(&ask.body)?,
        _ => ask.body.clone(),
    };
    let mut command = git(&inner.root.path().join(format!("{}.git", ask.repo)));
    command
        .args([program, "--stateless-rpc"])
        .args(is_info.then_some("--http-backend-info-refs"))
        .arg(".")
        .env("GIT_PROTOCOL", protocol);
    let output = run(command.into(), input)?;
    let body = stream::iter((!greeting.is_empty()).then_some(Ok(greeting))).chain(output);
    let head = [
        (header::CONTENT_TYPE, format!("application/x-{service}-{kind}")),
        (
            header::CACHE_CONTROL,
            "no-cache, max-age=0, must-revalidate".to_owned(),
        ),
    ];
    Ok((head, Body::from_stream(body)).into_response())
}

/// Returns the bytes that precede the refs of protocols 0 and 1.
fn greeting(service: &str, protocol: &str) -> Bytes {
    if protocol.split(':').any(|part| part == "version=2") {
        return Bytes::new();
    }
    let line = format!("# service={service}\n");
    format!("{:04x}{line}0000", line.len() + 4).into()
}

fn inflate(body: &[u8]) -> Result<Bytes> {
    let mut whole = Vec::new();
    let limit = MAX_BODY as u64 + 1;
    MultiGzDecoder::new(body)
        .take(limit)
        .read_to_end(&mut whole)
        .context("the body is not valid gzip")?;
    ensure!(
        whole.len() <= MAX_BODY,
        "the body is larger than {MAX_BODY} bytes"
    );
    Ok(whole.into())
}

/// Starts a program, and returns its output; dropping that ends the program.
fn run(mut command: Command, input: Bytes) -> Result<impl Stream<Item = io::Result<Bytes>>> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let mut child = command.spawn().context("can't run git: install it")?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    tokio::spawn(async move {
        // It may answer without having read everything.
        let _ = stdin.write_all(&input).await;
    });
    let stdout = child.stdout.take().context("no standard output")?;
    Ok(output(child, stdout))
}

fn output(child: Child, stdout: ChildStdout) -> impl Stream<Item = io::Result<Bytes>> {
    stream::try_unfold((child, stdout), |(mut child, mut stdout)| async move {
        let mut chunk = BytesMut::with_capacity(CHUNK);
        if stdout.read_buf(&mut chunk).await? == 0 {
            child.wait().await?;
            return Ok(None);
        }
        Ok(Some((chunk.freeze(), (child, stdout))))
    })
}
