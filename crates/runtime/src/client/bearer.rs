//! Tokens that are added to the requests of a client.

use std::sync::Arc;

use api::Secret;
use futures::{FutureExt as _, future::BoxFuture};
use http::{HeaderValue, Request, header};
use tower::{BoxError, filter::AsyncPredicate};

/// Tokens for a server that end and are renewed.
pub trait BearerTokens: std::fmt::Debug + Send + Sync {
    /// Returns a token that is valid now. The error is in words.
    fn token(&self) -> BoxFuture<'_, Result<Secret<String>, String>>;
}

/// Adds a token to each request.
#[derive(Debug, Clone)]
pub(super) struct WithToken(pub(super) Arc<dyn BearerTokens>);

impl<B: Send + 'static> AsyncPredicate<Request<B>> for WithToken {
    type Future = BoxFuture<'static, Result<Request<B>, BoxError>>;
    type Request = Request<B>;

    fn check(&mut self, mut request: Request<B>) -> Self::Future {
        let tokens = Arc::clone(&self.0);
        async move {
            let token = tokens.token().await?;
            let value = HeaderValue::try_from(format!("Bearer {}", token.expose()));
            let mut value = value.map_err(|_| "the token for the API server holds a control character")?;
            value.set_sensitive(true);
            request.headers_mut().insert(header::AUTHORIZATION, value);
            Ok(request)
        }
        .boxed()
    }
}
