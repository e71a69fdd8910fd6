//! The interface between deliveries and the types of providers.

use std::{collections::BTreeMap, fmt};

use api::{Event, Secret};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use notification_specs::provider::TypeRules;
use url::Url;

use super::nats::publish::Publish;
use crate::error::Error;

/// The settings of a provider, its Secret and the alert, as payloads use them.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The address, a URL for most types. Many systems need no other credentials.
    pub address: Option<Secret<String>>,
    pub channel: String,
    /// User name for the login, and as sender of messages.
    pub username: Option<String>,
    pub password: Option<Secret<String>>,
    /// Bearer token or signing key.
    pub token: Option<Secret<String>>,
    /// Access token of a cloud identity, which replaces the token.
    pub identity: Option<Secret<String>>,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Further keys of the Secret, out of [`KEYS`].
    pub keys: BTreeMap<&'static str, Secret<String>>,
    pub uid: String,
    pub alert: AlertName,
    /// Name of the status of the event's commit, if the user sets one.
    pub status_id: Option<String>,
    pub proxied: bool,
}

/// Keys of the Secret that only some types read.
pub const KEYS: [&str; 7] = [
    "creds",
    "nkey",
    "githubAppID",
    "githubAppInstallationID",
    "githubAppInstallationOwner",
    "githubAppPrivateKey",
    "githubAppBaseURL",
];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AlertName {
    pub namespace: String,
    pub name: String,
    pub uid: String,
}

#[derive(Debug, Clone)]
pub struct Request {
    /// The method, mostly POST.
    pub method: Method,
    pub address: Secret<Url>,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// The check that a successful response must pass.
    pub check: Check,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Any 2xx status is a success.
    Status,
    /// A 2xx status is a success if the body is `{"ok": true}`.
    Ok,
    /// A 2xx status is a success; 404 is one with an empty body.
    Found,
}

/// Returns the steps that follow from the body of a response.
pub type Next = Box<dyn FnOnce(&[u8]) -> Result<Vec<Step>, Error> + Send>;

pub enum Step {
    /// Sends a request; only the success of its response counts.
    Send(Request),
    /// Sends a request, and continues with the steps that follow from its response.
    Ask(Request, Next),
    /// Publishes a message to a NATS server.
    Publish(Publish),
}

impl Step {
    #[must_use]
    pub fn request(&self) -> Option<&Request> {
        match self {
            Self::Send(request) | Self::Ask(request, _) => Some(request),
            Self::Publish(_) => None,
        }
    }

    #[must_use]
    pub fn addresses(&self) -> &[Secret<Url>] {
        match self {
            Self::Send(request) | Self::Ask(request, _) => std::slice::from_ref(&request.address),
            Self::Publish(publish) => &publish.servers,
        }
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send(request) => f.debug_tuple("Send").field(request).finish(),
            Self::Ask(request, _) => f.debug_tuple("Ask").field(request).finish(),
            Self::Publish(publish) => f.debug_tuple("Publish").field(publish).finish(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct ProviderType {
    pub rules: TypeRules,
    /// Makes the steps of a delivery; none if the type ignores the event. Pure.
    pub steps: fn(&Event, &Config) -> Result<Vec<Step>, Error>,
}
