//! Authenticates the senders of events: each post has a token that the API server reviews.

mod allowed;

use std::{net::IpAddr, sync::Arc};

use api::Event;
use http::HeaderMap;
use runtime::{
    Context,
    tokens::{TokenRefusal, TokenReviews, TokenUsers},
};

use crate::flags::Flags;
use allowed::Allowed;
pub(crate) use allowed::Sender;

/// The reason for refusing a post before its body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    NoToken,
    InvalidToken,
    /// The token belongs to an identity that is not a sender.
    NotASender,
    /// Its token could not be reviewed now.
    NoReview,
    /// Its sender may not report objects of this API group, or in the name of this controller.
    NotItsOwn,
}

impl From<TokenRefusal> for Refused {
    fn from(refusal: TokenRefusal) -> Self {
        match refusal {
            TokenRefusal::NoToken => Self::NoToken,
            TokenRefusal::InvalidToken => Self::InvalidToken,
            TokenRefusal::Stranger => Self::NotASender,
            TokenRefusal::NoReview => Self::NoReview,
        }
    }
}

impl Refused {
    pub(crate) const ALL: [Self; 5] = [
        Self::NoToken,
        Self::InvalidToken,
        Self::NotASender,
        Self::NoReview,
        Self::NotItsOwn,
    ];

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

#[derive(Debug, Clone)]
pub(crate) struct Senders {
    reviews: TokenReviews,
    allowed: Arc<Allowed>,
}

impl Senders {
    /// Returns the check of senders, or `None` if the flags require no tokens.
    pub(crate) fn new(ctx: &Context, flags: &Flags) -> Option<Self> {
        if !flags.require_event_tokens {
            return None;
        }
        let allowed = Arc::new(Allowed::new(
            &flags.event_senders,
            &flags.common.runtime_namespace,
        ));
        let accepted = Arc::clone(&allowed);
        let users = TokenUsers {
            audience: flags.event_token_audience.clone(),
            accepts: Box::new(move |user| accepted.contains(user)),
            flag: "--event-senders",
        };
        Some(Self {
            reviews: TokenReviews::new(ctx.client().clone(), users),
            allowed,
        })
    }

    /// Returns the user name of the sender of a request with these headers from the address `peer`.
    pub(crate) async fn identify(
        &self,
        headers: &HeaderMap,
        peer: Option<IpAddr>,
    ) -> Result<Arc<str>, Refused> {
        Ok(self.reviews.identify(headers, peer).await?)
    }

    /// Checks that a sender may report an event.
    pub(crate) fn check(&self, sender: &str, event: &Event) -> Result<(), Refused> {
        if self.allowed.admits(sender, event) {
            return Ok(());
        }
        let object = &event.involved_object;
        tracing::warn!(
            sender,
            controller = excerpt(&event.reporting_controller),
            api_version = excerpt(object.api_version.as_deref().unwrap_or_default()),
            "refusing an event that --event-senders does not let its sender report"
        );
        Err(Refused::NotItsOwn)
    }
}

/// Returns the first part of a string of a stranger, for the log.
fn excerpt(text: &str) -> &str {
    text.get(..text.floor_char_boundary(300)).unwrap_or_default()
}
