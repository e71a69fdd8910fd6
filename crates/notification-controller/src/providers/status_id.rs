//! Evaluates the names that a Provider gives commit statuses (`spec.commitStatusExpr`).

use api::{
    Event,
    notification::{Alert, Provider},
};
use cel::{Program, Value, Variables};
use notification_specs::provider::EXPRESSION_SCOPE;
use serde::Serialize;

use crate::error::Error;

const LENGTH: usize = 1024;

/// Returns the name that the expression of a Provider gives the status of an event; `None` without an expression. The variables are the
/// event as providers get it, the Alert and the Provider.
/// Fails when the expression doesn't compile, fails, or has another value than a string of 1 to 1024 characters.
pub(crate) fn evaluate(event: &Event, alert: &Alert, provider: &Provider) -> Result<Option<String>, Error> {
    let Some(text) = &provider.spec.commit_status_expr else {
        return Ok(None);
    };
    let program =
        Program::compile(text, EXPRESSION_SCOPE).map_err(|error| Error::Expression(error.to_string()))?;
    let failed = |why: String| Error::Expression(api::redact(&why));
    let variables = Variables::new()
        .with("event", value(event))
        .with("alert", value(alert))
        .with("provider", value(provider));
    match program.evaluate(&variables) {
        Ok(Value::String(name)) if (1..=LENGTH).contains(&name.chars().count()) => Ok(Some(name.to_string())),
        Ok(Value::String(_)) => Err(failed(format!(
            "the name must have between 1 and {LENGTH} characters"
        ))),
        Ok(other) => Err(failed(format!(
            "the result is of the type {}, not string",
            other.type_name()
        ))),
        Err(error) => Err(failed(error.to_string())),
    }
}

fn value(object: &impl Serialize) -> Value {
    serde_json::to_value(object).map_or(Value::Null, |json| Value::from_json(&json))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::providers::fixture;

    fn provider(kind: &str, expression: &str) -> Provider {
        serde_json::from_value(json!({
            "apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Provider",
            "metadata": {"name": "p", "namespace": "team", "uid": "0c9c2e41-d2f9"},
            "spec": {"type": kind, "address": "https://u:canary@h/o/r", "commitStatusExpr": expression},
        }))
        .unwrap()
    }

    fn alert() -> Alert {
        serde_json::from_value(json!({
            "apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Alert",
            "metadata": {"name": "a", "namespace": "team"},
            "spec": {"providerRef": {"name": "p"}, "eventSources": []},
        }))
        .unwrap()
    }

    #[test]
    fn expression_names_the_status_of_an_event() {
        let named = |text: &str| evaluate(&fixture::event(), &alert(), &provider("github", text));
        for (text, expected) in [
            (
                "event.involvedObject.kind + '/' + event.involvedObject.name",
                "GitRepository/shop",
            ),
            ("event.metadata.revision.split('@')[0]", "main"),
            (
                "(alert.metadata.name + '/' + provider.metadata.uid.split('-')[0]).upperAscii()",
                "A/0C9C2E41",
            ),
            ("event.metadata[?'env'].orValue('none')", "none"),
        ] {
            assert_eq!(named(text), Ok(Some(expected.to_owned())), "{text}");
        }
        for (text, why) in [
            (
                "event.severity == 'info'",
                "the result is of the type bool, not string",
            ),
            ("event.metadata.nothing", "nothing"),
            ("''", "between 1 and 1024 characters"),
            (
                "event.metadata[provider.spec.address]",
                "no such key: https://h/o/r",
            ),
        ] {
            let error = named(text).unwrap_err().to_string();
            assert!(error.starts_with("spec.commitStatusExpr: "), "{error}");
            assert!(
                error.contains(why) && !error.contains("canary"),
                "{text}: {error}"
            );
        }
        let without = Provider {
            spec: api::notification::ProviderSpec::default(),
            ..provider("github", "")
        };
        assert_eq!(evaluate(&fixture::event(), &alert(), &without), Ok(None));
    }
}
