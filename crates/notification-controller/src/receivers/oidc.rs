//! Verifies tokens of the issuers of a Receiver, and their claims.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use api::notification::{OidcProvider, ReceiverSpec};
use cel::{Allowance, Limits, Program, Scope, Value, Variables};
use limits::compute;
use serde_json::{Map, Value as Json};

use super::{
    jwt::{KeySet, TokenError, Unverified},
    keys::KeyLocation,
    refused::Refused,
    types::Checks,
};

/// The type that needs no Secret.
pub(super) const TYPE: &str = "generic-oidc";

/// Audience of the tokens if the Receiver names none.
const AUDIENCE: &str = "notification-controller";
const SCOPE: Scope<'_> = Scope::Declared(&["claims", "vars"]);
/// Maximum number of issuers of a Receiver, and of expressions of an issuer.
const MOST: usize = 100;
/// Limits of all expressions of an issuer for one token: 0.5 s.
const OF_TOKEN: Limits = Limits {
    steps: 1_000_000,
    bytes: 64 << 20,
};

/// Checks the fields that belong to the type, as the CRD does where it has these rules.
pub(super) fn validate(spec: &ReceiverSpec) -> Result<(), String> {
    if spec.type_ != TYPE {
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
pub(super) fn broken(spec: &ReceiverSpec, cancelled: &AtomicBool) -> Option<String> {
    let providers = spec.oidc_providers.iter().enumerate();
    let mut providers = providers.take_while(|_| !cancelled.load(Ordering::Relaxed));
    providers.find_map(|(at, provider)| {
        let why = Rules::compile(provider).err()?;
        Some(format!("oidcProviders[{at}].{why}"))
    })
}

struct Rules<'a> {
    variables: Vec<(&'a str, Program)>,
    validations: Vec<(&'a str, Program)>,
}

impl<'a> Rules<'a> {
    /// Compiles the expressions within an allowance.
    fn within(provider: &'a OidcProvider, allowance: &mut Allowance) -> Result<Self, String> {
        let variables = provider.variables.iter().map(|each| each.expression.len());
        let validations = provider.validations.iter().map(|each| each.expression.len());
        let bytes = variables.chain(validations).sum();
        allowance.spend(bytes).map_err(|why| why.to_string())?;
        Self::compile(provider)
    }

    fn compile(provider: &'a OidcProvider) -> Result<Self, String> {
        let mut rules = Self {
            variables: Vec::new(),
            validations: Vec::new(),
        };
        for (at, variable) in provider.variables.iter().enumerate() {
            let program = Program::compile(&variable.expression, SCOPE);
            let program = program.map_err(|why| format!("variables[{at}].expression: {why}"))?;
            rules.variables.push((&variable.name, program));
        }
        for (at, validation) in provider.validations.iter().enumerate() {
            let program = Program::compile_bool(&validation.expression, SCOPE);
            let program = program.map_err(|why| format!("validations[{at}].expression: {why}"))?;
            rules.validations.push((&validation.message, program));
        }
        Ok(rules)
    }

    fn judge(&self, claims: &Value, mut allowance: Allowance) -> Result<(), Refused> {
        let mut known: Vec<(String, Value)> = Vec::new();
        for (name, program) in &self.variables {
            let variables = Variables::new()
                .with("claims", claims.clone())
                .with("vars", Value::object(known.iter().cloned()));
            let value = program.evaluate_with(&variables, &mut allowance);
            let value = value.map_err(|why| Refused::new(format!("variable {name}: {why}")))?;
            known.push(((*name).to_owned(), value));
        }
        let variables = Variables::new()
            .with("claims", claims.clone())
            .with("vars", Value::object(known));
        for (message, program) in &self.validations {
            match program.is_true_with(&variables, &mut allowance) {
                Ok(true) => {}
                Ok(false) => return Err(Refused::new(format!("the claims are refused: {message}"))),
                Err(why) => return Err(Refused::new(format!("a validation has no result: {why}"))),
            }
        }
        Ok(())
    }
}

/// Returns the claims of a token that an issuer of the Receiver signed for it, and that its validations accept.
pub(super) async fn claims(spec: &ReceiverSpec, token: &str, checks: &Checks<'_>) -> Result<Value, Refused> {
    let unverified = Unverified::parse(token)?;
    let provider = spec.oidc_providers.iter();
    let mut provider = provider.filter(|provider| provider.issuer_url == unverified.issuer());
    let Some(provider) = provider.next() else {
        return Err(Refused::said("the issuer of the token is none of the Receiver"));
    };
    let expected = Expected {
        issuers: vec![provider.issuer_url.clone()],
        audience: provider.audience.clone().unwrap_or_else(|| AUDIENCE.to_owned()),
    };
    let location = KeyLocation::Issuer(provider.issuer_url.clone());
    let claims = verified(token, &location, expected, checks).await?;
    let provider = provider.clone();
    let judged = compute(checks.namespace, move |cancelled| {
        let mut allowance = Allowance::new(OF_TOKEN).with_cancellation(Arc::clone(cancelled));
        let claims = Value::from_json(&Json::Object(claims));
        let rules = Rules::within(&provider, &mut allowance).map_err(Refused::new)?;
        rules.judge(&claims, allowance).map(|()| claims)
    });
    judged
        .await
        .ok_or_else(|| Refused::said("the expressions failed"))?
}

/// The claims that a token must have.
#[derive(Debug, Clone)]
pub(super) struct Expected {
    pub(super) issuers: Vec<String>,
    pub(super) audience: String,
}

/// Returns the claims of a token that is signed with a key of `location`; the keys are fetched again if they lack the key of the token.
pub(super) async fn verified(
    token: &str,
    location: &KeyLocation,
    expected: Expected,
    checks: &Checks<'_>,
) -> Result<Map<String, Json>, Refused> {
    let verify = async |keys: Arc<KeySet>| {
        let (token, expected, now) = (token.to_owned(), expected.clone(), checks.now);
        let verified = compute(checks.namespace, move |_| {
            let issuers: Vec<_> = expected.issuers.iter().map(String::as_str).collect();
            Unverified::parse(&token)?.verify(&keys, &issuers, &expected.audience, now)
        });
        verified.await.unwrap_or(Err(TokenError::Signature))
    };
    let keys = checks.keys;
    match verify(keys.of(checks.namespace, location, false).await?).await {
        Err(TokenError::UnknownKey) => {
            let renewed = keys.of(checks.namespace, location, true).await?;
            Ok(verify(renewed).await?)
        }
        result => Ok(result?),
    }
}
