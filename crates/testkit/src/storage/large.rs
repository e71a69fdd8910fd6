//! A bucket of an S3-compatible service with as many objects as a test wants, none of which is stored.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use anyhow::Result;
use axum::{
    Router,
    extract::{Request, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
};

use super::pairs;
use crate::http::Server;

const PAGE: usize = 1000;

/// A service with one bucket, whose objects are `small/0`, `large/1`, `large/2` and so on; each has four bytes.
#[derive(Debug)]
pub struct LargeBucket {
    pages: Arc<AtomicUsize>,
    server: Server,
}

struct Inner {
    objects: usize,
    pages: Arc<AtomicUsize>,
}

impl LargeBucket {
    pub fn start(objects: usize) -> Result<Self> {
        let pages = Arc::<AtomicUsize>::default();
        let inner = Inner {
            objects,
            pages: Arc::clone(&pages),
        };
        let router = Router::new().fallback(answer).with_state(Arc::new(inner));
        let server = Server::start(router, None)?;
        Ok(Self { pages, server })
    }

    #[must_use]
    pub fn endpoint(&self) -> String {
        self.server.host()
    }

    #[must_use]
    pub fn pages(&self) -> usize {
        self.pages.load(Ordering::Relaxed)
    }
}

async fn answer(State(inner): State<Arc<Inner>>, request: Request) -> Response {
    let query = pairs(request.uri().query().unwrap_or_default());
    let path = request.uri().path();
    if query.contains_key("list-type") {
        inner.pages.fetch_add(1, Ordering::Relaxed);
        let first = query
            .get("continuation-token")
            .and_then(|token| token.parse().ok());
        return page(first.unwrap_or(0), inner.objects).into_response();
    }
    if path.ends_with(".sourceignore") {
        let body =
            "<Error><Code>NoSuchKey</Code><Message>The specified key does not exist.</Message></Error>";
        return (StatusCode::NOT_FOUND, body).into_response();
    }
    ([("etag", "\"1\"")], "a: b").into_response()
}

fn page(first: usize, objects: usize) -> String {
    use std::fmt::Write as _;

    let end = objects.min(first + PAGE);
    let mut out = String::from("<ListBucketResult>");
    for number in first..end {
        let dir = if number == 0 { "small" } else { "large" };
        // Writing to a string can't fail.
        let _ = write!(
            out,
            "<Contents><Key>{dir}/{number:09}</Key><ETag>\"1\"</ETag><Size>4</Size></Contents>"
        );
    }
    let _ = match end < objects {
        true => write!(
            out,
            "<IsTruncated>true</IsTruncated><NextContinuationToken>{end}</NextContinuationToken>"
        ),
        false => write!(out, "<IsTruncated>false</IsTruncated>"),
    };
    out + "</ListBucketResult>"
}
