//! The senders of events: each post has a token that the API server reviews.
//!
//! Verdicts are remembered under a hash of the token. Posts with the same token share a review, reviews at once are bounded, and
//! unknown tokens are reviewed at a bounded rate, so that a flood of them neither loads the API server nor stops known senders.

mod allowed;
mod cache;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use api::Event;
use futures::{FutureExt as _, future::Shared};
use http::{HeaderMap, header};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use kube::{Api, Client, api::PostParams};
use runtime::Context;
use sha2::{Digest as _, Sha256};
use tokio::sync::oneshot;

use crate::Flags;
use allowed::Allowed;
pub(crate) use allowed::Sender;
use cache::{Cache, Key, Known};

/// Longest token that is reviewed, in bytes.
const MAX_TOKEN: usize = 16 * 1024;
/// Reviews that run at once.
const REVIEWS: usize = 8;
/// Reviews that run at once, above which no unknown token is reviewed.
const REVIEWS_OF_UNKNOWN: usize = 4;
/// The timeout of a review: senders wait 5 seconds for an answer.
const REVIEW_TIME: Duration = Duration::from_secs(4);

/// The outcome of the review of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The token of a sender, with its user name.
    Sender(Arc<str>),
    /// The token of an identity that is not among the senders.
    Stranger,
    /// Not a token of this cluster for this audience, or no longer one.
    Invalid,
}

/// The reason why a post is refused before its body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It has no token.
    NoToken,
    /// Its token is invalid.
    InvalidToken,
    /// Its token belongs to an identity that is not among the senders.
    NotASender,
    /// Its token could not be reviewed now.
    NoReview,
    /// Its sender may not report objects of this API group, or in the name of this controller.
    NotItsOwn,
}

impl Refused {
    /// All reasons, for the metric.
    pub(crate) const ALL: [Self; 5] = [
        Self::NoToken,
        Self::InvalidToken,
        Self::NotASender,
        Self::NoReview,
        Self::NotItsOwn,
    ];

    /// Returns the label of the metric.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::NoToken => "no-token",
            Self::InvalidToken => "invalid-token",
            Self::NotASender => "not-a-sender",
            Self::NoReview => "no-review",
            Self::NotItsOwn => "not-its-own",
        }
    }
}

type Running = Shared<oneshot::Receiver<Verdict>>;

#[derive(Debug)]
struct State {
    cache: Cache,
    running: HashMap<Key, Running>,
}

/// Tells senders from strangers.
#[derive(Clone)]
pub(crate) struct Senders {
    client: Client,
    audience: Arc<str>,
    allowed: Arc<Allowed>,
    state: Arc<Mutex<State>>,
}

impl Senders {
    /// Returns the check of senders, or `None` if the flags want no tokens.
    pub(crate) fn new(ctx: &Context, flags: &Flags) -> Option<Self> {
        flags.require_event_tokens.then(|| Self {
            client: ctx.client().clone(),
            audience: flags.event_token_audience.as_str().into(),
            allowed: Arc::new(Allowed::new(
                &flags.event_senders,
                &flags.common.runtime_namespace,
            )),
            state: Arc::new(Mutex::new(State {
                cache: Cache::new(Instant::now()),
                running: HashMap::new(),
            })),
        })
    }

    /// Returns the user name of the sender of a request with these headers.
    pub(crate) async fn identify(&self, headers: &HeaderMap) -> Result<Arc<str>, Refused> {
        let token = bearer(headers)?;
        let key: Key = Sha256::digest(token.as_bytes()).into();
        let verdict = match self.known_or_running(key, token)? {
            Ok(verdict) => verdict,
            Err(running) => running.await.map_err(|_| Refused::NoReview)?,
        };
        match verdict {
            Verdict::Sender(name) => Ok(name),
            Verdict::Stranger => Err(Refused::NotASender),
            Verdict::Invalid => Err(Refused::InvalidToken),
        }
    }

    /// Checks that a sender may report an event.
    pub(crate) fn check(&self, sender: &str, event: &Event) -> Result<(), Refused> {
        if self.allowed.admits(sender, event) {
            return Ok(());
        }
        let object = &event.involved_object;
        tracing::warn!(
            sender,
            controller = shown(&event.reporting_controller),
            api_version = shown(object.api_version.as_deref().unwrap_or_default()),
            "refusing an event that --event-senders does not let its sender report"
        );
        Err(Refused::NotItsOwn)
    }

    /// Returns the verdict on a token, or the review that will have it.
    fn known_or_running(&self, key: Key, token: &str) -> Result<Result<Verdict, Running>, Refused> {
        let now = Instant::now();
        let mut state = self.state();
        if let Some(running) = state.running.get(&key) {
            return Ok(Err(running.clone()));
        }
        let (most, pays) = match state.cache.look_up(&key, now) {
            Known::Verdict(verdict) => return Ok(Ok(verdict)),
            Known::Accepted => (REVIEWS, false),
            Known::Nothing => (REVIEWS_OF_UNKNOWN, true),
        };
        if state.running.len() >= most || pays && !state.cache.pay(now) {
            return Err(Refused::NoReview);
        }
        let (done, receiver) = oneshot::channel();
        let running = receiver.shared();
        state.running.insert(key, running.clone());
        // A task of its own: a request that breaks off takes no verdict from the others.
        tokio::spawn(self.clone().review(key, token.to_owned(), done));
        Ok(Err(running))
    }

    async fn review(self, key: Key, token: String, done: oneshot::Sender<Verdict>) {
        let reviewed = tokio::time::timeout(REVIEW_TIME, self.ask(token)).await;
        let mut state = self.state();
        state.running.remove(&key);
        let verdict = match reviewed {
            Ok(Ok(review)) => verdict(&review, &self.audience, &self.allowed),
            Ok(Err(error)) => {
                let error = runtime::client::describe(&error);
                return tracing::error!(error, "cannot review the token of an event");
            }
            Err(_) => {
                return tracing::error!("cannot review the token of an event: the API server was too slow");
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
                audiences: Some(vec![self.audience.to_string()]),
                token: Some(token),
            },
            ..TokenReview::default()
        };
        let api = Api::<TokenReview>::all(self.client.clone());
        api.create(&PostParams::default(), &review).await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the beginning of a string from outside, for the log.
fn shown(text: &str) -> &str {
    text.get(..text.floor_char_boundary(300)).unwrap_or_default()
}

/// Returns the token of a request.
fn bearer(headers: &HeaderMap) -> Result<&str, Refused> {
    let value = headers.get(header::AUTHORIZATION).ok_or(Refused::NoToken)?;
    let value = value.to_str().map_err(|_| Refused::InvalidToken)?;
    let (scheme, token) = value.split_once(' ').ok_or(Refused::NoToken)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Refused::NoToken);
    }
    let token = token.trim();
    if token.is_empty() || token.len() > MAX_TOKEN {
        return Err(Refused::InvalidToken);
    }
    Ok(token)
}

/// Decides on an answered review. An API server that knows no audiences returns none, and its token is refused.
fn verdict(review: &TokenReview, audience: &str, allowed: &Allowed) -> Verdict {
    let Some(status) = &review.status else {
        return Verdict::Invalid;
    };
    let audiences = status.audiences.as_deref().unwrap_or_default();
    if status.authenticated != Some(true) || !audiences.iter().any(|each| each == audience) {
        return Verdict::Invalid;
    }
    let user = status.user.as_ref().and_then(|user| user.username.as_deref());
    match user {
        Some(name) if allowed.contains(name) => Verdict::Sender(name.into()),
        _ => {
            tracing::info!(
                user = shown(user.unwrap_or_default()),
                "refusing events of a user that is not in --event-senders"
            );
            Verdict::Stranger
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn verdict_of(status: &Value) -> Verdict {
        let review = serde_json::from_value(json!({"spec": {}, "status": status})).unwrap();
        verdict(&review, "weir-events", &Allowed::new(&[], "flux-system"))
    }

    #[test]
    fn only_reviewed_senders_are_accepted() {
        let ours = "system:serviceaccount:flux-system:source-controller";
        let status = |user: &str, audiences: &Value, authenticated: bool| json!({"authenticated": authenticated, "user": {"username": user}, "audiences": audiences});
        let audience = json!(["weir-events"]);
        assert_eq!(
            verdict_of(&status(ours, &audience, true)),
            Verdict::Sender(ours.into())
        );
        for (user, audiences, authenticated, expected) in [
            (ours, &audience, false, Verdict::Invalid),
            (ours, &json!([]), true, Verdict::Invalid),
            (ours, &json!(["https://kubernetes"]), true, Verdict::Invalid),
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
        assert_eq!(bearer(&HeaderMap::new()), Err(Refused::NoToken));
        assert_eq!(of("Bearer a.b.c"), Ok("a.b.c".to_owned()));
        assert_eq!(of("bearer a"), Ok("a".to_owned()));
        assert_eq!(of("Basic YTpi"), Err(Refused::NoToken));
        assert_eq!(of("Bearer "), Err(Refused::InvalidToken));
        assert_eq!(
            of(&format!("Bearer {}", "a".repeat(MAX_TOKEN + 1))),
            Err(Refused::InvalidToken)
        );
    }
}
