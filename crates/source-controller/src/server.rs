//! The artifact server: answers downloads from the local storage, or else from the shared store.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use artifact::{
    Storage,
    server::{self, Asked},
};
use axum::{
    Router,
    extract::Request,
    response::{IntoResponse as _, Response},
};
use http::{HeaderValue, StatusCode, header};
use runtime::{Context, http as listener, tokens::TokenRefusal};
use tokio::{sync::Semaphore, task::JoinHandle};

use crate::{consumers::ConsumerCheck, flags::Flags, shared_store::SharedStore};

/// Limits of the artifact server: many consumers download at the same time, and a download may take long. A consumer has a few connections
/// at a time; one with very many slow ones leaves three quarters to the others.
const SERVING: listener::Limits = listener::Limits {
    connections: 512,
    connections_of_address: 512 / 4,
    header_bytes: 16 << 10,
    header_time: Duration::from_secs(15),
    slowest: listener::Pace::DEFAULT,
    lifetime: Duration::from_secs(30 * 60),
    grace: Duration::from_secs(5),
};

/// Maximum number of answers that wait for the shared store at the same time.
const WAITING: usize = 64;

/// Serves files at the address of the flags until the shutdown.
pub(crate) async fn start(ctx: &Context, flags: &Flags, files: Files) -> anyhow::Result<JoinHandle<()>> {
    let socket = listener::listen(&flags.storage_addr).await;
    let socket = socket.context("artifacts cannot be served, see --storage-addr")?;
    tracing::info!(address = %socket.local_addr()?, advertised = flags.advertised(), "serving artifacts");
    let files = Arc::new(files);
    let router = Router::new().fallback(move |request: Request| {
        let files = Arc::clone(&files);
        async move { files.answer(request).await }
    });
    Ok(tokio::spawn(listener::serve(
        socket,
        router,
        SERVING,
        ctx.shutdown().clone(),
    )))
}

#[derive(Debug)]
pub(crate) struct Files {
    storage: Arc<Storage>,
    shared: Option<Arc<SharedStore>>,
    consumers: Option<ConsumerCheck>,
    waiting: Semaphore,
}

impl Files {
    /// Serves a storage, or the shared store if there is one, to those that `consumers` admit; without it to all.
    pub(crate) fn new(
        storage: Arc<Storage>,
        shared: Option<Arc<SharedStore>>,
        consumers: Option<ConsumerCheck>,
    ) -> Self {
        Self {
            storage,
            shared,
            consumers,
            waiting: Semaphore::new(WAITING),
        }
    }

    pub(crate) async fn answer(&self, request: Request) -> Response {
        let peer = listener::peer(request.extensions());
        let asked = match Asked::parse(request) {
            Ok(asked) => Arc::new(asked),
            Err(response) => return response.into_response(),
        };
        if let Some(consumers) = &self.consumers
            && let Err(why) = consumers.admit(&asked, peer).await
        {
            return refused(why);
        }
        let path = asked.path();
        let shared = self.shared.as_ref();
        let is_local = shared.is_none_or(|shared| shared.is_served_locally(path));
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
