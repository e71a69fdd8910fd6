//! What a pass must know before it may work: read live, each thing once.

use std::time::Duration;

use api::{
    Artifact, Fault, Reason, SourceView, Time, annotation, condition_type, conditions, group,
    kluctl::KluctlDeployment, revision,
};
use kube::{
    Api, Client, ResourceExt,
    api::ListParams,
    core::{ApiResource, DynamicObject, GroupVersionKind},
    discovery,
};
use runtime::{ObjectKey, client::describe};

use super::{
    events::NO_ARTIFACT,
    plan::{Facts, LastDeploy},
    results::failure_of,
    spec,
    status::since,
};

/// Objects of a list that are asked for at once.
const PAGE: u32 = 250;

/// Where a reference may point, and how long its absence is waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct References {
    /// Whether a reference may name another namespace.
    pub(crate) cross_namespace: bool,
    /// How soon a dependency that is not ready is looked at again.
    pub(crate) requeue_dependency: Duration,
}

/// Whether an object of the same name that brings its own source took over.
pub(crate) async fn handed_over(client: &Client, key: &ObjectKey) -> Result<bool, Fault> {
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &key.namespace, &successor());
    match found(api.get_metadata(&key.name).await) {
        Ok(found) => Ok(found.is_some()),
        Err(error) => {
            let message = format!(
                "cannot look for {} {key}: {}",
                group::GITOPS_KLUCTL,
                describe(&error)
            );
            Err(Fault::retry(Reason::Failed, message))
        }
    }
}

/// The kind that brings its own source.
fn successor() -> ApiResource {
    let kind = GroupVersionKind::gvk(group::GITOPS_KLUCTL, "v1beta1", "KluctlDeployment");
    ApiResource::from_gvk_with_plural(&kind, "kluctldeployments")
}

/// An object that may be absent, as its whole kind may. An unknown group is answered with a 404 that is no Status.
fn found<T>(answer: Result<T, kube::Error>) -> Result<Option<T>, kube::Error> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads the artifact that the source offers now.
pub(crate) async fn artifact(
    client: &Client,
    object: &KluctlDeployment,
    may: References,
) -> Result<Artifact, Fault> {
    let retry = spec::retry_interval(&object.spec);
    let Some(key) = spec::source_key(object) else {
        return Err(Fault::stall(Reason::InvalidSpec, "no source"));
    };
    may_refer(object, "GitRepository", &key, may, retry)?;
    let version = object
        .spec
        .source_ref
        .as_ref()
        .and_then(|source| source.api_version.as_deref());
    let version = version
        .and_then(|text| text.split_once('/'))
        .map_or(SOURCE_VERSION, |(_, version)| version);
    let failed = |what: String| Fault::retry(Reason::ArtifactFailed, format!("GitRepository/{key}: {what}"));
    match source(client, &key, version).await {
        Ok(Some(source)) => {
            let view = SourceView::of(&source).map_err(|error| failed(format!("cannot be read: {error}")))?;
            view.artifact
                .ok_or_else(|| Fault::wait(retry, Reason::ArtifactFailed, NO_ARTIFACT))
        }
        Ok(None) => {
            let message = format!("Source 'GitRepository/{key}' not found");
            Err(Fault::wait(retry, Reason::ArtifactFailed, message))
        }
        Err(error) => Err(failed(format!("cannot be read: {}", describe(&error)))),
    }
}

/// The version that sources are read in, where it is served and no other is named.
pub(crate) const SOURCE_VERSION: &str = "v1";

/// GitRepository in a version.
pub(crate) fn git_repository(version: &str) -> ApiResource {
    let kind = GroupVersionKind::gvk(group::SOURCE, version, "GitRepository");
    ApiResource::from_gvk_with_plural(&kind, "gitrepositories")
}

/// GitRepository in the newest version that is served, if any is.
pub(crate) async fn served_git_repository(client: &Client) -> Result<Option<ApiResource>, kube::Error> {
    let group = match discovery::group(client, group::SOURCE).await {
        Err(kube::Error::Discovery(_)) => return Ok(None),
        group => group?,
    };
    let kind = |version| {
        let all = group.versioned_resources(version).into_iter();
        all.map(|(resource, _)| resource)
            .find(|resource| resource.kind == "GitRepository")
    };
    Ok(group.versions().find_map(kind))
}

/// Reads a source in a version, or in the newest one that is served where that one is not.
async fn source(
    client: &Client,
    key: &ObjectKey,
    version: &str,
) -> Result<Option<DynamicObject>, kube::Error> {
    let get = async |resource: &ApiResource| {
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &key.namespace, resource);
        api.get(&key.name).await
    };
    match get(&git_repository(version)).await {
        Err(error) if is_unserved(&error) => match served_git_repository(client).await? {
            Some(resource) => found(get(&resource).await),
            None => Ok(None),
        },
        answer => found(answer),
    }
}

/// Whether it is the kind that is not there: what is said of an object names it.
pub(crate) fn is_unserved(error: &kube::Error) -> bool {
    let names = |status: &kube::core::Status| {
        let details = status.details.as_ref();
        details.is_some_and(|details| !details.name.is_empty())
    };
    matches!(error, kube::Error::Api(status) if status.code == 404 && !names(status))
}

/// Refuses a reference to another namespace where they are blocked.
fn may_refer(
    object: &KluctlDeployment,
    kind: &str,
    key: &ObjectKey,
    may: References,
    retry: Duration,
) -> Result<(), Fault> {
    if may.cross_namespace || object.namespace().as_deref() == Some(&key.namespace) {
        return Ok(());
    }
    let message = format!("can't access '{kind}/{key}', cross-namespace references have been blocked");
    Err(Fault::wait(retry, Reason::AccessDenied, message))
}

/// Checks that all dependencies are ready, and have seen what this object is about to deploy.
pub(crate) async fn dependencies(
    client: &Client,
    object: &KluctlDeployment,
    artifact: &Artifact,
    may: References,
) -> Result<(), Fault> {
    let wait = |message: String| Fault::wait(may.requeue_dependency, Reason::DependencyNotReady, message);
    for key in spec::dependencies(object) {
        may_refer(
            object,
            "KluctlDeployment",
            &key,
            may,
            spec::retry_interval(&object.spec),
        )?;
        let api: Api<KluctlDeployment> = Api::namespaced(client.clone(), &key.namespace);
        let dependency =
            found(api.get(&key.name).await).map_err(|error| wait(unreadable(&key, &describe(&error))))?;
        if let Some(message) = unready(object, &key, dependency.as_ref(), &artifact.revision) {
            return Err(wait(message));
        }
    }
    Ok(())
}

fn unreadable(key: &ObjectKey, why: &dyn std::fmt::Display) -> String {
    format!("unable to get '{key}' dependency: {why}")
}

/// Why a dependency keeps an object waiting; nothing if it does not. Pure.
pub(crate) fn unready(
    object: &KluctlDeployment,
    key: &ObjectKey,
    dependency: Option<&KluctlDeployment>,
    current: &str,
) -> Option<String> {
    let Some(dependency) = dependency else {
        return Some(unreadable(key, &"it does not exist"));
    };
    let status = dependency.status.clone().unwrap_or_default();
    let observed =
        status.observed_generation.is_some() && status.observed_generation == dependency.metadata.generation;
    if !observed || !conditions::is_true(&status.conditions, condition_type::READY) {
        return Some(format!("dependency '{key}' is not ready"));
    }
    let same_source = spec::source_key(dependency) == spec::source_key(object);
    let seen = status.last_attempted_revision.unwrap_or_default();
    (same_source && !revision::same(&seen, current)).then(|| format!("dependency '{key}' is not updated yet"))
}

/// Whether an object is still the one that was read: nobody changed its spec, suspended or removed it.
pub(crate) async fn is_unchanged(client: &Client, object: &KluctlDeployment) -> Result<bool, Fault> {
    let api: Api<KluctlDeployment> = Api::namespaced(client.clone(), &object.namespace().unwrap_or_default());
    let found = found(api.get_metadata(&object.name_any()).await).map_err(|error| {
        Fault::retry(
            Reason::Failed,
            format!("cannot read the object again: {}", describe(&error)),
        )
    })?;
    Ok(found.is_some_and(|found| {
        let (now, then) = (&found.metadata, &object.metadata);
        now.uid == then.uid && now.generation == then.generation && now.deletion_timestamp.is_none()
    }))
}

/// Lists all objects of the kind, live.
pub(crate) async fn all(
    client: &Client,
    namespace: Option<&str>,
) -> Result<Vec<KluctlDeployment>, kube::Error> {
    let api: Api<KluctlDeployment> = match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    list(&api, Some).await
}

/// Lists, live, the objects that bring their own source and deploy with a discriminator; none where there is no such
/// kind. Where they deploy to is not known: it may well be here.
pub(crate) async fn claiming_successors(
    client: &Client,
    namespace: Option<&str>,
    discriminator: &str,
) -> Result<Vec<ObjectKey>, kube::Error> {
    let resource = successor();
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let key = |object: DynamicObject| {
        claims(&object, discriminator)
            .then(|| ObjectKey::new(object.namespace().unwrap_or_default(), object.name_any()))
    };
    Ok(found(list(&api, key).await)?.unwrap_or_default())
}

/// Whether an object that brings its own source says that it deploys with a discriminator.
fn claims(object: &DynamicObject, discriminator: &str) -> bool {
    let noted = object.data.pointer("/status/targetKey/discriminator");
    noted.and_then(serde_json::Value::as_str) == Some(discriminator)
}

/// Lists what is to be kept of all objects.
async fn list<K, T>(api: &Api<K>, keep: impl Fn(K) -> Option<T>) -> Result<Vec<T>, kube::Error>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let mut kept = Vec::new();
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = api.list(&params).await?;
        kept.extend(page.items.into_iter().filter_map(&keep));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(kept),
        }
    }
}

/// How long ago this process did things that left no trace in the status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ages {
    /// Since the cluster was last compared with what was rendered.
    pub(crate) since_compared: Option<Duration>,
    /// Since readiness was last validated.
    pub(crate) since_validated: Option<Duration>,
}

/// Brings together what the plan is made of. Pure.
pub(crate) fn facts<'a>(
    object: &'a KluctlDeployment,
    hash: &'a str,
    dry_run: bool,
    ages: Ages,
    now: &Time,
) -> Facts<'a> {
    let spec = &object.spec;
    let status = object.status.as_ref();
    let deploy = status.and_then(|status| status.last_deploy_result.as_ref());
    let prune = status.and_then(|status| status.last_prune_result.as_ref());
    let validate = status.and_then(|status| status.last_validate_result.as_ref());
    let unhandled = |name: &str, handled: Option<&String>| {
        let asked = object.annotations().get(name);
        asked.is_some() && asked != handled
    };
    let shortest = |a: Option<Duration>, b: Option<Duration>| match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    Facts {
        hash,
        last_deploy: deploy.map(|last| LastDeploy {
            hash: last.objects_hash.as_deref().unwrap_or_default(),
            failed: failure_of(Some(last)).is_some(),
        }),
        spec_changed: status.and_then(|status| status.observed_generation) != object.metadata.generation,
        deploy_requested: unhandled(
            annotation::DEPLOY_REQUESTED_AT,
            status.and_then(|status| status.last_handled_deploy_at.as_ref()),
        ),
        reconcile_requested: unhandled(
            annotation::RECONCILE_REQUESTED_AT,
            status.and_then(|status| status.last_handled_reconcile_at.as_ref()),
        ),
        recovering: !status.is_some_and(|status| got_to_deploy(&status.conditions)),
        dry_run,
        deploy_on_changes: spec.deploy_on_changes,
        deploy_period: spec::deploy_period(spec),
        compare_on_request: spec.deploy_interval.is_none(),
        since_compared: shortest(ages.since_compared, deploy.map(|last| since(&last.time, now)))
            .unwrap_or_default(),
        prune: spec.prune,
        last_prune_failed: failure_of(prune).is_some(),
        validate: spec.validate,
        validate_period: spec::validate_period(spec),
        since_validated: validate.map(|last| {
            let noted = since(&last.time, now);
            ages.since_validated
                .map_or(noted, |remembered| remembered.min(noted))
        }),
        last_validate_failed: failure_of(validate).is_some(),
    }
}

/// Whether the last pass came as far as the deployment, by what it says in Ready.
fn got_to_deploy(conditions: &[api::Condition]) -> bool {
    let reached = [
        Reason::ReconciliationSucceeded,
        Reason::DeployFailed,
        Reason::ValidateFailed,
    ];
    conditions::get(conditions, condition_type::READY)
        .is_some_and(|ready| reached.iter().any(|reason| reason.as_str() == ready.reason))
}

#[cfg(test)]
#[path = "tests/observe.rs"]
mod tests;
