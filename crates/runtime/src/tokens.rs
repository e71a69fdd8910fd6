//! Bearer tokens of requests, which the API server reviews.
//!
//! Verdicts are cached under a hash of the token. Requests with the same token share a review, concurrent reviews are bounded, and unknown
//! tokens are reviewed at a bounded rate, so that a flood of them neither loads the API server nor stops known users.

mod cache;

use std::{
    collections::HashMap,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{FutureExt as _, future::Shared};
use http::{HeaderMap, header};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use kube::{Api, Client, api::PostParams};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::sync::oneshot;

use cache::{Cache, Key, Known};

/// Maximum size of a reviewed token, in bytes.
const MAX_TOKEN: usize = 16 * 1024;
const REVIEWS: usize = 8;
/// Concurrent reviews, above which no unknown token is reviewed.
const REVIEWS_OF_UNKNOWN: usize = 4;
/// Timeout of a review: senders of events wait 5 seconds for an answer.
const REVIEW_TIME: Duration = Duration::from_secs(4);
const LOGGED_BYTES: usize = 300;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    Accepted(Arc<str>),
    Stranger,
    /// Not a token of this cluster for this audience, or no longer one.
    Invalid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenRefusal {
    NoToken,
    InvalidToken,
    Stranger,
    NoReview,
}

type Running = Shared<oneshot::Receiver<Verdict>>;

#[derive(Debug)]
struct State {
    cache: Cache,
    running: HashMap<Key, Running>,
}

pub struct TokenUsers {
    pub audience: String,
    pub accepts: Box<dyn Fn(&str) -> bool + Send + Sync>,
    pub flag: &'static str,
}

impl fmt::Debug for TokenUsers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenUsers")
            .field("audience", &self.audience)
            .finish_non_exhaustive()
    }
}

/// Identifies the users of requests by their tokens. Clones share a cache.
#[derive(Clone)]
pub struct TokenReviews {
    client: Client,
    users: Arc<TokenUsers>,
    state: Arc<Mutex<State>>,
}

impl fmt::Debug for TokenReviews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenReviews")
            .field("users", &self.users)
            .finish_non_exhaustive()
    }
}

impl TokenReviews {
    /// Reviews tokens with a client, which needs the right to create TokenReviews.
    #[must_use]
    pub fn new(client: Client, users: TokenUsers) -> Self {
        Self {
            client,
            users: Arc::new(users),
            state: Arc::new(Mutex::new(State {
                cache: Cache::new(Instant::now()),
                running: HashMap::new(),
            })),
        }
    }

    /// Returns the name of the user of a request with these headers. Fails if it has no token of an accepted user, or the API server
    /// doesn't review it in time.
    pub async fn identify(&self, headers: &HeaderMap) -> Result<Arc<str>, TokenRefusal> {
        let token = bearer(headers)?;
        let key: Key = Sha256::digest(token.as_bytes()).into();
        let verdict = match self.known_or_running(key, token)? {
            Ok(verdict) => verdict,
            Err(running) => running.await.map_err(|_| TokenRefusal::NoReview)?,
        };
        match verdict {
            Verdict::Accepted(name) => Ok(name),
            Verdict::Stranger => Err(TokenRefusal::Stranger),
            Verdict::Invalid => Err(TokenRefusal::InvalidToken),
        }
    }

    fn known_or_running(&self, key: Key, token: &str) -> Result<Result<Verdict, Running>, TokenRefusal> {
        let now = Instant::now();
        let mut state = self.state.lock();
        if let Some(running) = state.running.get(&key) {
            return Ok(Err(running.clone()));
        }
        let (most, pays) = match state.cache.lookup(&key, now) {
            Known::Verdict(verdict) => return Ok(Ok(verdict)),
            Known::Accepted => (REVIEWS, false),
            Known::Nothing => (REVIEWS_OF_UNKNOWN, true),
        };
        if state.running.len() >= most || pays && !state.cache.pay(now) {
            return Err(TokenRefusal::NoReview);
        }
        let (done, receiver) = oneshot::channel();
        let running = receiver.shared();
        state.running.insert(key, running.clone());
        // A separate task: a request that breaks off takes no verdict from the others.
        tokio::spawn(self.clone().review(key, token.to_owned(), done));
        Ok(Err(running))
    }

    async fn review(self, key: Key, token: String, done: oneshot::Sender<Verdict>) {
        let reviewed = tokio::time::timeout(REVIEW_TIME, self.ask(token)).await;
        let mut state = self.state.lock();
        state.running.remove(&key);
        let verdict = match reviewed {
            Ok(Ok(review)) => verdict(&review, &self.users),
            Ok(Err(error)) => {
                let error = crate::client::describe(&error);
                return tracing::error!(error, "cannot review the token of a request");
            }
            Err(_) => {
                return tracing::error!("cannot review the token of a request: the API server was too slow");
            }
        };
        state.cache.remember(key, verdict.clone(), Instant::now());
        drop(state);
        // The requests that waited may be gone.
        let _ = done.send(verdict);
    }

    async fn ask(&self, token: String) -> Result<TokenReview, kube::Error> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                audiences: Some(vec![self.users.audience.clone()]),
                token: Some(token),
            },
            ..TokenReview::default()
        };
        let api = Api::<TokenReview>::all(self.client.clone());
        api.create(&PostParams::default(), &review).await
    }
}

fn bearer(headers: &HeaderMap) -> Result<&str, TokenRefusal> {
    let value = headers.get(header::AUTHORIZATION).ok_or(TokenRefusal::NoToken)?;
    let value = value.to_str().map_err(|_| TokenRefusal::InvalidToken)?;
    let (scheme, token) = value.split_once(' ').ok_or(TokenRefusal::NoToken)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(TokenRefusal::NoToken);
    }
    let token = token.trim();
    if token.is_empty() || token.len() > MAX_TOKEN {
        return Err(TokenRefusal::InvalidToken);
    }
    Ok(token)
}

/// Decides on an answered review. An API server that knows no audiences returns none, and its token is refused.
fn verdict(review: &TokenReview, users: &TokenUsers) -> Verdict {
    let Some(status) = &review.status else {
        return Verdict::Invalid;
    };
    let audiences = status.audiences.as_deref().unwrap_or_default();
    if status.authenticated != Some(true) || !audiences.contains(&users.audience) {
        return Verdict::Invalid;
    }
    let user = status.user.as_ref().and_then(|user| user.username.as_deref());
    match user {
        Some(name) if (users.accepts)(name) => Verdict::Accepted(name.into()),
        _ => {
            let user = user.unwrap_or_default();
            let user = user
                .get(..user.floor_char_boundary(LOGGED_BYTES))
                .unwrap_or_default();
            tracing::info!(
                user,
                flag = users.flag,
                "refusing a user that the flag doesn't name"
            );
            Verdict::Stranger
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const OURS: &str = "system:serviceaccount:flux-system:source-controller";

    fn verdict_of(status: &Value) -> Verdict {
        let review = serde_json::from_value(json!({"spec": {}, "status": status})).unwrap();
        let users = TokenUsers {
            audience: "weir-events".to_owned(),
            accepts: Box::new(|user| user == OURS),
            flag: "--event-senders",
        };
        verdict(&review, &users)
    }

    #[test]
    fn only_reviewed_users_are_accepted() {
        let status = |user: &str, audiences: &Value, authenticated: bool| json!({"authenticated": authenticated, "user": {"username": user}, "audiences": audiences});
        let audience = json!(["weir-events"]);
        assert_eq!(
            verdict_of(&status(OURS, &audience, true)),
            Verdict::Accepted(OURS.into())
        );
        for (user, audiences, authenticated, expected) in [
            (OURS, &audience, false, Verdict::Invalid),
            (OURS, &json!([]), true, Verdict::Invalid),
            (OURS, &json!(["https://kubernetes"]), true, Verdict::Invalid),
            (
                "system:serviceaccount:tenant:source-controller",
                &audience,
                true,
                Verdict::Stranger,
            ),
            ("", &audience, true, Verdict::Stranger),
        ] {
            assert_eq!(
                verdict_of(&status(user, audiences, authenticated)),
                expected,
                "{user} {audiences}"
            );
        }
        assert_eq!(verdict_of(&Value::Null), Verdict::Invalid);
    }

    #[test]
    fn tokens_are_bearers_of_a_bounded_length() {
        let of = |value: &str| {
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())]);
            bearer(&headers).map(str::to_owned)
        };
        assert_eq!(bearer(&HeaderMap::new()), Err(TokenRefusal::NoToken));
        assert_eq!(of("Bearer a.b.c"), Ok("a.b.c".to_owned()));
        assert_eq!(of("bearer a"), Ok("a".to_owned()));
        assert_eq!(of("Basic YTpi"), Err(TokenRefusal::NoToken));
        assert_eq!(of("Bearer "), Err(TokenRefusal::InvalidToken));
        assert_eq!(
            of(&format!("Bearer {}", "a".repeat(MAX_TOKEN + 1))),
            Err(TokenRefusal::InvalidToken)
        );
    }
}
