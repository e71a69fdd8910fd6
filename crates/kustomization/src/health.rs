//! Expressions that decide about the health of objects.

use std::{collections::HashMap, sync::Arc};

use api::{Fault, kustomize::HealthCheckExpr};
use apply::{Checked, CustomHealth};
use cel::{Allowance, EvalError, Limits, Program, Scope, Variables};
use futures::{FutureExt as _, future::BoxFuture};
use limits::compute;
use objects::{
    kstatus::{self, Health, Status},
    split_api_version,
};
use parking_lot::Mutex;
use yaml::Value;

use crate::check;

/// An expression that is not valid.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidExpression {
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
    /// Compiling took too much work, or was cancelled.
    #[error("failed to create custom status evaluators: {0}")]
    Limit(EvalError),
}

/// Maximum number of steps after which other work gets the thread; they take less than half a second.
const SLICE: usize = 1_000_000;

/// The compiled health checks of a pass, and the steps that it has left for them. The checks are evaluated on threads that the namespaces
/// share fairly.
#[derive(Debug)]
pub struct CelHealth {
    namespace: String,
    checks: Arc<Checks>,
    allowance: Arc<Mutex<Allowance>>,
}

impl CelHealth {
    /// Compiles the health checks of a Kustomization on a thread of its namespace; `None` if there are none. Compiling and all evaluations
    /// share [`Limits::OF_PASS`].
    ///
    /// # Errors
    /// A stalling fault if an expression is invalid or missing, or a kind has two checks; one that is retried if the thread was needed for
    /// other namespaces.
    pub async fn compile(namespace: &str, checks: &[HealthCheckExpr]) -> Result<Option<Self>, Fault> {
        if checks.is_empty() {
            return Ok(None);
        }
        let given = checks.to_vec();
        let compiled = compute(namespace, move |cancelled| {
            let mut allowance = Allowance::new(Limits::OF_PASS).with_cancellation(Arc::clone(cancelled));
            let checks = Checks::compile(&given, &mut allowance)?;
            Ok::<_, InvalidExpression>((checks, allowance))
        });
        let (checks, allowance) = compiled
            .await
            .ok_or_else(check::stopped)?
            .map_err(|error| check::expressions(&error))?;
        Ok(Some(Self {
            namespace: namespace.to_owned(),
            checks: Arc::new(checks),
            allowance: Arc::new(Mutex::new(allowance)),
        }))
    }

    /// Refuses invalid health checks, on the thread of the caller.
    ///
    /// # Errors
    /// If an expression is invalid or missing, or a kind has two checks.
    pub(crate) fn check_expressions(checks: &[HealthCheckExpr]) -> Result<(), InvalidExpression> {
        Checks::compile(checks, &mut Allowance::new(Limits::OF_PASS)).map(drop)
    }

    async fn check_some(&self, objects: Vec<Arc<Value>>) -> Vec<Checked> {
        let by_rules = objects
            .iter()
            .take_while(|object| self.checks.of(object).is_none());
        match by_rules.count() {
            0 => {}
            count => return vec![Checked::ByRules; count],
        }
        loop {
            let (checks, left, objects) = (
                Arc::clone(&self.checks),
                Arc::clone(&self.allowance),
                objects.clone(),
            );
            let checked = compute(&self.namespace, move |cancelled| {
                // The end of an earlier evaluation, whose caller is gone, is awaited here.
                let mut left = left.lock();
                let mut allowance = left.clone().with_cancellation(Arc::clone(cancelled));
                let checked = checks.check_some(&objects, &mut allowance);
                *left = allowance;
                checked
            });
            match checked.await {
                // Other namespaces needed the thread.
                Some(checked) if checked.is_empty() => {}
                Some(checked) => return checked,
                None => {
                    let message = "the health checks cannot be evaluated now";
                    return vec![Checked::Found(Health::new(Status::Unknown, message))];
                }
            }
        }
    }
}

impl CustomHealth for CelHealth {
    fn check(&self, objects: Vec<Arc<Value>>) -> BoxFuture<'_, Vec<Checked>> {
        self.check_some(objects).boxed()
    }
}

/// The checks by group.
#[derive(Debug, Default)]
struct Checks(HashMap<String, OfGroup>);

#[derive(Debug, Default)]
struct OfGroup {
    /// The check of all kinds without one of their own.
    any: Option<Check>,
    kinds: HashMap<String, Check>,
}

#[derive(Debug)]
struct Check {
    current: Expression,
    in_progress: Option<Expression>,
    failed: Option<Expression>,
}

#[derive(Debug)]
struct Expression {
    source: String,
    program: Program,
}

impl Checks {
    fn compile(checks: &[HealthCheckExpr], allowance: &mut Allowance) -> Result<Self, InvalidExpression> {
        let mut compiled = Self::default();
        for (at, check) in checks.iter().enumerate() {
            let (group, _) = split_api_version(&check.api_version);
            let kind = check.kind.clone().filter(|kind| !kind.is_empty());
            let group = compiled.0.entry(group.to_owned()).or_default();
            let is_known = match &kind {
                Some(kind) => group.kinds.contains_key(kind),
                None => group.any.is_some(),
            };
            if is_known {
                let kind = kind.unwrap_or_default();
                let (group, _) = split_api_version(&check.api_version);
                let kind = format!("{kind}.{group}").trim_matches('.').to_owned();
                return Err(InvalidExpression::Duplicate { at, kind });
            }
            let compiled = Check::compile(at, check, allowance)?;
            match kind {
                Some(kind) => drop(group.kinds.insert(kind, compiled)),
                None => group.any = Some(compiled),
            }
        }
        Ok(compiled)
    }

    /// Returns the check of an object; `None` if the rules decide about it.
    fn of(&self, object: &Value) -> Option<&Check> {
        let (group, _) = split_api_version(object.get("apiVersion")?.as_str()?);
        let group = self.0.get(group)?;
        let exact = group.kinds.get(object.get("kind")?.as_str()?);
        exact.or(group.any.as_ref())
    }

    /// Checks the first objects, until other work should get the thread; at least one, unless the work is cancelled.
    fn check_some(&self, objects: &[Arc<Value>], allowance: &mut Allowance) -> Vec<Checked> {
        let before = allowance.left().steps;
        let mut checked = Vec::new();
        for object in objects {
            let found = match (self.of(object), kstatus::generation(object)) {
                (None, _) => Checked::ByRules,
                (Some(_), Some(outdated)) => Checked::Found(outdated),
                (Some(check), None) => match check.evaluate(object, allowance) {
                    Some(found) => found,
                    None => break,
                },
            };
            let is_last = matches!(found, Checked::Exhausted(_))
                || before.saturating_sub(allowance.left().steps) >= SLICE;
            checked.push(found);
            if is_last {
                break;
            }
        }
        checked
    }
}

impl Check {
    fn compile(
        at: usize,
        check: &HealthCheckExpr,
        allowance: &mut Allowance,
    ) -> Result<Self, InvalidExpression> {
        if check.current.is_empty() {
            return Err(InvalidExpression::NoCurrent(at));
        }
        let mut compile = |field, source: &Option<String>| {
            let source = source.as_deref().filter(|source| !source.is_empty());
            source
                .map(|source| Expression::compile((at, field), source, allowance))
                .transpose()
        };
        let (failed, in_progress) = (
            compile("Failed", &check.failed)?,
            compile("InProgress", &check.in_progress)?,
        );
        Ok(Self {
            current: Expression::compile((at, "Current"), &check.current, allowance)?,
            in_progress,
            failed,
        })
    }

    fn expressions(&self) -> impl Iterator<Item = (&Expression, Status)> {
        let all = [
            (self.in_progress.as_ref(), Status::InProgress),
            (self.failed.as_ref(), Status::Failed),
            (Some(&self.current), Status::Current),
        ];
        all.into_iter()
            .filter_map(|(expression, status)| Some((expression?, status)))
    }

    /// Returns the status of an object; `None` if the work is cancelled.
    fn evaluate(&self, object: &Value, allowance: &mut Allowance) -> Option<Checked> {
        let mut variables = Variables::new();
        let fields = object.as_map().into_iter().flat_map(|map| map.iter());
        let named = fields.filter(|(name, _)| self.expressions().any(|(one, _)| one.program.uses(name)));
        for (name, value) in named {
            match allowance.convert(value) {
                Ok(value) => variables = variables.with(name, value),
                Err(error) => return ended(&self.current.source, error),
            }
        }
        for (Expression { source, program }, status) in self.expressions() {
            match program.is_true_with(&variables, allowance) {
                Ok(true) => return Some(Checked::Found(Health::new(status, ""))),
                Ok(false) => {}
                Err(error) => return ended(source, error),
            }
        }
        Some(Checked::Found(Health::new(Status::InProgress, "")))
    }
}

/// Returns the result of an expression that has no value; `None` if the work is cancelled.
fn ended(source: &str, error: EvalError) -> Option<Checked> {
    match error {
        EvalError::Cancelled => None,
        EvalError::AllSteps(_) | EvalError::AllMemory(_) => {
            let message = format!("{error}: the health checks end with the CEL expression '{source}'");
            Some(Checked::Exhausted(Health::new(Status::Failed, message)))
        }
        // A field that isn't there yet may appear.
        error => {
            let message = format!("failed to evaluate the CEL expression '{source}': {error}");
            Some(Checked::Found(Health::new(Status::Unknown, message)))
        }
    }
}

impl Expression {
    /// Compiles an expression. As in the original, its type may turn out to be another than bool only when it is evaluated.
    fn compile(
        (at, field): (usize, &'static str),
        source: &str,
        allowance: &mut Allowance,
    ) -> Result<Self, InvalidExpression> {
        allowance.spend(source.len()).map_err(InvalidExpression::Limit)?;
        let program = Program::compile(source, Scope::Any).map_err(|error| InvalidExpression::Compile {
            at,
            field,
            expression: source.to_owned(),
            error: error.located(source),
        })?;
        Ok(Self {
            source: source.to_owned(),
            program,
        })
    }
}

#[cfg(test)]
mod tests;
