//! The types of providers, one module each. A provider is one pure function from an event to a request.

mod generic;
mod generic_hmac;
mod slack;

use api::{Event, Fault, Secret, notification::ProviderSpec};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use url::Url;

use crate::Error;

/// Everything that a payload may use of a provider and its Secret.
#[derive(Debug, Clone)]
pub struct Config {
    /// The URL to post to. For many systems, knowing it is the permission.
    pub address: Secret<Url>,
    /// Channel, where the system has such.
    pub channel: String,
    /// Name under which messages appear.
    pub username: Option<String>,
    /// Bearer token, or the key to sign with.
    pub token: Option<Secret<String>>,
    /// Headers that the user adds.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

/// The HTTP request that a delivery posts.
#[derive(Debug, Clone)]
pub struct Request {
    /// The URL to post to.
    pub address: Secret<Url>,
    /// The headers of the request.
    pub headers: HeaderMap,
    /// The body of the request.
    pub body: Bytes,
    /// The check that the answer must pass.
    pub check: Check,
}

/// The check that decides if an answer is a success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Any 2xx status is a success.
    Status,
    /// A 2xx status is a success if the body says so: `{"ok": true}`.
    Ok,
}

/// A type of provider.
#[derive(Debug, Clone, Copy)]
pub struct ProviderType {
    /// Its name in `spec.type`.
    pub name: &'static str,
    /// Makes the request. Pure.
    pub payload: fn(&Event, &Config) -> Result<Request, Error>,
    /// Checks that the configuration has all that the payload needs, before there is an event. Pure.
    pub check: fn(&Config) -> Result<(), Error>,
    /// True if it receives events that only repeat a status without a change.
    pub wants_updates: bool,
}

/// Every type that is implemented.
pub const ALL: &[ProviderType] = &[
    ProviderType {
        name: "generic",
        payload: generic::payload,
        check: |_| Ok(()),
        wants_updates: true,
    },
    ProviderType {
        name: "generic-hmac",
        payload: generic_hmac::payload,
        check: |config| generic_hmac::key(config).map(|_| ()),
        wants_updates: true,
    },
    ProviderType {
        name: "slack",
        payload: slack::payload,
        check: |config| slack::bearer(config).map(|_| ()),
        wants_updates: false,
    },
];

/// Finds a type by its name in `spec.type`.
///
/// # Errors
/// Fails when the type is not implemented.
pub fn find(name: &str) -> Result<ProviderType, Error> {
    ALL.iter()
        .find(|kind| kind.name == name)
        .copied()
        .ok_or_else(|| Error::UnsupportedType(name.to_owned()))
}

/// The first field that is set and not obeyed.
#[must_use]
pub fn unsupported(spec: &ProviderSpec) -> Option<Fault> {
    if find(&spec.type_).is_err() {
        return Some(Fault::stall(
            api::Reason::UnsupportedField,
            format!(
                "spec.type: {} is not supported yet: use one of {}",
                spec.type_,
                names()
            ),
        ));
    }
    let set = [
        ("spec.proxy", spec.proxy.is_some().then(String::new)),
        (
            "spec.proxySecretRef",
            spec.proxy_secret_ref.as_ref().map(|secret| secret.name.clone()),
        ),
        ("spec.serviceAccountName", spec.service_account_name.clone()),
        ("spec.commitStatusExpr", spec.commit_status_expr.clone()),
    ];
    let (path, value) = set.into_iter().find_map(|(path, value)| Some((path, value?)))?;
    // The address of a proxy can hold a password.
    let value = if value.is_empty() {
        "it".to_owned()
    } else {
        format!("'{value}'")
    };
    Some(Fault::unsupported(path, &value))
}

fn names() -> String {
    ALL.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ")
}

/// The headers of a JSON body, with those of the user over them.
fn json_headers(config: &Config) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in &config.headers {
        headers.insert(name.clone(), value.clone());
    }
    headers
}

/// The name of the object in messages.
fn title(event: &Event) -> String {
    let object = &event.involved_object;
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    format!(
        "{}/{}.{}",
        text(&object.kind).to_lowercase(),
        text(&object.name),
        text(&object.namespace)
    )
}

#[cfg(test)]
pub(crate) mod fixture {
    use serde_json::json;

    use super::*;

    pub(crate) fn config() -> Config {
        Config {
            address: Secret::new(Url::parse("https://example.com/hook/s3cret").unwrap()),
            channel: String::new(),
            username: None,
            token: None,
            headers: Vec::new(),
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

    /// Fields that the controller obeys; `channel` and `username` where the system has such, `interval` by looking at
    /// each change at once.
    const OBEYED: &[&str] = &[
        "type",
        "address",
        "channel",
        "username",
        "interval",
        "timeout",
        "secretRef",
        "certSecretRef",
        "suspend",
    ];

    fn sample(field: &str, schema: &Value) -> Value {
        match schema["type"].as_str() {
            Some("object") => json!({"name": "x"}),
            Some("boolean") => json!(true),
            _ if field == "proxy" => json!("https://proxy.example"),
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
                spec[field] = sample(field, schema);
                let spec: ProviderSpec = serde_json::from_value(spec).unwrap();
                let fault = unsupported(&spec)
                    .unwrap_or_else(|| panic!("spec.{field} is neither obeyed nor refused"));
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
            let refused = unsupported(&spec).is_some_and(|fault| fault.message.starts_with("spec.type: "));
            assert_eq!(refused, find(name).is_err(), "{name}");
        }
    }

    #[test]
    fn provider_check_reports_missing_fields_before_the_first_event() {
        let token = |token: &str| Some(Secret::new(token.to_owned()));
        for (name, token, expected) in [
            ("generic", None, Ok(())),
            ("generic-hmac", None, Err(Error::NoToken)),
            ("generic-hmac", token(""), Err(Error::NoToken)),
            ("generic-hmac", token("k"), Ok(())),
            ("slack", None, Ok(())),
            ("slack", token("xoxb-1"), Ok(())),
            ("slack", token("xoxb\n1"), Err(Error::BadToken)),
        ] {
            let config = Config {
                token,
                ..fixture::config()
            };
            let kind = find(name).unwrap();
            assert_eq!((kind.check)(&config), expected, "{name}");
            let sent = (kind.payload)(&fixture::event(), &config).map(|_| ());
            assert_eq!(sent, expected, "{name}: the check says what the payload says");
        }
    }

    #[test]
    fn a_refusal_shows_no_proxy_password() {
        let spec: ProviderSpec =
            serde_json::from_value(json!({"type": "slack", "proxy": "http://u:s3cret@proxy"})).unwrap();
        assert!(!unsupported(&spec).unwrap().message.contains("s3cret"));
    }

    #[test]
    fn nothing_of_a_request_can_be_printed_that_is_secret() {
        let mut config = fixture::config();
        config.token = Some(Secret::new("t0ken".into()));
        let request = slack::payload(&fixture::event(), &config).unwrap();
        let text = format!("{config:?} {request:?}");
        assert!(!text.contains("s3cret") && !text.contains("t0ken"), "{text}");
    }
}
