//! The types of providers, one module each. A provider is a pure function from an event to the requests of its delivery.
//!
//! A new type is a module with a `TYPE`, its line in [`ALL`], and its rules in `notification_specs::provider`.

mod alertmanager;
mod azuredevops;
mod azureeventhub;
mod bitbucket;
mod bitbucketserver;
mod comments;
mod datadog;
mod discord;
#[cfg(test)]
pub(crate) mod fixture;
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
pub mod interface;
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

use api::{Event, Secret};
use url::Url;

use crate::error::Error;
use interface::{Config, ProviderType, Step};

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

/// Fails when the type is not implemented.
pub fn find(name: &str) -> Result<ProviderType, Error> {
    ALL.iter()
        .find(|kind| kind.rules.name == name)
        .copied()
        .ok_or_else(|| Error::UnsupportedType(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_with_rules_is_implemented() {
        let implemented: Vec<_> = ALL.iter().map(|kind| kind.rules).collect();
        assert_eq!(implemented, notification_specs::provider::TYPES);
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
            assert!(check(kind, &nothing).is_err(), "{}", kind.rules.name);
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
