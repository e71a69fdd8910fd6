//! The types of Providers, and the rules of a Provider that depend on its type.

use api::{Fault, Reason, notification::ProviderSpec};
use cel::{Program, Scope};
use cloud::{Cloud, azure, gcp};

/// The scope of `spec.commitStatusExpr`.
pub const EXPRESSION_SCOPE: Scope<'_> = Scope::Declared(&ProviderSpec::EXPRESSION_VARIABLES);
const EXPRESSION: &str = "spec.commitStatusExpr";

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

/// The tokens of a cloud's identities that a type can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Audience {
    pub cloud: Cloud,
    pub scope: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeRules {
    /// The value of `spec.type`.
    pub name: &'static str,
    pub takes: Takes,
    /// The tokens of identities that the type uses if its Secret has no credentials.
    pub audience: Option<Audience>,
}

impl TypeRules {
    const fn new(name: &'static str, takes: Takes) -> Self {
        Self {
            name,
            takes,
            audience: None,
        }
    }

    const fn with_identity(mut self, cloud: Cloud, scope: &'static str) -> Self {
        self.audience = Some(Audience { cloud, scope });
        self
    }
}

pub const ALERTMANAGER: TypeRules = TypeRules::new("alertmanager", Takes::News);
pub const AZUREDEVOPS: TypeRules =
    TypeRules::new("azuredevops", Takes::Commits).with_identity(Cloud::Azure, azure::DEVOPS_SCOPE);
pub const AZUREEVENTHUB: TypeRules =
    TypeRules::new("azureeventhub", Takes::News).with_identity(Cloud::Azure, azure::EVENT_HUBS_SCOPE);
pub const BITBUCKET: TypeRules = TypeRules::new("bitbucket", Takes::Commits);
pub const BITBUCKETSERVER: TypeRules = TypeRules::new("bitbucketserver", Takes::Commits);
pub const DATADOG: TypeRules = TypeRules::new("datadog", Takes::News);
pub const DISCORD: TypeRules = TypeRules::new("discord", Takes::News);
pub const GENERIC: TypeRules = TypeRules::new("generic", Takes::All);
pub const GENERIC_HMAC: TypeRules = TypeRules::new("generic-hmac", Takes::All);
pub const GITEA: TypeRules = TypeRules::new("gitea", Takes::Commits);
pub const GITEA_COMMENT: TypeRules = TypeRules::new("giteapullrequestcomment", Takes::ChangeRequests);
pub const GITHUB: TypeRules = TypeRules::new("github", Takes::Commits);
pub const GITHUBDISPATCH: TypeRules = TypeRules::new("githubdispatch", Takes::News);
pub const GITHUB_COMMENT: TypeRules = TypeRules::new("githubpullrequestcomment", Takes::ChangeRequests);
pub const GITLAB: TypeRules = TypeRules::new("gitlab", Takes::Commits);
pub const GITLAB_COMMENT: TypeRules = TypeRules::new("gitlabmergerequestcomment", Takes::ChangeRequests);
pub const GOOGLECHAT: TypeRules = TypeRules::new("googlechat", Takes::News);
pub const GOOGLEPUBSUB: TypeRules =
    TypeRules::new("googlepubsub", Takes::News).with_identity(Cloud::Gcp, gcp::PUBSUB_SCOPE);
pub const GRAFANA: TypeRules = TypeRules::new("grafana", Takes::News);
pub const INCIDENTIO: TypeRules = TypeRules::new("incident.io", Takes::News);
pub const LARK: TypeRules = TypeRules::new("lark", Takes::News);
pub const MATRIX: TypeRules = TypeRules::new("matrix", Takes::News);
pub const MSTEAMS: TypeRules = TypeRules::new("msteams", Takes::News);
pub const NATS: TypeRules = TypeRules::new("nats", Takes::News);
pub const OPSGENIE: TypeRules = TypeRules::new("opsgenie", Takes::News);
pub const OTEL: TypeRules = TypeRules::new("otel", Takes::News);
pub const PAGERDUTY: TypeRules = TypeRules::new("pagerduty", Takes::News);
pub const ROCKET: TypeRules = TypeRules::new("rocket", Takes::News);
pub const SENTRY: TypeRules = TypeRules::new("sentry", Takes::News);
pub const SLACK: TypeRules = TypeRules::new("slack", Takes::News);
pub const TELEGRAM: TypeRules = TypeRules::new("telegram", Takes::News);
pub const WEBEX: TypeRules = TypeRules::new("webex", Takes::News);
pub const ZOOM: TypeRules = TypeRules::new("zoom", Takes::News);
pub const ZULIP: TypeRules = TypeRules::new("zulip", Takes::News);

pub const TYPES: &[TypeRules] = &[
    ALERTMANAGER,
    AZUREDEVOPS,
    AZUREEVENTHUB,
    BITBUCKET,
    BITBUCKETSERVER,
    DATADOG,
    DISCORD,
    GENERIC,
    GENERIC_HMAC,
    GITEA,
    GITEA_COMMENT,
    GITHUB,
    GITHUBDISPATCH,
    GITHUB_COMMENT,
    GITLAB,
    GITLAB_COMMENT,
    GOOGLECHAT,
    GOOGLEPUBSUB,
    GRAFANA,
    INCIDENTIO,
    LARK,
    MATRIX,
    MSTEAMS,
    NATS,
    OPSGENIE,
    OTEL,
    PAGERDUTY,
    ROCKET,
    SENTRY,
    SLACK,
    TELEGRAM,
    WEBEX,
    ZOOM,
    ZULIP,
];

/// Returns the rules of a type, if it is implemented.
#[must_use]
pub fn find(name: &str) -> Option<&'static TypeRules> {
    TYPES.iter().find(|rules| rules.name == name)
}

/// Checks a Provider. It compiles the expression of the spec: not on an async thread.
pub fn check(spec: &ProviderSpec) -> Result<(), Fault> {
    check_fields(spec)?;
    check_expression(spec)
}

/// Checks all fields but the expression.
pub fn check_fields(spec: &ProviderSpec) -> Result<(), Fault> {
    let unsupported = |message: String| Err(Fault::stall(Reason::UnsupportedField, message));
    let Some(rules) = find(&spec.type_) else {
        let names: Vec<_> = TYPES.iter().map(|rules| rules.name).collect();
        return unsupported(format!(
            "spec.type: {} is not supported yet: use one of {}",
            spec.type_,
            names.join(", ")
        ));
    };
    if spec.service_account_name.is_some() && rules.audience.is_none() {
        return unsupported(format!(
            "spec.serviceAccountName: the type {} uses no identity of a cloud: remove the field",
            rules.name
        ));
    }
    match spec.commit_status_expr.as_deref() {
        Some(text) if rules.takes != Takes::Commits => Err(Fault::unsupported(
            EXPRESSION,
            &format!("'{text}' with this type"),
        )),
        _ => Ok(()),
    }
}

/// Checks that the expression compiles. Its value is known when there is an event.
pub fn check_expression(spec: &ProviderSpec) -> Result<(), Fault> {
    let Some(text) = spec.commit_status_expr.as_deref() else {
        return Ok(());
    };
    match Program::compile(text, EXPRESSION_SCOPE) {
        Ok(_) => Ok(()),
        Err(why) => Err(Fault::stall(Reason::InvalidSpec, format!("{EXPRESSION}: {why}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn fields_that_a_type_does_not_obey_are_refused_by_name() {
        for (change, expected) in [
            (json!({}), None),
            (
                json!({"type": "smoke"}),
                Some("spec.type: smoke is not supported yet: use one of alertmanager, "),
            ),
            (
                json!({"serviceAccountName": "a"}),
                Some("spec.serviceAccountName: the type github uses no identity of a cloud"),
            ),
            (json!({"type": "azuredevops", "serviceAccountName": "a"}), None),
            (json!({"commitStatusExpr": "event.reason"}), None),
            (
                json!({"type": "slack", "commitStatusExpr": "event.reason"}),
                Some("spec.commitStatusExpr: "),
            ),
            (
                json!({"commitStatusExpr": "other"}),
                Some("spec.commitStatusExpr: "),
            ),
            (
                json!({"commitStatusExpr": "1 +"}),
                Some("spec.commitStatusExpr: "),
            ),
        ] {
            let mut spec = json!({"type": "github", "address": "https://example.com/o/r"});
            for (field, value) in change.as_object().unwrap() {
                spec[field] = value.clone();
            }
            let spec: ProviderSpec = serde_json::from_value(spec).unwrap();
            let refused = check(&spec).err().map(|fault| fault.message);
            match expected {
                None => assert_eq!(refused, None, "{change}"),
                Some(expected) => assert!(refused.unwrap().starts_with(expected), "{change}"),
            }
        }
    }

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
                let fault = check(&spec)
                    .err()
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
        assert!(TYPES.iter().all(|rules| types.contains(&rules.name)));
        for name in types {
            let spec = ProviderSpec {
                type_: name.to_owned(),
                ..ProviderSpec::default()
            };
            let refused = check(&spec).is_err_and(|fault| fault.message.starts_with("spec.type: "));
            assert_eq!(refused, find(name).is_none(), "{name}");
        }
    }
}
