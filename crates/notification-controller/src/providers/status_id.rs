//! Evaluates the names that a Provider gives commit statuses (`spec.commitStatusExpr`).

use api::{
    Event, Fault, Reason,
    notification::{Alert, Provider, ProviderSpec},
};
use cel::{Program, Scope, Value, Variables};
use serde::Serialize;

use super::interface::Takes;
use crate::error::Error;

const FIELD: &str = "spec.commitStatusExpr";
const SCOPE: Scope<'_> = Scope::Declared(&ProviderSpec::EXPRESSION_VARIABLES);
const LENGTH: usize = 1024;

/// Returns the fault of an expression for a type that sets no commit statuses.
pub(super) fn unsupported(spec: &ProviderSpec, takes: Takes) -> Option<Fault> {
    let text = spec.commit_status_expr.as_deref()?;
    (takes != Takes::Commits).then(|| Fault::unsupported(FIELD, &format!("'{text}' with this type")))
}

/// Returns the fault of an expression that doesn't compile. Its value is known when there is an event.
pub(crate) fn invalid(spec: &ProviderSpec) -> Option<Fault> {
    let text = spec.commit_status_expr.as_deref()?;
    let why = Program::compile(text, SCOPE).err()?;
    Some(Fault::stall(Reason::InvalidSpec, format!("{FIELD}: {why}")))
}

/// Returns the name that the expression of a Provider gives the status of an event; `None` without an expression. The variables are the
/// event as providers get it, the Alert and the Provider.
/// Fails when the expression doesn't compile, fails, or has another value than a string of 1 to 1024 characters.
pub(crate) fn evaluate(event: &Event, alert: &Alert, provider: &Provider) -> Result<Option<String>, Error> {
    let Some(text) = &provider.spec.commit_status_expr else {
        return Ok(None);
    };
    let program = Program::compile(text, SCOPE).map_err(|error| Error::Expression(error.to_string()))?;
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
    use crate::providers::{fixture, refused as refused_provider};

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
            spec: ProviderSpec::default(),
            ..provider("github", "")
        };
        assert_eq!(evaluate(&fixture::event(), &alert(), &without), Ok(None));
    }

    #[test]
    fn invalid_expressions_are_refused_before_the_first_event() {
        for (kind, text, reason, why) in [
            ("slack", "'a'", Reason::UnsupportedField, "'a'"),
            ("github", "event.", Reason::InvalidSpec, "column"),
            ("github", "object.name", Reason::InvalidSpec, "object"),
        ] {
            let fault = refused_provider(&provider(kind, text).spec).unwrap();
            assert_eq!(fault.reason, reason, "{fault}");
            assert!(fault.message.starts_with("spec.commitStatusExpr: "), "{fault}");
            assert!(fault.message.contains(why), "{fault}");
        }
        assert!(refused_provider(&provider("gitea", "event.message").spec).is_none());
    }
}
