//! Expressions that decide about the health of objects. Pure.

use std::collections::HashSet;

use api::kustomize::HealthCheckExpr;
use apply::CustomHealth;
use cel::{Program, Scope, Variables};
use objects::{
    ObjectRef,
    kstatus::{self, Health, Status},
    split_api_version,
};
use yaml::Value;

/// An expression that is not valid.
#[derive(Debug, thiserror::Error)]
pub enum InvalidExpression {
    #[error(
        "failed to create custom status evaluator for healthchecks[{at}]: failed to parse the expression {field}: \
         failed to parse the CEL expression '{expression}': {error}"
    )]
    Compile {
        at: usize,
        field: &'static str,
        expression: String,
        /// With its position in the expression.
        error: String,
    },
    #[error(
        "failed to create custom status evaluator for healthchecks[{0}]: expression Current not specified"
    )]
    NoCurrent(usize),
    #[error("duplicate custom health check for GroupKind {kind} at healthchecks[{at}]")]
    Duplicate { at: usize, kind: String },
}

/// Compiled health checks.
#[derive(Debug)]
pub struct CelHealth(Vec<Check>);

#[derive(Debug)]
struct Check {
    group: String,
    /// All kinds of the group if absent.
    kind: Option<String>,
    current: Expression,
    in_progress: Option<Expression>,
    failed: Option<Expression>,
}

#[derive(Debug)]
struct Expression {
    source: String,
    program: Program,
}

impl CelHealth {
    /// Compiles health checks; `None` if there are none.
    ///
    /// # Errors
    /// If an expression is invalid or missing, or a kind has two checks.
    pub fn compile(checks: &[HealthCheckExpr]) -> Result<Option<Self>, InvalidExpression> {
        if checks.is_empty() {
            return Ok(None);
        }
        let mut known = HashSet::new();
        let mut compiled = Vec::with_capacity(checks.len());
        for (at, check) in checks.iter().enumerate() {
            let (group, _) = split_api_version(&check.api_version);
            let kind = check.kind.clone().filter(|kind| !kind.is_empty());
            if !known.insert((group.to_owned(), kind.clone())) {
                let kind = kind.unwrap_or_default();
                let kind = format!("{kind}.{group}").trim_matches('.').to_owned();
                return Err(InvalidExpression::Duplicate { at, kind });
            }
            let program = |field, source: &Option<String>| {
                let source = source.as_deref().filter(|source| !source.is_empty());
                source.map(|source| program(at, field, source)).transpose()
            };
            if check.current.is_empty() {
                return Err(InvalidExpression::NoCurrent(at));
            }
            compiled.push(Check {
                group: group.to_owned(),
                kind,
                current: self::program(at, "Current", &check.current)?,
                failed: program("Failed", &check.failed)?,
                in_progress: program("InProgress", &check.in_progress)?,
            });
        }
        Ok(Some(Self(compiled)))
    }

    fn find(&self, group: &str, kind: &str) -> Option<&Check> {
        let of_group = || self.0.iter().filter(|check| check.group == group);
        let exact = of_group().find(|check| check.kind.as_deref() == Some(kind));
        exact.or_else(|| of_group().find(|check| check.kind.is_none()))
    }
}

/// Compiles an expression. As in the original, its type may turn out to be another than bool only when it is evaluated.
fn program(at: usize, field: &'static str, source: &str) -> Result<Expression, InvalidExpression> {
    let program = Program::compile(source, Scope::Any).map_err(|error| InvalidExpression::Compile {
        at,
        field,
        expression: source.to_owned(),
        error: error.located(source),
    })?;
    Ok(Expression {
        source: source.to_owned(),
        program,
    })
}

impl CustomHealth for CelHealth {
    fn check(&self, object: &Value) -> Option<Health> {
        let reference = ObjectRef::of(object).ok()?;
        let check = self.find(&reference.group, &reference.kind)?;
        let outdated = kstatus::generation(object);
        outdated.or_else(|| Some(check.evaluate(object)))
    }
}

impl Check {
    fn evaluate(&self, object: &Value) -> Health {
        let fields = object.as_map().into_iter().flat_map(|map| map.iter());
        let variables = fields.fold(Variables::new(), |variables, (name, value)| {
            variables.with(name, cel::Value::from(value))
        });
        let programs = [
            (self.in_progress.as_ref(), Status::InProgress),
            (self.failed.as_ref(), Status::Failed),
            (Some(&self.current), Status::Current),
        ];
        for (expression, status) in programs {
            let Some(Expression { source, program }) = expression else {
                continue;
            };
            match program.is_true(&variables) {
                Ok(true) => return Health::new(status, ""),
                Ok(false) => {}
                // A field that isn't there yet may appear.
                Err(error) => {
                    let message = format!("failed to evaluate the CEL expression '{source}': {error}");
                    return Health::new(Status::Unknown, message);
                }
            }
        }
        Health::new(Status::InProgress, "")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn compile(checks: serde_json::Value) -> Result<Option<CelHealth>, InvalidExpression> {
        let checks: Vec<HealthCheckExpr> = serde_json::from_value(checks).unwrap();
        CelHealth::compile(&checks)
    }

    fn status(health: &CelHealth, kind: &str, status: &serde_json::Value) -> Option<Status> {
        let object = json!({
            "apiVersion": "x.io/v2", "kind": kind,
            "metadata": { "name": "a", "generation": 2 }, "status": status,
        });
        health
            .check(&Value::from_json(object))
            .map(|health| health.status)
    }

    #[test]
    fn expressions_decide_in_their_order() {
        let health = compile(json!([{
            "apiVersion": "x.io/v1", "kind": "A", "current": "status.phase == 'Ready'",
            "inProgress": "status.phase == 'Working'", "failed": "status.phase in ['Failed', 'Working']",
        }]))
        .unwrap()
        .unwrap();
        for (phase, expected) in [
            ("Ready", Status::Current),
            ("Working", Status::InProgress),
            ("Failed", Status::Failed),
            ("Else", Status::InProgress),
        ] {
            let found = status(&health, "A", &json!({ "phase": phase }));
            assert_eq!(found, Some(expected), "{phase}");
        }
        let outdated = status(
            &health,
            "A",
            &json!({ "phase": "Ready", "observedGeneration": 1 }),
        );
        assert_eq!(outdated, Some(Status::InProgress));
        assert_eq!(
            status(&health, "A", &json!({})),
            Some(Status::Unknown),
            "not there yet"
        );
        assert_eq!(status(&health, "B", &json!({ "phase": "Ready" })), None);
    }

    #[test]
    fn checks_of_a_kind_come_before_those_of_its_group() {
        let health = compile(json!([
            { "apiVersion": "x.io/v1", "current": "true" },
            { "apiVersion": "x.io/v1", "kind": "A", "current": "false" },
        ]));
        let health = health.unwrap().unwrap();
        assert_eq!(status(&health, "A", &json!({})), Some(Status::InProgress));
        assert_eq!(status(&health, "B", &json!({})), Some(Status::Current));
    }

    #[test]
    fn invalid_and_double_checks_are_refused() {
        let error = |checks| compile(checks).err().unwrap().to_string();
        let double = error(json!([
            { "apiVersion": "x.io/v1", "kind": "A", "current": "true" },
            { "apiVersion": "x.io/v2", "kind": "A", "current": "true" },
        ]));
        assert_eq!(
            double,
            "duplicate custom health check for GroupKind A.x.io at healthchecks[1]"
        );
        let invalid = error(json!([{ "apiVersion": "x.io/v1", "current": "true", "failed": "1 +" }]));
        assert_eq!(
            invalid,
            "failed to create custom status evaluator for healthchecks[0]: failed to parse the expression Failed: failed to \
             parse the CEL expression '1 +': ERROR: <input>:1:4: Syntax error: expected a value"
        );
        let missing = error(json!([{ "apiVersion": "x.io/v1", "current": "" }]));
        assert!(
            missing.ends_with("healthchecks[0]: expression Current not specified"),
            "{missing}"
        );
    }

    #[test]
    fn errors_of_evaluations_name_the_expression_and_the_missing_field() {
        let health = compile(json!([
            { "apiVersion": "x.io/v2", "kind": "A", "inProgress": "has(data.foo.bar)", "current": "true" },
            { "apiVersion": "x.io/v2", "kind": "B", "current": "status.phase" },
        ]));
        let health = health.unwrap().unwrap();
        let message = |kind: &str| {
            let object = json!({ "apiVersion": "x.io/v2", "kind": kind, "metadata": { "name": "a" }, "status": { "phase": "x" } });
            health.check(&Value::from_json(object)).unwrap().message
        };
        assert_eq!(
            message("A"),
            "failed to evaluate the CEL expression 'has(data.foo.bar)': no such attribute(s): data.foo.bar"
        );
        assert!(message("B").contains("not bool"), "{}", message("B"));
    }
}
