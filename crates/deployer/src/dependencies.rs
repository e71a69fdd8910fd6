//! The objects that an object depends on: of its own kind, or of any other.
//!
//! Objects of the same kind are read with the rights of the controller, in any namespace, and nothing but their readiness shows. Others, and
//! all that an expression reads, are read with the identity that the object deploys with, and in other namespaces only if these are not
//! blocked: expression by expression, a tenant could learn the content of any object otherwise.

use std::{sync::Arc, time::Duration};

use api::{DependencyReference, Fault, Reason, revision};
use cel::{Allowance, EvalError, Limits, Program, Scope, Variables};
use cluster::Cluster;
use jiff::Timestamp;
use kube::{
    Client, Resource,
    core::{ApiResource, DynamicObject},
};
use limits::compute;
use objects::{ObjectRef, kstatus, split_api_version};
use runtime::{ObjectKey, client::describe};
use serde::Serialize;
use serde_json::Value as Json;
use yaml::Value;

use crate::{
    Clusters, Consumer, Links, ReferenceRules, SourceArtifact, check::stopped, consumer, message,
    objects as live,
};

/// Groups whose objects must have a Ready condition that is True.
const TOOLKIT: &str = "toolkit.fluxcd.io";
const VARIABLES: [&str; 2] = DependencyReference::EXPRESSION_VARIABLES;

pub(crate) struct Dependencies<'a> {
    pub(crate) client: &'a Client,
    pub(crate) clusters: &'a Clusters,
    pub(crate) rules: ReferenceRules,
    /// If set, an object with an expression has to be ready by its status, too.
    pub(crate) additive: bool,
}

impl Dependencies<'_> {
    /// Checks that all dependencies are ready, and have seen the revision that the object is about to deploy.
    ///
    /// # Errors
    /// If some are missing, not ready, or behind, with the reasons of up to three; or if one is in a blocked namespace.
    pub(crate) async fn check<C: Consumer>(
        &self,
        object: &C::Object,
        artifact: Option<&SourceArtifact>,
    ) -> Result<(), Fault> {
        let kind = C::Object::kind(&());
        let mut expressions = ReadyExpressions::new(&C::key(object).namespace);
        let mut reasons = Vec::new();
        for reference in C::depends_on(object) {
            let is_own = consumer::is_kind(&reference, &kind);
            let key = match is_own {
                true => consumer::dependency_key(&reference, &C::key(object).namespace),
                false => ObjectKey::new(
                    reference.namespace.clone().unwrap_or_default(),
                    reference.name.clone(),
                ),
            };
            allow::<C>(self.rules, object, &reference, &key)?;
            let needs_content = needs_content(&reference, &kind);
            let reason = match needs_content {
                true => {
                    self.any::<C>(object, (&reference, &key), &mut expressions)
                        .await?
                }
                false => self.own_kind::<C>(&reference, &key, artifact).await,
            };
            let is_by_status = is_own && needs_content && self.additive;
            let reason = match reason {
                None if is_by_status => self.own_kind::<C>(&reference, &key, artifact).await,
                reason => reason,
            };
            reasons.extend(reason);
        }
        match reasons.is_empty() {
            true => Ok(()),
            false => Err(self.wait(message::waits(&reasons))),
        }
    }

    fn wait(&self, message: String) -> Fault {
        Fault::wait(self.rules.requeue_dependency, Reason::DependencyNotReady, message)
    }

    async fn own_kind<C: Consumer>(
        &self,
        reference: &DependencyReference,
        key: &ObjectKey,
        artifact: Option<&SourceArtifact>,
    ) -> Option<String> {
        let resource = ApiResource::erase::<C::Object>(&());
        let api = live::api(self.client, &resource, Some(&key.namespace));
        match live::found(api.get(&key.name).await) {
            Ok(Some(_)) if reference.ready == Some(false) => None,
            Ok(found) => waits_for::<C>(key, found.as_ref(), artifact),
            Err(error) => Some(C::unreadable_dependency(key, &describe(&error))),
        }
    }

    /// Returns the reason to wait for an object that is read with the identity of the referring one.
    async fn any<C: Consumer>(
        &self,
        object: &C::Object,
        (reference, key): (&DependencyReference, &ObjectKey),
        expressions: &mut ReadyExpressions,
    ) -> Result<Option<String>, Fault> {
        let target = target::<C>(reference, key);
        let is_own = consumer::is_kind(reference, &C::Object::kind(&()));
        let missing = |why: &str| match is_own {
            true => C::unreadable_dependency(key, why),
            false => format!("dependency '{}' not found: {why}", name(&target)),
        };
        let found = match self.cluster::<C>(object, &target).await?.get(&target).await {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(Some(missing("it does not exist"))),
            Err(error) => return Ok(Some(missing(&error.to_string()))),
        };
        if reference.ready == Some(false) {
            return Ok(None);
        }
        match expression(reference) {
            Some(source) => {
                let name = if is_own { key.to_string() } else { name(&target) };
                // Objects of the own kind are checked with the revision of their source.
                let checks = self.additive && !is_own;
                let by_status = checks.then(|| by_status(&target, &found)).flatten();
                let expression = Expression {
                    source: source.to_owned(),
                    name,
                    hides_data: target.is("", "Secret"),
                };
                let reason = expressions.evaluate(expression, object, found).await?;
                Ok(reason.or(by_status))
            }
            None => Ok(by_status(&target, &found)),
        }
    }

    /// Returns the cluster of the controller with the identity that reads a dependency.
    async fn cluster<C: Consumer>(&self, object: &C::Object, target: &ObjectRef) -> Result<Cluster, Fault> {
        let namespace = C::key(object).namespace;
        let account = match reader::<C>(object, target) {
            Reader::Controller => return Ok(self.clusters.local()),
            Reader::DefaultAccount => None,
            Reader::Account(name) => name,
        };
        let home = self.clusters.of(&namespace, None, account).await;
        let retry: Duration = C::retry_interval(object);
        Ok(home
            .map_err(|error| Fault::wait(retry, error.reason(), error.to_string()))?
            .cluster)
    }
}

/// Returns true if more is read of an object than the readiness of one of the own kind. Pure.
fn needs_content(reference: &DependencyReference, own_kind: &str) -> bool {
    !consumer::is_kind(reference, own_kind) || expression(reference).is_some()
}

/// Refuses to read the content of an object of another namespace if such references are blocked. Pure.
pub(crate) fn allow<C: Consumer>(
    rules: ReferenceRules,
    object: &C::Object,
    reference: &DependencyReference,
    key: &ObjectKey,
) -> Result<(), Fault> {
    let own_kind = C::Object::kind(&());
    if !needs_content(reference, &own_kind) {
        return Ok(());
    }
    let kind = reference.kind.as_deref().filter(|kind| !kind.is_empty());
    rules.allow(
        &C::key(object).namespace,
        kind.unwrap_or(&own_kind),
        key,
        C::retry_interval(object),
    )
}

/// The identity that reads the content of a dependency.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reader<'a> {
    Controller,
    /// The default account of the process, or the controller without one.
    DefaultAccount,
    /// The account of the object; the default one if absent.
    Account(Option<&'a str>),
}

/// Returns the identity that reads a dependency of an object. The account of an object that deploys to a remote cluster is one of that cluster, and
/// says nothing about this one. Pure.
pub(crate) fn reader<'a, C: Consumer>(object: &'a C::Object, target: &ObjectRef) -> Reader<'a> {
    if !C::is_remote(object) {
        return Reader::Account(C::service_account_name(object));
    }
    let is_own = target.kind == C::Object::kind(&()) && target.group == C::Object::group(&());
    let is_near = target.namespace.as_deref() == Some(C::key(object).namespace.as_str());
    match is_own && is_near {
        true => Reader::Controller,
        false => Reader::DefaultAccount,
    }
}

fn expression(reference: &DependencyReference) -> Option<&str> {
    reference
        .ready_expr
        .as_deref()
        .filter(|source| !source.is_empty())
}

/// Returns the object that a reference names.
fn target<C: Consumer>(reference: &DependencyReference, key: &ObjectKey) -> ObjectRef {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let api_version =
        given(&reference.api_version).unwrap_or_else(|| C::Object::api_version(&()).into_owned());
    let (group, version) = split_api_version(&api_version);
    ObjectRef {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: given(&reference.kind).unwrap_or_else(|| C::Object::kind(&()).into_owned()),
        namespace: Some(key.namespace.clone()).filter(|namespace| !namespace.is_empty()),
        name: key.name.clone(),
    }
}

/// Formats an object as in `apps/v1/Deployment/shop/web`.
fn name(target: &ObjectRef) -> String {
    let group = match target.group.as_str() {
        "" => String::new(),
        group => format!("{group}/"),
    };
    let namespace = target.namespace.as_ref();
    let namespace = namespace
        .map(|namespace| format!("{namespace}/"))
        .unwrap_or_default();
    format!(
        "{group}{}/{}/{namespace}{}",
        target.version, target.kind, target.name
    )
}

/// Compiles the expression about a dependency with this name. Pure.
///
/// # Errors
/// A stalling fault if it is not valid, or not of the type bool.
pub(crate) fn compile(name: &str, source: &str) -> Result<Program, Fault> {
    let compiled = Program::compile_bool(source, Scope::Declared(&VARIABLES));
    compiled.map_err(|error| {
        let error = error.located(source);
        let message = format!(
            "failed to evaluate dependency {name}: failed to parse the CEL expression '{source}': {error}"
        );
        Fault::stall(Reason::InvalidCELExpression, message)
    })
}

/// A `readyExpr`, with the name of its dependency.
struct Expression {
    source: String,
    name: String,
    /// True if the data of the dependency are hidden from the expression.
    hides_data: bool,
}

/// The expressions of an object's dependencies. They are evaluated one by one on a thread of its namespace, within [`Limits::OF_PASS`] for
/// all of them.
struct ReadyExpressions {
    namespace: String,
    /// The object itself, as expressions read it, after the first evaluation.
    itself: Option<cel::Value>,
    allowance: Allowance,
}

impl ReadyExpressions {
    fn new(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            itself: None,
            allowance: Allowance::new(Limits::OF_PASS),
        }
    }

    /// Returns the reason to wait for a dependency.
    async fn evaluate<O>(
        &mut self,
        expression: Expression,
        object: &O,
        dependency: Value,
    ) -> Result<Option<String>, Fault>
    where
        O: Serialize + Clone + Send + 'static,
    {
        let unread = self.itself.is_none().then(|| object.clone());
        let (known, left) = (self.itself.clone(), self.allowance.clone());
        let evaluated = compute(&self.namespace, move |cancelled| {
            let mut allowance = left.with_cancellation(Arc::clone(cancelled));
            let read = |object: O| {
                let json = serde_json::to_value(object).unwrap_or_default();
                allowance.convert(&Value::from_json(json))
            };
            let itself = known.map_or_else(|| unread.map(read).transpose(), |known| Ok(Some(known)));
            let itself = itself.map(|itself| itself.unwrap_or(cel::Value::Null));
            let reason = match &itself {
                Ok(itself) => by_expression(&expression, itself, dependency, &mut allowance),
                Err(error) => Ok(Some(unevaluated(&expression, error))),
            };
            (reason, itself.ok(), allowance)
        });
        let (reason, itself, allowance) = evaluated.await.ok_or_else(stopped)?;
        (self.itself, self.allowance) = (itself, allowance);
        reason
    }
}

/// Returns the reason to wait for an object by an expression. A value that is not there yet waits. Pure.
fn by_expression(
    expression: &Expression,
    itself: &cel::Value,
    mut dependency: Value,
    allowance: &mut Allowance,
) -> Result<Option<String>, Fault> {
    if expression.hides_data
        && let Some(fields) = dependency.as_map_mut()
    {
        fields.remove("data");
        fields.remove("stringData");
    }
    let compiled = allowance.spend(expression.source.len());
    let program = compile(&expression.name, &expression.source)?;
    let holds = compiled.and_then(|()| {
        let variables = Variables::new()
            .with("self", itself.clone())
            .with("dep", allowance.convert(&dependency)?);
        program.is_true_with(&variables, allowance)
    });
    Ok(match holds {
        Ok(true) => None,
        Ok(false) => Some(format!(
            "dependency '{}' is not ready according to readyExpr eval",
            expression.name
        )),
        Err(error) => Some(unevaluated(expression, &error)),
    })
}

/// Describes an expression without a value.
fn unevaluated(Expression { source, name, .. }: &Expression, error: &EvalError) -> String {
    match error {
        EvalError::AllSteps(_) | EvalError::AllMemory(_) => {
            format!("dependency '{name}' is not checked: {error}, with the CEL expression '{source}'")
        }
        error => format!("failed to evaluate the CEL expression '{source}': {error}"),
    }
}

/// Returns the reason to wait for an object by kstatus. Pure, but for the clock.
fn by_status(target: &ObjectRef, found: &Value) -> Option<String> {
    let health = kstatus::status(found, Timestamp::now());
    let is_toolkit = target.group.ends_with(TOOLKIT);
    if health.status != kstatus::Status::Current {
        return Some(format!(
            "dependency '{}' is not ready: status {}",
            name(target),
            health.status
        ));
    }
    let conditions = found.to_json();
    let conditions = conditions.pointer("/status/conditions").and_then(Json::as_array);
    let is_ready = conditions.into_iter().flatten().any(|condition| {
        condition.get("type").and_then(Json::as_str) == Some(api::condition_type::READY)
            && condition.get("status").and_then(Json::as_str) == Some("True")
    });
    (is_toolkit && !is_ready).then(|| format!("dependency '{}' is not ready: status Unknown", name(target)))
}

/// Returns the reason to wait for a dependency of the same kind; `None` if there is none. A dependency from the same source must have
/// attempted the same revision. Pure.
pub(crate) fn waits_for<C: Consumer>(
    key: &ObjectKey,
    dependency: Option<&DynamicObject>,
    artifact: Option<&SourceArtifact>,
) -> Option<String> {
    let Some(dependency) = dependency else {
        return Some(C::unreadable_dependency(key, "it does not exist"));
    };
    let Links {
        source,
        reached_revision,
        ready,
        ..
    } = C::links(dependency);
    if !ready {
        return Some(format!("dependency '{key}' is not ready"));
    }
    let artifact = artifact.filter(|artifact| source.as_ref() == Some(&artifact.source))?;
    let reached = reached_revision.unwrap_or_default();
    (!revision::same(&reached, artifact.revision())).then(|| C::outdated_dependency(key))
}

#[cfg(test)]
mod tests;
