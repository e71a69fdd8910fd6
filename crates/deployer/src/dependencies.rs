//! The objects that an object depends on: of its own kind, or of any other.
//!
//! Objects of the same kind are read with the rights of the controller, and nothing but their readiness shows. Others, and all that an
//! expression reads, are read with the identity that the object deploys with: expression by expression, a tenant could learn the content
//! of any object otherwise.

use std::time::Duration;

use api::{DependencyReference, Fault, Reason, revision};
use cel::{Program, Scope, Variables};
use cluster::Cluster;
use jiff::Timestamp;
use kube::{
    Client, Resource,
    core::{ApiResource, DynamicObject},
};
use objects::{ObjectRef, kstatus, split_api_version};
use runtime::{ObjectKey, client::describe};
use serde_json::Value as Json;
use yaml::Value;

use crate::{Clusters, Consumer, Links, ReferenceRules, SourceArtifact, consumer, objects as live};

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
    /// If one is missing, in a blocked namespace, not ready, or behind.
    pub(crate) async fn check<C: Consumer>(
        &self,
        object: &C::Object,
        artifact: Option<&SourceArtifact>,
    ) -> Result<(), Fault> {
        let kind = C::Object::kind(&());
        for reference in C::depends_on(object) {
            let is_own = consumer::is_kind(&reference, &kind);
            let key = match is_own {
                true => consumer::dependency_key(&reference, &C::key(object).namespace),
                false => ObjectKey::new(
                    reference.namespace.clone().unwrap_or_default(),
                    reference.name.clone(),
                ),
            };
            self.allow::<C>(object, &reference, &key)?;
            let needs_content = !is_own || expression(&reference).is_some();
            let reason = match needs_content {
                true => self.any::<C>(object, &reference, &key).await?,
                false => self.own_kind::<C>(&reference, &key, artifact).await,
            };
            let is_by_status = is_own && needs_content && self.additive;
            let reason = match reason {
                None if is_by_status => self.own_kind::<C>(&reference, &key, artifact).await,
                reason => reason,
            };
            if let Some(reason) = reason {
                return Err(self.wait(reason));
            }
        }
        Ok(())
    }

    fn wait(&self, message: String) -> Fault {
        Fault::wait(self.rules.requeue_dependency, Reason::DependencyNotReady, message)
    }

    fn allow<C: Consumer>(
        &self,
        object: &C::Object,
        reference: &DependencyReference,
        key: &ObjectKey,
    ) -> Result<(), Fault> {
        let own = C::key(object).namespace;
        let kind = reference.kind.clone().filter(|kind| !kind.is_empty());
        let kind = kind.unwrap_or_else(|| C::Object::kind(&()).into_owned());
        self.rules.allow(&own, &kind, key, C::retry_interval(object))
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
        reference: &DependencyReference,
        key: &ObjectKey,
    ) -> Result<Option<String>, Fault> {
        let target = target::<C>(reference, key);
        let is_own = consumer::is_kind(reference, &C::Object::kind(&()));
        let missing = |why: &str| match is_own {
            true => C::unreadable_dependency(key, why),
            false => format!("dependency '{}' not found: {why}", name(&target)),
        };
        let found = match self.cluster::<C>(object).await?.get(&target).await {
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
                let reason = by_expression(source, object, (&target, &name), &found)?;
                // Objects of the own kind are checked with the revision of their source.
                let checks = self.additive && !is_own;
                Ok(reason.or_else(|| by_status(&target, &found).filter(|_| checks)))
            }
            None => Ok(by_status(&target, &found)),
        }
    }

    async fn cluster<C: Consumer>(&self, object: &C::Object) -> Result<Cluster, Fault> {
        let account = C::service_account_name(object);
        let home = self.clusters.of(&C::key(object).namespace, None, account).await;
        let retry: Duration = C::retry_interval(object);
        Ok(home
            .map_err(|error| Fault::wait(retry, error.reason(), error.to_string()))?
            .cluster)
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

/// Checks an expression. Pure.
///
/// # Errors
/// A stalling fault if it is not valid, or not of the type bool.
pub(crate) fn check_expression(path: &str, source: &str) -> Result<(), Fault> {
    let compiled = Program::compile_bool(source, Scope::Declared(&VARIABLES));
    compiled.map(drop).map_err(|error| {
        let error = error.located(source);
        let message = format!("{path}: failed to parse the CEL expression '{source}': {error}");
        Fault::stall(Reason::InvalidCELExpression, message)
    })
}

/// Returns the reason to wait for an object by an expression. A value that is not there yet waits. Pure.
fn by_expression(
    source: &str,
    object: &impl serde::Serialize,
    (target, name): (&ObjectRef, &str),
    found: &Value,
) -> Result<Option<String>, Fault> {
    check_expression("spec.dependsOn[].readyExpr", source)?;
    let Ok(program) = Program::compile_bool(source, Scope::Declared(&VARIABLES)) else {
        return Ok(None);
    };
    let mut dependency = found.to_json();
    hide_secret(&mut dependency, target);
    let itself = serde_json::to_value(object).unwrap_or_default();
    let variables = Variables::new()
        .with("self", cel::Value::from(&Value::from_json(itself)))
        .with("dep", cel::Value::from(&Value::from_json(dependency)));
    Ok(match program.is_true(&variables) {
        Ok(true) => None,
        Ok(false) => Some(format!(
            "dependency '{name}' is not ready according to readyExpr eval"
        )),
        Err(error) => Some(format!(
            "failed to evaluate the CEL expression '{source}': {error}"
        )),
    })
}

fn hide_secret(object: &mut Json, target: &ObjectRef) {
    if target.is("", "Secret")
        && let Some(map) = object.as_object_mut()
    {
        map.retain(|field, _| !matches!(field.as_str(), "data" | "stringData"));
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
mod tests {
    use serde_json::json;

    use super::*;

    fn target(group: &str, kind: &str) -> ObjectRef {
        ObjectRef {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            namespace: Some("shop".to_owned()),
            name: "web".to_owned(),
        }
    }

    fn evaluate(source: &str, kind: &str, dependency: Json) -> Result<Option<String>, Fault> {
        let itself = json!({ "spec": { "target": "prod" } });
        let target = target("", kind);
        by_expression(
            source,
            &itself,
            (&target, &name(&target)),
            &Value::from_json(dependency),
        )
    }

    #[test]
    fn expression_decides_and_waits_for_values_that_are_missing() {
        let source = "dep.status.ready == true && self.spec.target == 'prod'";
        let ready = evaluate(source, "Thing", json!({ "status": { "ready": true } }));
        assert_eq!(ready, Ok(None));
        let unready = evaluate(source, "Thing", json!({ "status": { "ready": false } }));
        let text = "dependency 'v1/Thing/shop/web' is not ready according to readyExpr eval";
        assert_eq!(unready, Ok(Some(text.to_owned())));
        let observed = "dep.metadata.generation + 1 == 3";
        let counted = evaluate(observed, "Thing", json!({ "metadata": { "generation": 2 } }));
        assert_eq!(counted, Ok(None), "integers stay integers");
        let missing = evaluate(source, "Thing", json!({})).unwrap().unwrap();
        assert!(
            missing.starts_with(&format!("failed to evaluate the CEL expression '{source}'")),
            "{missing}"
        );
    }

    #[test]
    fn invalid_expression_stalls() {
        for source in ["dep.", "1 + 1", "other.x == 1"] {
            let fault = evaluate(source, "Thing", json!({})).unwrap_err();
            assert_eq!(
                (fault.class, fault.reason),
                (api::Class::Stall, Reason::InvalidCELExpression),
                "{source}"
            );
        }
    }

    #[test]
    fn expression_does_not_see_the_data_of_a_secret() {
        let secret = json!({ "metadata": { "name": "web" }, "data": { "password": "cw==" }, "stringData": { "a": "b" } });
        let sees = |kind: &str| evaluate("has(dep.data) || has(dep.stringData)", kind, secret.clone());
        assert!(sees("Secret").unwrap().is_some());
        assert_eq!(sees("ConfigMap"), Ok(None));
    }

    #[test]
    fn object_of_another_kind_must_be_current() {
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "generation": 2 }, "spec": { "replicas": 1 }, "status": { "observedGeneration": 1 },
        });
        let waits = by_status(&target("apps", "Deployment"), &Value::from_json(deployment));
        assert_eq!(
            waits.as_deref(),
            Some("dependency 'apps/v1/Deployment/shop/web' is not ready: status InProgress")
        );
        let source =
            json!({ "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": {} });
        let source = Value::from_json(source);
        assert!(by_status(&target("source.toolkit.fluxcd.io", "GitRepository"), &source).is_some());
        let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": {} });
        assert_eq!(by_status(&target("", "ConfigMap"), &Value::from_json(map)), None);
    }
}
