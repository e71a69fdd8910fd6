//! Verifies tokens of the issuers of a Receiver, and their claims.

use std::sync::Arc;

use api::notification::{OidcProvider, ReceiverSpec};
use cel::{Allowance, Limits, Value, Variables};
use limits::compute;
use notification_specs::receiver::OidcRules;
use serde_json::{Map, Value as Json};

use super::{
    jwt::{KeySet, TokenError, Unverified},
    keys::KeyLocation,
    refused::Refused,
    types::Checks,
};

/// Audience of the tokens if the Receiver names none.
const AUDIENCE: &str = "notification-controller";
/// Limits of all expressions of an issuer for one token: 0.5 s.
const OF_TOKEN: Limits = Limits {
    steps: 1_000_000,
    bytes: 64 << 20,
};

/// Compiles the expressions of an issuer within an allowance.
fn compile<'a>(provider: &'a OidcProvider, allowance: &mut Allowance) -> Result<OidcRules<'a>, String> {
    let variables = provider.variables.iter().map(|each| each.expression.len());
    let validations = provider.validations.iter().map(|each| each.expression.len());
    let bytes = variables.chain(validations).sum();
    allowance.spend(bytes).map_err(|why| why.to_string())?;
    OidcRules::compile(provider)
}

/// Refuses claims that a validation refuses.
fn judge(rules: &OidcRules<'_>, claims: &Value, mut allowance: Allowance) -> Result<(), Refused> {
    let mut known: Vec<(String, Value)> = Vec::new();
    for (name, program) in &rules.variables {
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
    for (message, program) in &rules.validations {
        match program.is_true_with(&variables, &mut allowance) {
            Ok(true) => {}
            Ok(false) => return Err(Refused::new(format!("the claims are refused: {message}"))),
            Err(why) => return Err(Refused::new(format!("a validation has no result: {why}"))),
        }
    }
    Ok(())
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
        let rules = compile(&provider, &mut allowance).map_err(Refused::new)?;
        judge(&rules, &claims, allowance).map(|()| claims)
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
