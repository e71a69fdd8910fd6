//! Bearer tokens of requests, which the API server reviews.
//!
//! Verdicts are cached under a hash of the token. Requests with the same token share a review, concurrent reviews are bounded, and unknown
//! tokens are reviewed at a bounded rate for each address, so that a flood of them neither loads the API server nor stops other users. Tokens
//! that name no accepted user are refused without a review.

mod budget;
mod cache;

use std::{
    collections::HashMap,
    fmt,
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use futures::{FutureExt as _, future::Shared};
use http::{HeaderMap, header};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use kube::{Api, Client, api::PostParams};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::sync::oneshot;

use budget::ReviewBudgets;
use cache::{Cache, Key, Known};

/// Maximum size of a reviewed token, in bytes.
const MAX_TOKEN: usize = 16 * 1024;
const REVIEWS: usize = 8;
/// Concurrent reviews, above which no unknown token is reviewed.
const REVIEWS_OF_UNKNOWN: usize = 4;
/// Maximum number of concurrent reviews of unknown tokens from one address.
const REVIEWS_OF_ADDRESS: usize = 2;
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
struct Review {
    answer: Running,
    /// Address of the client, if the token is unknown.
    of_unknown: Option<Option<IpAddr>>,
}

#[derive(Debug)]
struct State {
    cache: Cache,
    budgets: ReviewBudgets,
    running: HashMap<Key, Review>,
}

impl State {
    /// Returns true if one more review may run; an unknown token pays for it from the budget of its address.
    fn may_review(&mut self, of_unknown: Option<Option<IpAddr>>, now: Instant) -> bool {
        let Some(address) = of_unknown else {
            return self.running.len() < REVIEWS;
        };
        let running = self.running.values();
        let own = running.filter(|review| review.of_unknown == of_unknown).count();
        self.running.len() < REVIEWS_OF_UNKNOWN && own < REVIEWS_OF_ADDRESS && self.budgets.pay(address, now)
    }
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
                cache: Cache::new(),
                budgets: ReviewBudgets::new(Instant::now()),
                running: HashMap::new(),
            })),
        }
    }

    /// Returns the name of the user of a request with these headers from this address ([`crate::http::peer`]). Fails if it has no token of an
    /// accepted user, or the API server doesn't review it in time.
    pub async fn identify(
        &self,
        headers: &HeaderMap,
        peer: Option<IpAddr>,
    ) -> Result<Arc<str>, TokenRefusal> {
        let token = bearer(headers)?;
        let key: Key = Sha256::digest(token.as_bytes()).into();
        let verdict = match self.known_or_running(key, token, peer)? {
            Ok(verdict) => verdict,
            Err(running) => running.await.map_err(|_| TokenRefusal::NoReview)?,
        };
        match verdict {
            Verdict::Accepted(name) => Ok(name),
            Verdict::Stranger => Err(TokenRefusal::Stranger),
            Verdict::Invalid => Err(TokenRefusal::InvalidToken),
        }
    }

    fn known_or_running(
        &self,
        key: Key,
        token: &str,
        peer: Option<IpAddr>,
    ) -> Result<Result<Verdict, Running>, TokenRefusal> {
        let now = Instant::now();
        let mut state = self.state.lock();
        if let Some(review) = state.running.get(&key) {
            return Ok(Err(review.answer.clone()));
        }
        let of_unknown = match state.cache.lookup(&key, now) {
            Known::Verdict(verdict) => return Ok(Ok(verdict)),
            Known::Accepted => None,
            Known::Nothing => Some(peer),
        };
        if of_unknown.is_some() {
            let subject = unverified_subject(token).ok_or(TokenRefusal::InvalidToken)?;
            if !(self.users.accepts)(&subject) {
                // Lines of the log have the same budget as reviews.
                if state.budgets.pay(peer, now) {
                    log_stranger(&subject, self.users.flag);
                }
                return Err(TokenRefusal::Stranger);
            }
        }
        if !state.may_review(of_unknown, now) {
            return Err(TokenRefusal::NoReview);
        }
        let (done, receiver) = oneshot::channel();
        let answer = receiver.shared();
        let review = Review {
            answer: answer.clone(),
            of_unknown,
        };
        state.running.insert(key, review);
        // A separate task: a request that breaks off takes no verdict from the others.
        tokio::spawn(self.clone().review(key, token.to_owned(), done));
        Ok(Err(answer))
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

/// Returns the user that a token of a ServiceAccount names, whoever made it; `None` if it is another token.
fn unverified_subject(token: &str) -> Option<String> {
    let mut parts = token.split('.');
    let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
    let claims = URL_SAFE_NO_PAD.decode(claims).ok()?;
    let claims: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&claims).ok()?;
    Some(claims.get("sub")?.as_str()?.to_owned())
}

fn log_stranger(user: &str, flag: &str) {
    let user = user
        .get(..user.floor_char_boundary(LOGGED_BYTES))
        .unwrap_or_default();
    tracing::info!(user, flag, "refusing a user that the flag doesn't name");
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
            log_stranger(user.unwrap_or_default(), users.flag);
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

    fn token(claims: &Value) -> String {
        format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()))
    }

    #[test]
    fn subject_of_a_token_is_read_without_a_review() {
        assert_eq!(
            unverified_subject(&token(&json!({"sub": OURS, "aud": ["a"]}))),
            Some(OURS.to_owned())
        );
        for wrong in [
            "bad-1",
            "a.b.c",
            "..",
            "e30.e30.c2ln",
            &token(&json!({"sub": 7})),
            &token(&json!([OURS])),
        ] {
            assert_eq!(unverified_subject(wrong), None, "{wrong}");
        }
    }

    fn reviews() -> TokenReviews {
        // Nobody answers there, and no test waits for an answer.
        let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let users = TokenUsers {
            audience: "weir-events".to_owned(),
            accepts: Box::new(|user| user == OURS),
            flag: "--event-senders",
        };
        TokenReviews::new(Client::try_from(config).unwrap(), users)
    }

    #[tokio::test]
    async fn tokens_that_name_no_accepted_user_cost_no_review() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let reviews = reviews();
        let peer = Some(IpAddr::from([10, 0, 0, 9]));
        let stranger = token(&json!({"sub": "system:serviceaccount:tenant:default"}));
        for number in 0..1000_u32 {
            let ask = |token: &str| reviews.known_or_running(Sha256::digest(token).into(), token, peer);
            assert_eq!(
                ask(&format!("bad-{number}")).unwrap_err(),
                TokenRefusal::InvalidToken
            );
            assert_eq!(
                ask(&format!("{stranger}{number}")).unwrap_err(),
                TokenRefusal::Stranger
            );
        }
        assert!(reviews.state.lock().running.is_empty());
    }

    #[tokio::test]
    async fn flood_of_forged_tokens_leaves_a_review_to_another_address() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let reviews = reviews();
        let forged = token(&json!({"sub": OURS}));
        let started = |last: u8, number: u32| {
            let token = format!("{forged}{number}");
            let peer = Some(IpAddr::from([10, 0, 0, last]));
            let asked = reviews.known_or_running(Sha256::digest(&token).into(), &token, peer);
            asked.is_ok()
        };
        let flood = (0..1000).filter(|number| started(9, *number)).count();
        assert_eq!(flood, REVIEWS_OF_ADDRESS, "concurrent ones");
        assert!(started(1, 1001), "the token of another sender");
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
