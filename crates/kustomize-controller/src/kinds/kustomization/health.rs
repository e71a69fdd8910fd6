//! The objects that a pass waits for, and the expressions that decide about their health. Pure.

use std::{collections::HashSet, sync::Arc};

use api::kustomize::{HealthCheckExpr, Kustomization};
use apply::{AppliedSet, CustomHealth, WaitTarget};
use cel::{Program, Scope, Variables};
use kube::ResourceExt as _;
use objects::{
    ObjectRef,
    kstatus::{self, Health, Status},
    split_api_version,
};
use yaml::Value;

/// An expression that is not valid.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidExpression {
    #[error("healthCheckExprs[{at}].{field}: failed to compile the CEL expression '{source_text}': {error}")]
    Compile {
        at: usize,
        field: &'static str,
        source_text: String,
        error: cel::CompileError,
    },
    #[error("duplicate custom health check for GroupKind {kind} at healthchecks[{at}]")]
    Duplicate { at: usize, kind: String },
}

/// Returns the objects to wait for: all applied ones, or the health checks of the spec. The Kustomization itself is left out.
pub(super) fn targets(object: &Kustomization, applied: &AppliedSet) -> Vec<WaitTarget> {
    let mut targets = match object.spec.wait {
        true => applied.targets(),
        false => listed(object, applied),
    };
    targets.retain(|target| {
        let reference = &target.reference;
        !(reference.is(api::group::KUSTOMIZE, "Kustomization")
            && reference.name == object.name_any()
            && reference.namespace == object.namespace())
    });
    targets
}

fn listed(object: &Kustomization, applied: &AppliedSet) -> Vec<WaitTarget> {
    let checks = object.spec.health_checks.iter();
    let target = checks.map(|check| {
        let given = check.api_version.as_deref().filter(|given| !given.is_empty());
        let (group, version) = split_api_version(given.unwrap_or("apps/v1"));
        let namespace = check.namespace.clone().filter(|namespace| !namespace.is_empty());
        let reference = ObjectRef {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: check.kind.clone(),
            namespace,
            name: check.name.clone(),
        };
        let outcomes = applied.outcomes.iter();
        let mut known = outcomes.filter(|outcome| outcome.reference.id() == reference.id());
        let known: Option<Arc<Value>> = known.find_map(|outcome| outcome.object.clone());
        WaitTarget { reference, known }
    });
    target.collect()
}

/// Compiled health checks.
pub(super) struct CelHealth(Vec<Check>);

struct Check {
    group: String,
    /// All kinds of the group if absent.
    kind: Option<String>,
    current: Program,
    in_progress: Option<Program>,
    failed: Option<Program>,
}

impl CelHealth {
    /// Compiles health checks; `None` if there are none.
    pub(super) fn compile(checks: &[HealthCheckExpr]) -> Result<Option<Self>, InvalidExpression> {
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
            compiled.push(Check {
                group: group.to_owned(),
                kind,
                current: self::program(at, "current", &check.current)?,
                in_progress: program("inProgress", &check.in_progress)?,
                failed: program("failed", &check.failed)?,
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

fn program(at: usize, field: &'static str, source: &str) -> Result<Program, InvalidExpression> {
    Program::compile_bool(source, Scope::Any).map_err(|error| InvalidExpression::Compile {
        at,
        field,
        source_text: source.to_owned(),
        error,
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
        for (program, status) in programs {
            match program.map(|program| program.is_true(&variables)) {
                Some(Ok(true)) => return Health::new(status, ""),
                Some(Ok(false)) | None => {}
                // A field that isn't there yet may appear.
                Some(Err(error)) => {
                    let message = format!("failed to evaluate the CEL expression: {error}");
                    return Health::new(Status::InProgress, message);
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
            Some(Status::InProgress),
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
        assert!(invalid.starts_with("healthCheckExprs[0].failed: "), "{invalid}");
        let not_bool = error(json!([{ "apiVersion": "x.io/v1", "current": "1" }]));
        assert!(not_bool.contains("bool"), "{not_bool}");
    }
}
