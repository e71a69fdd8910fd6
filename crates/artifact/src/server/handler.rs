//! The answer to one request.

use std::{
    fs::File,
    io::{self, Seek as _},
    sync::Arc,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};

use super::body;
use super::request::{Part, http_date, not_modified, part, storage_path};
use crate::{Digest, Error, Storage, storage::Stamp};

/// The body of an answer.
pub type Body = UnsyncBoxBody<Bytes, io::Error>;

/// Answers a request for a file of the storage. The body of the request is not looked at.
pub async fn answer<B>(storage: Arc<Storage>, request: Request<B>) -> Response<Body> {
    let (request, _body) = request.into_parts();
    let head = match request.method {
        Method::GET => false,
        Method::HEAD => true,
        _ => {
            let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "405 method not allowed\n");
            response
                .headers_mut()
                .insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
    };
    // Probes of older deployments ask for the root.
    if request.uri.path() == "/" {
        return plain(StatusCode::OK, "");
    }
    let Some(path) = storage_path(request.uri.path()) else {
        return not_found();
    };
    // All that reads from the disk, up to the first chunk, runs on a thread for blocking work.
    let answered = tokio::task::spawn_blocking(move || {
        let opened = storage.open_file(&path)?;
        let answer =
            opened.map(|(file, stamp, digest)| respond(&request.headers, head, &path, file, stamp, &digest));
        answer.transpose().map_err(Error::io("read", &path))
    });
    let failed = |error| Error::io("open", "an artifact")(io::Error::other(error));
    match answered.await.map_err(failed).flatten() {
        Ok(Some(response)) => response,
        Ok(None) => not_found(),
        Err(error) => {
            tracing::error!(%error, "failed to serve an artifact");
            plain(StatusCode::INTERNAL_SERVER_ERROR, "500 internal server error\n")
        }
    }
}

fn respond(
    asked: &HeaderMap,
    head: bool,
    path: &str,
    mut file: File,
    stamp: Stamp,
    digest: &Digest,
) -> io::Result<Response<Body>> {
    let etag = format!("\"{digest}\"");
    let mut headers = HeaderMap::new();
    insert(&mut headers, header::ETAG, &etag);
    if let Some(date) = http_date(stamp.modified()) {
        insert(&mut headers, header::LAST_MODIFIED, &date);
    }
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if not_modified(asked, &etag, stamp.modified()) {
        return Ok(with(StatusCode::NOT_MODIFIED, headers, empty()));
    }
    let (status, first, len) = match part(asked, &etag, stamp.modified(), stamp.size) {
        Part::Whole => (StatusCode::OK, 0, stamp.size),
        Part::Bytes(first, last) => {
            insert(
                &mut headers,
                header::CONTENT_RANGE,
                &format!("bytes {first}-{last}/{}", stamp.size),
            );
            (StatusCode::PARTIAL_CONTENT, first, last - first + 1)
        }
        Part::Outside => {
            insert(
                &mut headers,
                header::CONTENT_RANGE,
                &format!("bytes */{}", stamp.size),
            );
            return Ok(with(StatusCode::RANGE_NOT_SATISFIABLE, headers, empty()));
        }
    };
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(len));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type(path)));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    if head {
        return Ok(with(status, headers, empty()));
    }
    if first > 0 {
        file.seek(io::SeekFrom::Start(first))?;
    }
    Ok(with(status, headers, body::of(file, len)?))
}

fn content_type(path: &str) -> &'static str {
    if path.ends_with(".gz") || path.ends_with(".tgz") {
        "application/gzip"
    } else {
        "application/octet-stream"
    }
}

fn insert(headers: &mut HeaderMap, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

fn with(status: StatusCode, headers: HeaderMap, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

fn not_found() -> Response<Body> {
    plain(StatusCode::NOT_FOUND, "404 page not found\n")
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut headers = HeaderMap::new();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    with(
        status,
        headers,
        Full::from(text).map_err(|never| match never {}).boxed_unsync(),
    )
}

fn empty() -> Body {
    Full::default().map_err(|never| match never {}).boxed_unsync()
}
