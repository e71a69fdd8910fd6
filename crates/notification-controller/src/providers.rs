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

use api::{Event, Fault, Secret, notification::ProviderSpec};
use url::Url;

use crate::error::Error;
use interface::{Audience, Config, ProviderType, Step};

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
        .find(|kind| kind.name == name)
        .copied()
        .ok_or_else(|| Error::UnsupportedType(name.to_owned()))
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

/// Returns the fault of the first field that is unsupported or invalid. It compiles the expression of the spec: not on an async thread.
#[must_use]
pub fn refused(spec: &ProviderSpec) -> Option<Fault> {
    unsupported(spec).or_else(|| status_id::invalid(spec))
}

/// Returns the fault of the first field that is unsupported or invalid, apart from its expression.
pub(crate) fn unsupported(spec: &ProviderSpec) -> Option<Fault> {
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
    status_id::unsupported(spec, kind.takes)
}

fn names() -> String {
    ALL.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ")
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
