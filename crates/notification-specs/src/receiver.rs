//! The types of Receivers, and the rules of a Receiver: its fields fit its type, and its expressions compile.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, Ordering},
};

use api::{
    Fault, Reason,
    notification::{OidcProvider, ReceiverSpec},
};
use cel::{Program, Scope};

/// The values of `spec.type`.
pub const TYPES: &[&str] = &[
    "acr",
    "bitbucket",
    "cdevents",
    "dockerhub",
    "gcr",
    "generic",
    "generic-hmac",
    "generic-oidc",
    "github",
    "gitlab",
    "harbor",
    "nexus",
    "quay",
];

/// The type that verifies tokens of OpenID Connect, and needs no Secret.
pub const OIDC: &str = "generic-oidc";

/// Maximum number of issuers of a Receiver, and of expressions of an issuer.
const MOST: usize = 100;
/// The scope of the expressions of an issuer.
const OIDC_SCOPE: Scope<'_> = Scope::Declared(&["claims", "vars"]);

/// Maximum number of resources of a Receiver, for the time that a request may take.
const MAX_RESOURCES: usize = 1000;

fn stall(reason: Reason, why: &str) -> Result<(), Fault> {
    let message = format!("Reconciliation failed terminally due to configuration error: {why}");
    Err(Fault::stall(reason, message))
}

/// Checks all fields but the expressions: a Receiver that fails can't work with any Secret.
pub fn check_fields(spec: &ReceiverSpec) -> Result<(), Fault> {
    if !TYPES.contains(&spec.type_.as_str()) {
        return stall(
            Reason::ValidationFailed,
            &format!("spec.type: unknown type {:?}", spec.type_),
        );
    }
    if let Err(why) = check_issuers(spec) {
        return stall(Reason::ValidationFailed, &why);
    }
    if spec.resources.len() > MAX_RESOURCES {
        return stall(
            Reason::ValidationFailed,
            &format!("spec.resources: at most {MAX_RESOURCES} are allowed"),
        );
    }
    Ok(())
}

/// Checks that all expressions compile, which takes time: it ends early with a fault when cancelled.
pub fn check_expressions(spec: &ReceiverSpec, cancelled: &AtomicBool) -> Result<(), Fault> {
    let broken = invalid_filter(spec, cancelled).or_else(|| invalid_issuer(spec, cancelled));
    if cancelled.load(Ordering::Relaxed) {
        return Err(Fault::retry(
            Reason::Timeout,
            "checking the expressions took too long",
        ));
    }
    match broken {
        Some(why) => stall(Reason::InvalidCELExpression, &why),
        None => Ok(()),
    }
}

/// Checks the fields that belong to the type, as the CRD does where it has these rules.
fn check_issuers(spec: &ReceiverSpec) -> Result<(), String> {
    if spec.type_ != OIDC {
        if !spec.oidc_providers.is_empty() {
            return Err("oidcProviders may only be set when type is 'generic-oidc'".to_owned());
        }
        return match &spec.secret_ref {
            Some(reference) if !reference.name.is_empty() => Ok(()),
            _ => Err("secretRef is required unless type is 'generic-oidc'".to_owned()),
        };
    }
    if spec.secret_ref.is_some() {
        return Err("secretRef must not be set when type is 'generic-oidc'".to_owned());
    }
    if spec.oidc_providers.is_empty() || spec.oidc_providers.len() > MOST {
        return Err(format!(
            "oidcProviders must have 1 to {MOST} entries when type is 'generic-oidc'"
        ));
    }
    let mut seen = BTreeSet::new();
    for (at, provider) in spec.oidc_providers.iter().enumerate() {
        let failed = |why: &str| Err(format!("oidcProviders[{at}]: {why}"));
        let url = provider.issuer_url.as_str();
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return failed("issuerURL must start with http:// or https://");
        }
        if !seen.insert(url) {
            return failed("the same issuerURL is there twice");
        }
        if provider.audience.as_deref() == Some("") {
            return failed("audience must not be empty");
        }
        if provider.validations.is_empty() || provider.validations.len() + provider.variables.len() > MOST {
            return failed(
                "it needs at least one validation, and at most 100 with its variables: without one, whoever gets a token of the \
                 issuer can call the webhook",
            );
        }
        let variables = provider
            .variables
            .iter()
            .flat_map(|each| [&each.name, &each.expression]);
        let validations = provider
            .validations
            .iter()
            .flat_map(|each| [&each.expression, &each.message]);
        if variables.chain(validations).any(String::is_empty) {
            return failed("name, expression and message must not be empty");
        }
    }
    Ok(())
}

/// Returns the first invalid expression, with the reason. It may miss it when cancelled.
fn invalid_issuer(spec: &ReceiverSpec, cancelled: &AtomicBool) -> Option<String> {
    let providers = spec.oidc_providers.iter().enumerate();
    let mut providers = providers.take_while(|_| !cancelled.load(Ordering::Relaxed));
    providers.find_map(|(at, provider)| {
        let why = OidcRules::compile(provider).err()?;
        Some(format!("oidcProviders[{at}].{why}"))
    })
}

/// The compiled expressions of an issuer.
pub struct OidcRules<'a> {
    /// Name and program of each variable, in the order of their evaluation.
    pub variables: Vec<(&'a str, Program)>,
    /// Message and program of each validation.
    pub validations: Vec<(&'a str, Program)>,
}

impl<'a> OidcRules<'a> {
    /// Compiles the expressions of an issuer. Fails with the first invalid one.
    pub fn compile(provider: &'a OidcProvider) -> Result<Self, String> {
        let mut rules = Self {
            variables: Vec::new(),
            validations: Vec::new(),
        };
        for (at, variable) in provider.variables.iter().enumerate() {
            let program = Program::compile(&variable.expression, OIDC_SCOPE);
            let program = program.map_err(|why| format!("variables[{at}].expression: {why}"))?;
            rules.variables.push((&variable.name, program));
        }
        for (at, validation) in provider.validations.iter().enumerate() {
            let program = Program::compile_bool(&validation.expression, OIDC_SCOPE);
            let program = program.map_err(|why| format!("validations[{at}].expression: {why}"))?;
            rules.validations.push((&validation.message, program));
        }
        Ok(rules)
    }
}

/// Returns the scope of the filters of a Receiver.
#[must_use]
pub fn filter_scope(spec: &ReceiverSpec) -> Scope<'static> {
    Scope::Declared(spec.filter_variables())
}

/// Returns the paths and expressions of all filters that are not empty.
pub fn filters(spec: &ReceiverSpec) -> impl Iterator<Item = (String, &str)> {
    let common = spec.common_filter();
    let common = common.map(|text| ("spec.resourceFilter".to_owned(), text));
    let resources = spec.resources.iter().enumerate();
    common.into_iter().chain(resources.filter_map(|(at, resource)| {
        let text = resource.own_filter()?;
        Some((format!("spec.resources[{at}].filter"), text))
    }))
}

/// Returns the first invalid filter, with the reason. It may miss it when cancelled.
fn invalid_filter(spec: &ReceiverSpec, cancelled: &AtomicBool) -> Option<String> {
    let mut filters = filters(spec).take_while(|_| !cancelled.load(Ordering::Relaxed));
    filters.find_map(|(path, text)| {
        let why = Program::compile_bool(text, filter_scope(spec)).err()?;
        Some(format!("{path}: {why}"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn issuer() -> Value {
        json!({
            "issuerURL": "https://example.com", "validations": [{"expression": "claims.sub == 'a'", "message": "m"}],
        })
    }

    /// Returns the message of the fault of a Receiver with these fields.
    fn refused(change: &Value) -> Option<String> {
        let mut spec = json!({
            "type": "github", "secretRef": {"name": "s"}, "resources": [{"kind": "GitRepository", "name": "r"}],
        });
        for (field, value) in change.as_object().unwrap() {
            spec[field] = value.clone();
        }
        let spec: ReceiverSpec = serde_json::from_value(spec).unwrap();
        let checked = check_fields(&spec).and_then(|()| check_expressions(&spec, &AtomicBool::new(false)));
        checked.err().map(|fault| fault.message)
    }

    #[test]
    fn fields_must_fit_the_type() {
        let oidc =
            |issuers: Value| json!({"type": "generic-oidc", "secretRef": null, "oidcProviders": issuers});
        let changed = |field: &str, value: Value| {
            let mut issuer = issuer();
            issuer[field] = value;
            oidc(json!([issuer]))
        };
        for (change, expected) in [
            (json!({"type": "smoke"}), "spec.type: unknown type \"smoke\""),
            (
                json!({"secretRef": null}),
                "secretRef is required unless type is 'generic-oidc'",
            ),
            (
                json!({"oidcProviders": [issuer()]}),
                "oidcProviders may only be set when type is 'generic-oidc'",
            ),
            (json!({"type": "generic-oidc"}), "secretRef must not be set"),
            (oidc(json!([])), "oidcProviders must have 1 to 100 entries"),
            (
                oidc(json!([issuer(), issuer()])),
                "oidcProviders[1]: the same issuerURL is there twice",
            ),
            (
                changed("issuerURL", json!("ftp://example.com")),
                "oidcProviders[0]: issuerURL must start with",
            ),
            (
                changed("audience", json!("")),
                "oidcProviders[0]: audience must not be empty",
            ),
            (
                changed("validations", json!([])),
                "oidcProviders[0]: it needs at least one validation",
            ),
            (
                changed("variables", json!([{"name": "", "expression": "1"}])),
                "oidcProviders[0]: name, expression and message must not be empty",
            ),
        ] {
            let message = refused(&change).unwrap_or_default();
            assert!(
                message.contains(&format!("configuration error: {expected}")),
                "{change}: {message}"
            );
        }
        assert_eq!(refused(&json!({})), None);
        assert_eq!(refused(&oidc(json!([issuer()]))), None);
        let without_filters = json!({
            "resourceFilter": "", "resources": [{"kind": "GitRepository", "name": "r", "filter": ""}],
        });
        assert_eq!(refused(&without_filters), None);
        let many = vec![json!({"kind": "GitRepository", "name": "r"}); MAX_RESOURCES + 1];
        assert!(
            refused(&json!({"resources": many}))
                .unwrap()
                .contains("at most 1000 are allowed")
        );
    }

    #[test]
    fn expressions_must_compile() {
        let oidc = |field: &str, value: Value| {
            let mut issuer = issuer();
            issuer[field] = value;
            json!({"type": "generic-oidc", "secretRef": null, "oidcProviders": [issuer]})
        };
        for (change, expected) in [
            (
                json!({"resourceFilter": "claims.sub == 'a'"}),
                "spec.resourceFilter: ",
            ),
            (
                json!({"resources": [{"kind": "GitRepository", "name": "r", "filter": "1 +"}]}),
                "spec.resources[0].filter: ",
            ),
            (
                oidc("validations", json!([{"expression": "res.a", "message": "m"}])),
                "oidcProviders[0].validations[0].expression: ",
            ),
            (
                oidc("variables", json!([{"name": "a", "expression": "("}])),
                "oidcProviders[0].variables[0].expression: ",
            ),
        ] {
            let message = refused(&change).unwrap_or_default();
            assert!(
                message.contains(&format!("configuration error: {expected}")),
                "{change}: {message}"
            );
        }
    }
}
