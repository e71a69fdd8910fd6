//! The answer to one request.

use std::{
    fs::File,
    io::{self, Seek as _},
    sync::Arc,
};

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};

use super::body::{self, Body};
use super::request::{Part, http_date, not_modified, part, storage_path};
use crate::{Digest, Error, Storage, storage::Stamp};

#[derive(Debug)]
pub struct Asked {
    path: String,
    is_head: bool,
    headers: HeaderMap,
}

impl Asked {
    /// Parses a request.
    ///
    /// # Errors
    /// The answer to a request for anything else than a file.
    pub fn parse<B>(request: Request<B>) -> Result<Self, Box<Response<Body>>> {
        let (request, _body) = request.into_parts();
        let is_head = match request.method {
            Method::GET => false,
            Method::HEAD => true,
            _ => {
                let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "405 method not allowed\n");
                response
                    .headers_mut()
                    .insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
                return Err(Box::new(response));
            }
        };
        // Probes of older deployments ask for the root.
        if request.uri.path() == "/" {
            return Err(Box::new(plain(StatusCode::OK, "")));
        }
        let path = storage_path(request.uri.path()).ok_or_else(|| Box::new(not_found()))?;
        Ok(Self {
            path,
            is_head,
            headers: request.headers,
        })
    }

    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Returns the path in the storage: kind, namespace, name and file.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }
}

pub async fn answer<B>(storage: Arc<Storage>, request: Request<B>) -> Response<Body> {
    let asked = match Asked::parse(request) {
        Ok(asked) => asked,
        Err(response) => return *response,
    };
    let answered = local(storage, Arc::new(asked)).await;
    answered.unwrap_or_else(not_found)
}

/// Answers with a file of the storage; `None` if it is missing.
pub async fn local(storage: Arc<Storage>, asked: Arc<Asked>) -> Option<Response<Body>> {
    // All reads from the disk, up to the first chunk, run on a thread for blocking work.
    let answered = tokio::task::spawn_blocking(move || {
        let opened = storage.open_file(&asked.path)?;
        let answer = opened.map(|(file, stamp, digest)| respond(&asked, file, stamp, &digest));
        answer.transpose().map_err(Error::io("read", &asked.path))
    });
    let failed = |error| Error::io("open", "an artifact")(io::Error::other(error));
    match answered.await.map_err(failed).flatten() {
        Ok(answer) => answer,
        Err(error) => {
            tracing::error!(%error, "failed to serve an artifact");
            Some(plain(
                StatusCode::INTERNAL_SERVER_ERROR,
                "500 internal server error\n",
            ))
        }
    }
}

fn respond(asked: &Asked, mut file: File, stamp: Stamp, digest: &Digest) -> io::Result<Response<Body>> {
    let described = Described {
        size: stamp.size,
        modified: stamp.modified(),
        tag: &digest.to_string(),
    };
    match described.prepare(asked) {
        Prepared::Complete(response) => Ok(response),
        Prepared::Part {
            mut response,
            first,
            len,
        } => {
            if first > 0 {
                file.seek(io::SeekFrom::Start(first))?;
            }
            *response.body_mut() = body::of(file, len)?;
            Ok(response)
        }
    }
}

/// Metadata of a file for an answer.
#[derive(Debug, Clone, Copy)]
pub struct Described<'a> {
    pub size: u64,
    pub modified: i64,
    /// Tag of the content, without quotes.
    pub tag: &'a str,
}

/// An answer whose content may be missing.
#[derive(Debug)]
pub enum Prepared {
    Complete(Response<Body>),
    Part {
        response: Response<Body>,
        first: u64,
        len: u64,
    },
}

impl Described<'_> {
    #[must_use]
    pub fn prepare(self, asked: &Asked) -> Prepared {
        let Self { size, modified, tag } = self;
        let etag = format!("\"{tag}\"");
        let mut headers = HeaderMap::new();
        insert(&mut headers, header::ETAG, &etag);
        if let Some(date) = http_date(modified) {
            insert(&mut headers, header::LAST_MODIFIED, &date);
        }
        headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        if not_modified(&asked.headers, &etag, modified) {
            return Prepared::Complete(with(StatusCode::NOT_MODIFIED, headers, empty()));
        }
        let (status, first, len) = match part(&asked.headers, &etag, modified, size) {
            Part::Whole => (StatusCode::OK, 0, size),
            Part::Bytes(first, last) => {
                insert(
                    &mut headers,
                    header::CONTENT_RANGE,
                    &format!("bytes {first}-{last}/{size}"),
                );
                (StatusCode::PARTIAL_CONTENT, first, last - first + 1)
            }
            Part::Outside => {
                insert(&mut headers, header::CONTENT_RANGE, &format!("bytes */{size}"));
                let response = with(StatusCode::RANGE_NOT_SATISFIABLE, headers, empty());
                return Prepared::Complete(response);
            }
        };
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(len));
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static(content_type(&asked.path)),
        );
        headers.insert(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        );
        let response = with(status, headers, empty());
        match asked.is_head {
            true => Prepared::Complete(response),
            false => Prepared::Part { response, first, len },
        }
    }
}

#[must_use]
pub fn content_type(path: &str) -> &'static str {
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

#[must_use]
pub fn not_found() -> Response<Body> {
    plain(StatusCode::NOT_FOUND, "404 page not found\n")
}

#[must_use]
pub fn unavailable() -> Response<Body> {
    plain(StatusCode::SERVICE_UNAVAILABLE, "503 service unavailable\n")
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
