//! Answers to downloads of artifacts, with or without the local storage.

use std::sync::Arc;

use artifact::{
    Storage,
    server::{self, Asked, Body, Described, Prepared},
    storage::{is_alias, is_artifact},
};
use axum::{
    extract::Request,
    response::{IntoResponse as _, Response},
};
use futures::TryStreamExt as _;
use http::{HeaderValue, StatusCode, header};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use runtime::tokens::{TokenRefusal, TokenReviews};
use tokio::sync::Semaphore;

use super::{SharedStore, StoreError, alias_path, content};

const WAITING: usize = 64;
const MAX_NAME: usize = 253;

#[derive(Debug)]
pub(crate) struct Files {
    storage: Arc<Storage>,
    shared: Option<Arc<SharedStore>>,
    /// Reviews the tokens of consumers, if they need one.
    tokens: Option<TokenReviews>,
    waiting: Semaphore,
}

impl Files {
    /// Serves a storage, or the shared store if there is one, to those with a token that `tokens` accept.
    pub(crate) fn new(
        storage: Arc<Storage>,
        shared: Option<Arc<SharedStore>>,
        tokens: Option<TokenReviews>,
    ) -> Self {
        Self {
            storage,
            shared,
            tokens,
            waiting: Semaphore::new(WAITING),
        }
    }

    pub(crate) async fn answer(&self, request: Request) -> Response {
        let asked = match Asked::parse(request) {
            Ok(asked) => Arc::new(asked),
            Err(response) => return response.into_response(),
        };
        if let Some(tokens) = &self.tokens
            && let Err(why) = tokens.identify(asked.headers()).await
        {
            return refused(why);
        }
        let path = asked.path();
        let shared = self.shared.as_ref();
        let is_local = shared.is_none_or(|shared| shared.ledger.lock().is_served(path));
        if is_local && let Some(response) = server::local(Arc::clone(&self.storage), Arc::clone(&asked)).await
        {
            return response.into_response();
        }
        let Some(shared) = shared else {
            return server::not_found().into_response();
        };
        let answered = async {
            let _permit = self.waiting.acquire().await;
            shared.answer(&asked).await
        };
        let response = answered.await.unwrap_or_else(|error| {
            tracing::warn!(%error, path, "failed to serve an artifact");
            server::unavailable()
        });
        response.into_response()
    }
}

fn refused(why: TokenRefusal) -> Response {
    let (status, text) = match why {
        TokenRefusal::NoToken => (
            StatusCode::UNAUTHORIZED,
            "artifacts need the token of a consumer\n",
        ),
        TokenRefusal::InvalidToken => (
            StatusCode::UNAUTHORIZED,
            "the token is not valid here: see --artifact-token-audience\n",
        ),
        TokenRefusal::Stranger => (
            StatusCode::FORBIDDEN,
            "this identity may not download artifacts: see --artifact-consumers\n",
        ),
        TokenRefusal::NoReview => (StatusCode::SERVICE_UNAVAILABLE, "tokens cannot be reviewed now\n"),
    };
    let mut response = (status, text).into_response();
    if status == StatusCode::UNAUTHORIZED {
        let scheme = HeaderValue::from_static("Bearer");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
    }
    response
}

impl SharedStore {
    /// Answers a request by the service's content, as a stream.
    async fn answer(&self, asked: &Asked) -> Result<http::Response<Body>, StoreError> {
        let Some(path) = self.resolve(asked.path()).await? else {
            return Ok(server::not_found());
        };
        let Some(stat) = self.connection.stat(&path).await? else {
            return Ok(server::not_found());
        };
        let described = Described {
            size: stat.size,
            modified: stat.modified,
            tag: stat.digest.as_deref().unwrap_or_default(),
        };
        let (mut response, first, len) = match described.prepare(asked) {
            Prepared::Complete(response) => return Ok(response),
            Prepared::Part { response, first, len } => (response, first, len),
        };
        if len == 0 {
            return Ok(response);
        }
        let part = (len < stat.size).then_some((first, len));
        match self.connection.get(&path, part).await? {
            Some((now, object)) if part.is_some() || now == stat => {
                let body = StreamBody::new(content(object).map_ok(Frame::data));
                *response.body_mut() = body.boxed_unsync();
                Ok(response)
            }
            // It was replaced meanwhile.
            _ => Ok(server::unavailable()),
        }
    }

    /// Returns the path of the file that a path stands for; `None` if it is not in an artifact.
    async fn resolve(&self, path: &str) -> Result<Option<String>, StoreError> {
        let (dir, file) = path.rsplit_once('/').unwrap_or_default();
        if !is_alias(file) {
            return Ok(is_artifact(file).then(|| path.to_owned()));
        }
        let Some((_, mut object)) = self.connection.get(&alias_path(path), None).await? else {
            return Ok(None);
        };
        let mut name = Vec::new();
        while let Some(piece) = object.chunk().await? {
            name.extend_from_slice(&piece);
            if name.len() > MAX_NAME {
                return Ok(None);
            }
        }
        let name = String::from_utf8(name).ok().filter(|name| is_artifact(name));
        Ok(name.map(|name| format!("{dir}/{name}")))
    }
}
