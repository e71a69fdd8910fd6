//! The types of providers, one module each. A provider is a pure function from an event to the requests of its delivery.
//!
//! A new type is a module with a `TYPE`, and its line in [`ALL`].

mod alertmanager;
mod azuredevops;
mod azureeventhub;
mod bitbucket;
mod bitbucketserver;
mod comments;
mod datadog;
mod discord;
mod generic;
mod generic_hmac;
mod git;
mod gitea;
mod github;
mod githubdispatch;
mod gitlab;
mod googlechat;
mod googlepubsub;
mod grafana;
mod incidentio;
mod lark;
mod matrix;
mod msteams;
pub mod nats;
mod opsgenie;
mod otel;
mod pagerduty;
mod rocket;
mod sentry;
mod slack;
pub(crate) mod status_id;
mod telegram;
mod webex;
mod wire;
mod zoom;
mod zulip;

use std::{collections::BTreeMap, fmt};

use api::{Event, Fault, Secret, notification::ProviderSpec};
use bytes::Bytes;
use cloud::Cloud;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use url::Url;

use crate::Error;

/// The settings of a provider, its Secret and the alert, as payloads use them.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The address, a URL for most types. Many systems need no other credentials.
    pub address: Option<Secret<String>>,
    /// Channel, where the system has channels.
    pub channel: String,
    /// User name for the login, and as sender of messages.
    pub username: Option<String>,
    pub password: Option<Secret<String>>,
    /// Bearer token or signing key.
    pub token: Option<Secret<String>>,
    /// Access token of a cloud identity, which replaces the token.
    pub identity: Option<Secret<String>>,
    /// Headers of the user.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Further keys of the Secret, out of [`KEYS`].
    pub keys: BTreeMap<&'static str, Secret<String>>,
    pub uid: String,
    /// The Alert that selected the event.
    pub alert: AlertName,
    /// Name of the status of the event's commit, if the user sets one.
    pub status_id: Option<String>,
    /// The user configured a proxy.
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

/// An HTTP request of a delivery.
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

/// Decides if a response is a success.
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

/// One step of a delivery.
pub enum Step {
    /// Sends a request; only the success of its response counts.
    Send(Request),
    /// Sends a request, and continues with the steps that follow from its response.
    Ask(Request, Next),
    /// Publishes a message to a NATS server.
    Publish(nats::Publish),
}

impl Step {
    /// Returns the HTTP request of the step, if it has one.
    #[must_use]
    pub fn request(&self) -> Option<&Request> {
        match self {
            Self::Send(request) | Self::Ask(request, _) => Some(request),
            Self::Publish(_) => None,
        }
    }

    /// Returns the addresses that the step connects to.
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

/// The events that a type of provider sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// All, including those that only repeat a status without a change.
    All,
    /// All except those that only repeat a status.
    News,
    /// Events about commits: errors, repeated statuses, and events that name a commit.
    Commits,
    /// Events that name a change request.
    ChangeRequests,
}

#[derive(Debug, Clone, Copy)]
pub struct ProviderType {
    /// Its value of `spec.type`.
    pub name: &'static str,
    /// Makes the steps of a delivery; none if the type ignores the event. Pure.
    pub steps: fn(&Event, &Config) -> Result<Vec<Step>, Error>,
    pub takes: Takes,
}

/// All implemented types.
pub const ALL: &[ProviderType] = &[
    alertmanager::TYPE,
    azuredevops::TYPE,
    azureeventhub::TYPE,
    bitbucket::TYPE,
    bitbucketserver::TYPE,
    datadog::TYPE,
    discord::TYPE,
    generic::TYPE,
    generic_hmac::TYPE,
    gitea::TYPE,
    comments::GITEA,
    github::TYPE,
    githubdispatch::TYPE,
    comments::GITHUB,
    gitlab::TYPE,
    comments::GITLAB,
    googlechat::TYPE,
    googlepubsub::TYPE,
    grafana::TYPE,
    incidentio::TYPE,
    lark::TYPE,
    matrix::TYPE,
    msteams::TYPE,
    nats::TYPE,
    opsgenie::TYPE,
    otel::TYPE,
    pagerduty::TYPE,
    rocket::TYPE,
    sentry::TYPE,
    slack::TYPE,
    telegram::TYPE,
    webex::TYPE,
    zoom::TYPE,
    zulip::TYPE,
];

/// Checks a configuration without an event, and returns the addresses of the first requests.
/// Fails when a setting that the type needs is missing or invalid.
pub fn check(kind: &ProviderType, config: &Config) -> Result<Vec<Secret<Url>>, Error> {
    let steps = (kind.steps)(&sample(), config)?;
    Ok(steps.iter().flat_map(Step::addresses).cloned().collect())
}

/// Returns an event that every type sends.
fn sample() -> Event {
    let text = |text: &str| Some(text.to_owned());
    let metadata = [
        ("revision", "main@sha1:0123456789012345678901234567890123456789"),
        ("change_request", "1"),
    ];
    Event {
        involved_object: k8s_openapi::api::core::v1::ObjectReference {
            api_version: text("v1"),
            kind: text("Sample"),
            namespace: text("sample"),
            name: text("sample"),
            uid: text("sample"),
            ..Default::default()
        },
        severity: api::Severity::Error,
        reason: "Sample".to_owned(),
        metadata: metadata
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        ..Event::default()
    }
}

/// Finds a type by its name in `spec.type`.
/// Fails when the type is not implemented.
pub fn find(name: &str) -> Result<ProviderType, Error> {
    ALL.iter()
        .find(|kind| kind.name == name)
        .copied()
        .ok_or_else(|| Error::UnsupportedType(name.to_owned()))
}

/// The tokens of a cloud's identities that a type can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Audience {
    pub cloud: Cloud,
    pub scope: &'static str,
}

/// Returns the tokens of identities that a type uses if its Secret has no credentials.
#[must_use]
pub fn audience(kind: &str) -> Option<Audience> {
    let all = [
        (azuredevops::TYPE, azuredevops::AUDIENCE),
        (azureeventhub::TYPE, azureeventhub::AUDIENCE),
        (googlepubsub::TYPE, googlepubsub::AUDIENCE),
    ];
    let found = all.into_iter().find(|(known, _)| known.name == kind);
    found.map(|(_, audience)| audience)
}

/// Returns the fault of the first field that is unsupported or invalid.
#[must_use]
pub fn refused(spec: &ProviderSpec) -> Option<Fault> {
    let Ok(kind) = find(&spec.type_) else {
        return Some(Fault::stall(
            api::Reason::UnsupportedField,
            format!(
                "spec.type: {} is not supported yet: use one of {}",
                spec.type_,
                names()
            ),
        ));
    };
    if spec.service_account_name.is_some() && audience(kind.name).is_none() {
        let message = format!(
            "spec.serviceAccountName: the type {} uses no identity of a cloud: remove the field",
            kind.name
        );
        return Some(Fault::stall(api::Reason::UnsupportedField, message));
    }
    status_id::refused(spec, kind.takes)
}

fn names() -> String {
    ALL.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
pub(crate) mod fixture {
    use serde_json::json;

    use super::*;

    pub(crate) fn config() -> Config {
        Config {
            address: Some(Secret::new("https://example.com/hook/s3cret".into())),
            uid: "0c9c2e41-d2f9-4f9b-9e9a-1b3f0d5b6f00".into(),
            ..Config::default()
        }
    }

    /// Returns the only request of a type for an event.
    pub(crate) fn only(kind: ProviderType, event: &Event, config: &Config) -> Request {
        let steps = (kind.steps)(event, config).unwrap();
        assert_eq!(steps.len(), 1);
        steps[0].request().unwrap().clone()
    }

    /// Returns the only body of a type for an event, as JSON.
    pub(crate) fn body(kind: ProviderType, event: &Event, config: &Config) -> serde_json::Value {
        serde_json::from_slice(&only(kind, event, config).body).unwrap()
    }

    /// Returns a configuration with this address, channel and token; empty ones are left out.
    pub(crate) fn with(address: &str, channel: &str, token: &str) -> Config {
        let secret = |text: &str| (!text.is_empty()).then(|| Secret::new(text.to_owned()));
        Config {
            address: secret(address),
            channel: channel.into(),
            token: secret(token),
            ..config()
        }
    }

    /// Returns the event as a failure.
    pub(crate) fn failure() -> Event {
        Event {
            severity: api::Severity::Error,
            reason: "BuildFailed".into(),
            ..event()
        }
    }

    pub(crate) fn event() -> Event {
        serde_json::from_value(json!({
            "involvedObject": {
                "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "name": "shop", "namespace": "team",
                "uid": "u", "resourceVersion": "7",
            },
            "severity": "info",
            "timestamp": "2026-11-21T10:00:00Z",
            "message": "stored artifact\nfor commit 'a <b> & c'",
            "reason": "NewArtifact",
            "metadata": {"revision": "main@sha1:1", "summary": "shop of the team"},
            "reportingController": "source-controller",
            "reportingInstance": "source-controller-0",
        }))
        .unwrap()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;

    /// Fields that the controller obeys; `channel` and `username` where the system has them, `interval` by examining
    /// each change at once; `commitStatusExpr` by the types that set commit statuses.
    const OBEYED: &[&str] = &[
        "commitStatusExpr",
        "type",
        "address",
        "channel",
        "username",
        "interval",
        "timeout",
        "secretRef",
        "certSecretRef",
        "proxy",
        "proxySecretRef",
        "suspend",
    ];

    fn sample(schema: &Value) -> Value {
        match schema["type"].as_str() {
            Some("object") => json!({"name": "x"}),
            Some("boolean") => json!(true),
            _ => json!("x"),
        }
    }

    #[test]
    fn each_field_of_the_schema_is_obeyed_or_refused() {
        let crd = serde_json::to_value(api::crd::provider()).unwrap();
        for version in crd["spec"]["versions"].as_array().unwrap() {
            let fields = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
                .as_object()
                .unwrap();
            for (field, schema) in fields {
                if OBEYED.contains(&field.as_str()) {
                    continue;
                }
                let mut spec = json!({"type": "generic", "address": "https://example.com"});
                spec[field] = sample(schema);
                let spec: ProviderSpec = serde_json::from_value(spec).unwrap();
                let fault =
                    refused(&spec).unwrap_or_else(|| panic!("spec.{field} is neither obeyed nor refused"));
                assert!(
                    fault.message.starts_with(&format!("spec.{field}: ")),
                    "{}",
                    fault.message
                );
            }
            let known: BTreeSet<_> = fields.keys().map(String::as_str).collect();
            for field in OBEYED {
                assert!(
                    known.contains(field),
                    "spec.{field} is not in the schema any more"
                );
            }
        }
    }

    #[test]
    fn each_type_of_the_schema_is_implemented_or_refused() {
        let crd = serde_json::to_value(api::crd::provider()).unwrap();
        let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let types: Vec<_> = spec["properties"]["type"]["enum"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        assert!(ALL.iter().all(|kind| types.contains(&kind.name)));
        for name in types {
            let spec = ProviderSpec {
                type_: name.to_owned(),
                ..ProviderSpec::default()
            };
            let refused = refused(&spec).is_some_and(|fault| fault.message.starts_with("spec.type: "));
            assert_eq!(refused, find(name).is_err(), "{name}");
        }
    }

    #[test]
    fn provider_check_reports_missing_fields_before_the_first_event() {
        let no_token = || Error::Config("no token: set the key token in the Secret of spec.secretRef");
        let no_channel = || Error::Config("no channel: set spec.channel");
        for (name, channel, token, expected) in [
            ("generic", "", "", Ok(1)),
            ("generic-hmac", "", "", Err(Error::NoToken)),
            ("generic-hmac", "", "k", Ok(1)),
            ("slack", "", "", Ok(1)),
            ("slack", "", "xoxb-1", Ok(1)),
            ("slack", "", "xoxb\n1", Err(Error::BadToken)),
            ("telegram", "c", "", Err(no_token())),
            ("telegram", "", "t", Err(no_channel())),
            ("pagerduty", "", "", Err(no_channel())),
            ("pagerduty", "key", "", Ok(1)),
            ("datadog", "", "", Err(no_token())),
            ("matrix", "", "t", Err(no_channel())),
        ] {
            let config = fixture::with("https://example.com/hook/s3cret", channel, token);
            let kind = find(name).unwrap();
            let checked = check(&kind, &config).map(|addresses| addresses.len());
            assert_eq!(checked, expected, "{name}");
        }
    }

    #[test]
    fn each_type_reports_a_missing_address_or_token() {
        for kind in ALL {
            let nothing = Config::default();
            assert!(check(kind, &nothing).is_err(), "{}", kind.name);
        }
    }

    #[test]
    fn nothing_of_a_request_can_be_printed_that_is_secret() {
        let mut config = fixture::config();
        config.token = Some(Secret::new("t0ken".into()));
        let steps = (slack::TYPE.steps)(&fixture::event(), &config).unwrap();
        let text = format!("{config:?} {steps:?}");
        assert!(!text.contains("s3cret") && !text.contains("t0ken"), "{text}");
    }
}
