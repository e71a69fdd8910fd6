//! Requests the reconciliation of the objects of a Receiver.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use api::{
    annotation, group,
    notification::{Receiver, ReceiverResource},
};
use cel::EvalError;
use futures::{StreamExt as _, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams},
    core::GroupVersionKind,
};
use limits::{FairPermits, compute};
use runtime::names::is_path_segment;
use serde_json::{Value as Json, json};

use super::filters::RequestFilters;
use crate::{log_limit, served::ServedKinds};

const ANSWER: Duration = Duration::from_secs(10);
/// Maximum number of objects of a request that are annotated at the same time.
const AT_ONCE: usize = 8;
/// Maximum number of requests to the API server for all webhooks at the same time.
const REQUESTS: usize = 64;
/// Maximum length of a selector, which is a part of URLs, in bytes.
const MAX_SELECTOR: usize = 16 << 10;
/// Maximum number of objects of a page of a list.
const PAGE: u32 = 250;

/// Permits for requests to the API server, shared by the namespaces of Receivers.
static PERMITS: LazyLock<FairPermits> = LazyLock::new(|| FairPermits::new(REQUESTS));

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum TargetError {
    #[error("references to other namespaces are not allowed (--no-cross-namespace-refs)")]
    Foreign,
    #[error("apiVersion is required for the kind {0}")]
    NoVersion(String),
    #[error("matchLabels are required with the name *")]
    NoLabels,
    #[error("the reference is malformed")]
    Malformed,
    #[error("not found")]
    Missing,
    #[error("the API server did not answer in time")]
    Timeout,
    #[error("{0}")]
    Refused(String),
    #[error("the filter has no result: {0}")]
    Filter(String),
    /// No further object of the request gets a result.
    #[error("the filters were given up: {0}")]
    Exhausted(String),
}

impl From<EvalError> for TargetError {
    fn from(error: EvalError) -> Self {
        match error {
            EvalError::AllSteps(_) | EvalError::AllMemory(_) | EvalError::Cancelled => {
                Self::Exhausted(error.to_string())
            }
            _ => Self::Filter(error.to_string()),
        }
    }
}

/// Requests reconciliations with the controller's own rights.
pub(super) struct Targets {
    client: Client,
    kinds: ServedKinds,
    own_namespace_only: bool,
}

/// A resource whose kind and namespace are known.
struct Target {
    api: Api<DynamicObject>,
    kind: ApiResource,
    namespace: String,
    /// Namespace of the Receiver, whose share of all permits its requests take.
    owner: String,
}

impl Targets {
    /// With `own_namespace_only`, Receivers must not name other namespaces.
    pub(super) fn new(client: Client, own_namespace_only: bool) -> Self {
        Self {
            kinds: ServedKinds::new(client.clone()),
            client,
            own_namespace_only,
        }
    }

    /// Annotates all objects of a Receiver that pass its filters. Returns false if one of them could not be annotated.
    pub(super) async fn annotate(&self, receiver: &Receiver, mut filters: Option<RequestFilters>) -> bool {
        let mut all = true;
        for (at, resource) in receiver.spec.resources.iter().enumerate() {
            let Err(error) = self.resource(receiver, at, resource, &mut filters).await else {
                continue;
            };
            all = false;
            let (name, namespace) = (receiver.name_any(), receiver.namespace().unwrap_or_default());
            if let Some(left_out) = log_limit::WEBHOOKS.admit(&namespace, &name, Instant::now()) {
                tracing::error!(
                    receiver = name, namespace, resource = format!("spec.resources[{at}]"), left_out,
                    %error, "a resource was not annotated"
                );
            }
            if matches!(error, TargetError::Exhausted(_)) {
                break;
            }
        }
        all
    }

    async fn resource(
        &self,
        receiver: &Receiver,
        at: usize,
        resource: &ReceiverResource,
        filters: &mut Option<RequestFilters>,
    ) -> Result<(), TargetError> {
        let target = self.resolve(receiver, resource).await?;
        let judged = filters.as_ref().is_some_and(|filters| filters.filters.judges(at));
        if resource.name != "*" {
            let object = match judged {
                true => {
                    answer(&target, target.api.get_metadata(&resource.name))
                        .await?
                        .metadata
                }
                false => ObjectMeta {
                    name: Some(resource.name.clone()),
                    ..ObjectMeta::default()
                },
            };
            return self.page(&target, at, vec![object], filters, judged).await;
        }
        let selector = selector(resource.match_labels.as_ref())?;
        let mut params = ListParams::default().labels(&selector).limit(PAGE);
        let (mut first, mut found) = (Ok(()), 0_usize);
        loop {
            let page = answer(&target, target.api.list_metadata(&params)).await?;
            found += page.items.len();
            let objects = page.items.into_iter().map(|item| item.metadata).collect();
            let result = self.page(&target, at, objects, filters, judged).await;
            if matches!(result, Err(TargetError::Exhausted(_))) {
                return result;
            }
            first = first.and(result);
            match page.metadata.continue_.filter(|next| !next.is_empty()) {
                Some(next) => params = params.continue_token(&next),
                None => break,
            }
        }
        let kind = &target.kind.kind;
        if found == 0
            && log_limit::WEBHOOKS
                .admit(&target.owner, kind, Instant::now())
                .is_some()
        {
            tracing::info!(
                kind,
                namespace = target.namespace,
                "no object has the labels of the Receiver"
            );
        }
        first
    }

    /// Annotates the objects of a page that pass the filters of a resource. Returns the first error after all of them.
    async fn page(
        &self,
        target: &Target,
        at: usize,
        mut objects: Vec<ObjectMeta>,
        filters: &mut Option<RequestFilters>,
        judged: bool,
    ) -> Result<(), TargetError> {
        for object in &mut objects {
            object.managed_fields = None;
        }
        let mut first = Ok(());
        let names = if judged {
            let (names, result) = passing(target, at, objects, filters).await;
            first = result;
            names
        } else {
            objects
                .into_iter()
                .map(|object| object.name.unwrap_or_default())
                .collect()
        };
        let mut results = stream::iter(names)
            .map(|name| async move { request_reconciliation(target, &name).await })
            .buffer_unordered(AT_ONCE);
        while let Some(result) = results.next().await {
            first = first.and(result);
        }
        first
    }

    async fn resolve(&self, receiver: &Receiver, resource: &ReceiverResource) -> Result<Target, TargetError> {
        let own = receiver.namespace().unwrap_or_default();
        let namespace = resource.namespace.clone().unwrap_or_else(|| own.clone());
        if self.own_namespace_only && namespace != own {
            return Err(TargetError::Foreign);
        }
        let version = match resource
            .api_version
            .as_deref()
            .filter(|version| !version.is_empty())
        {
            Some(version) => version,
            None => default_version(&resource.kind)
                .ok_or_else(|| TargetError::NoVersion(resource.kind.clone()))?,
        };
        let name = Some(resource.name.as_str())
            .filter(|name| *name != "*")
            .unwrap_or("x");
        let parts = [resource.kind.as_str(), &namespace, name];
        if version.split('/').count() > 2 || !version.split('/').chain(parts).all(is_path_segment) {
            return Err(TargetError::Malformed);
        }
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let gvk = GroupVersionKind::gvk(group, version, &resource.kind);
        let found = tokio::time::timeout(ANSWER, self.kinds.find(&gvk)).await;
        let kind = match found {
            Ok(Some(kind)) => kind,
            Ok(None) => {
                return Err(TargetError::Refused(format!(
                    "the cluster does not serve {} {}",
                    gvk.api_version(),
                    gvk.kind
                )));
            }
            Err(_) => return Err(TargetError::Timeout),
        };
        Ok(Target {
            api: Api::namespaced_with(self.client.clone(), &namespace, &kind),
            kind,
            namespace,
            owner: own,
        })
    }
}

/// Returns the names of the objects that pass the filters of a resource, and the first error. The filters are gone after work that ended
/// early.
async fn passing(
    target: &Target,
    at: usize,
    objects: Vec<ObjectMeta>,
    filters: &mut Option<RequestFilters>,
) -> (Vec<String>, Result<(), TargetError>) {
    let gone = || TargetError::Exhausted("an internal error".to_owned());
    let (objects, mut names, mut done, mut first) = (Arc::new(objects), Vec::new(), 0, Ok(()));
    while done < objects.len() {
        let Some(mut owned) = filters.take() else {
            return (names, first.and(Err(gone())));
        };
        let (shared, kind) = (Arc::clone(&objects), target.kind.clone());
        let judged = compute(&target.owner, move |cancelled| {
            let rest = shared.get(done..).unwrap_or_default();
            let results = owned.pass_some(at, &kind, rest, cancelled);
            (owned, results)
        });
        let Some((owned, results)) = judged.await else {
            return (names, first.and(Err(gone())));
        };
        *filters = Some(owned);
        let rest = objects.get(done..).unwrap_or_default();
        done += results.len().max(1);
        for (object, result) in rest.iter().zip(results) {
            match result.map_err(TargetError::from) {
                Ok(true) => names.extend(object.name.clone()),
                Ok(false) => tracing::debug!(object = object.name, "the filter leaves the object out"),
                Err(error @ TargetError::Exhausted(_)) => return (names, Err(error)),
                Err(error) => first = first.and(Err(error)),
            }
        }
    }
    (names, first)
}

/// Requests the reconciliation of an object.
async fn request_reconciliation(target: &Target, name: &str) -> Result<(), TargetError> {
    let annotations = requests(target, name).await?;
    let patch = json!({"metadata": {"annotations": annotations}});
    let params = PatchParams {
        field_manager: Some(crate::name::NAME.to_owned()),
        ..PatchParams::default()
    };
    answer(
        target,
        target.api.patch_metadata(name, &params, &Patch::Merge(patch)),
    )
    .await?;
    let (kind, namespace) = (&target.kind.kind, &target.namespace);
    let object = format!("{kind}/{namespace}/{name}");
    if let Some(left_out) = log_limit::ANNOTATED.admit(&target.owner, &object, Instant::now()) {
        tracing::info!(left_out, "resource '{kind}/{name}.{namespace}' annotated");
    }
    Ok(())
}

/// Returns the annotations that request a reconciliation of an object.
async fn requests(target: &Target, name: &str) -> Result<Json, TargetError> {
    let now = jiff::Timestamp::now().to_string();
    let mut annotations = json!({ annotation::RECONCILE_REQUESTED_AT: now });
    if target.kind.group == group::GITOPS_KLUCTL {
        // A suspended object would obey the original's request, too.
        let object = answer(target, target.api.get(name)).await?;
        let suspended = object.data.pointer("/spec/suspend").and_then(Json::as_bool) == Some(true);
        if let Some(fields) = annotations.as_object_mut().filter(|_| !suspended) {
            fields.insert(annotation::REQUEST_RECONCILE.to_owned(), now.into());
        }
    }
    Ok(annotations)
}

async fn answer<T>(
    target: &Target,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, TargetError> {
    let _permit = PERMITS.acquire(&target.owner).await;
    match tokio::time::timeout(ANSWER, request).await {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Err(TargetError::Missing),
        Ok(Err(error)) => Err(TargetError::Refused(runtime::client::describe(&error))),
        Err(_) => Err(TargetError::Timeout),
    }
}

/// Returns the selector for labels; fails for strings that are not labels and values.
fn selector(labels: Option<&BTreeMap<String, String>>) -> Result<String, TargetError> {
    let labels = labels
        .filter(|labels| !labels.is_empty())
        .ok_or(TargetError::NoLabels)?;
    let plain = |text: &str| {
        text.chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
    };
    if !labels
        .iter()
        .all(|(name, value)| !name.is_empty() && plain(name) && plain(value))
    {
        return Err(TargetError::Malformed);
    }
    let length = |(name, value): (&String, &String)| name.len() + value.len() + 2;
    if labels.iter().map(length).sum::<usize>() > MAX_SELECTOR {
        return Err(TargetError::Malformed);
    }
    let pairs: Vec<_> = labels
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    Ok(pairs.join(","))
}

/// Returns the default API version of a kind, as in the original.
fn default_version(kind: &str) -> Option<&'static str> {
    match kind {
        "Bucket" | "GitRepository" | "OCIRepository" | "HelmChart" | "HelmRepository" => {
            Some("source.toolkit.fluxcd.io/v1")
        }
        "ImageRepository" => Some("image.toolkit.fluxcd.io/v1"),
        "ArtifactGenerator" => Some("source.extensions.fluxcd.io/v1beta1"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_made_of_labels_alone() {
        let of = |pairs: &[(&str, &str)]| {
            let labels = pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            selector(Some(&labels.collect()))
        };
        assert_eq!(
            of(&[("app", "shop"), ("x.io/a", "")]).as_deref(),
            Ok("app=shop,x.io/a=")
        );
        assert_eq!(
            (of(&[]), selector(None)),
            (Err(TargetError::NoLabels), Err(TargetError::NoLabels))
        );
        for pair in [
            ("app", "a,b"),
            ("!app", ""),
            ("app in (a)", "x"),
            ("", "x"),
            ("a", "b=c"),
        ] {
            assert_eq!(of(&[pair]), Err(TargetError::Malformed), "{pair:?}");
        }
        assert!(of(&[("app", &"a".repeat(63))]).is_ok());
        assert_eq!(of(&[("app", &"a".repeat(20_000))]), Err(TargetError::Malformed));
    }
}
