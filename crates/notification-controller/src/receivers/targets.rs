//! Requests the reconciliation of the objects of a Receiver.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use api::{
    annotation, group,
    notification::{Receiver, ReceiverResource},
};
use cel::Value;
use futures::{StreamExt as _, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams},
    core::GroupVersionKind,
};
use serde_json::{Value as Json, json};

use super::{compute::compute, filters::Filters};
use crate::served::{ServedKinds, is_segment};

const ANSWER: Duration = Duration::from_secs(10);
/// Maximum number of objects of a request that are annotated at the same time.
const AT_ONCE: usize = 8;
/// Maximum number of objects of a page of a list.
const PAGE: u32 = 250;
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
    pub(super) async fn annotate(&self, receiver: &Receiver, filters: Option<Arc<Filters>>) -> bool {
        let mut all = true;
        for (at, resource) in receiver.spec.resources.iter().enumerate() {
            let filters = filters.clone().filter(|filters| filters.judges(at));
            if let Err(error) = self.resource(receiver, at, resource, filters).await {
                tracing::error!(
                    receiver = receiver.name_any(), namespace = receiver.namespace(), resource = format!("spec.resources[{at}]"),
                    %error, "a resource was not annotated"
                );
                all = false;
            }
        }
        all
    }

    async fn resource(
        &self,
        receiver: &Receiver,
        at: usize,
        resource: &ReceiverResource,
        filters: Option<Arc<Filters>>,
    ) -> Result<(), TargetError> {
        let target = self.resolve(receiver, resource).await?;
        let objects = if resource.name == "*" {
            let selector = selector(resource.match_labels.as_ref())?;
            let found = list(&target.api, &selector).await?;
            if found.is_empty() {
                tracing::info!(
                    kind = target.kind.kind,
                    namespace = target.namespace,
                    "no object has the labels of the Receiver"
                );
            }
            found
        } else if filters.is_some() {
            vec![answer(target.api.get_metadata(&resource.name)).await?.metadata]
        } else {
            vec![ObjectMeta {
                name: Some(resource.name.clone()),
                ..ObjectMeta::default()
            }]
        };
        let target = &target;
        let filters = &filters;
        let mut results = stream::iter(objects)
            .map(|object| async move { object_of(target, at, object, filters.clone()).await })
            .buffer_unordered(AT_ONCE);
        let mut first = Ok(());
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
        if version.split('/').count() > 2 || !version.split('/').chain(parts).all(is_segment) {
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
        })
    }
}

async fn object_of(
    target: &Target,
    at: usize,
    object: ObjectMeta,
    filters: Option<Arc<Filters>>,
) -> Result<(), TargetError> {
    let name = object.name.clone().unwrap_or_default();
    let shown = format!("{}/{name}.{}", target.kind.kind, target.namespace);
    if let Some(filters) = filters {
        let json = json!({"apiVersion": target.kind.api_version, "kind": target.kind.kind, "metadata": without_managers(object)});
        let passed = compute(move || filters.pass(at, Value::from_json(&json))).await;
        let passed = passed.ok_or_else(|| TargetError::Filter("an internal error".to_owned()))?;
        if !passed.map_err(|error| TargetError::Filter(error.to_string()))? {
            tracing::debug!(resource = shown, "the filter leaves the resource out");
            return Ok(());
        }
    }
    let annotations = requests(target, &name).await?;
    let patch = json!({"metadata": {"annotations": annotations}});
    let params = PatchParams {
        field_manager: Some(crate::name::NAME.to_owned()),
        ..PatchParams::default()
    };
    answer(target.api.patch_metadata(&name, &params, &Patch::Merge(patch))).await?;
    tracing::info!("resource '{shown}' annotated");
    Ok(())
}

fn without_managers(mut object: ObjectMeta) -> ObjectMeta {
    object.managed_fields = None;
    object
}

/// Returns the annotations that request a reconciliation of an object.
async fn requests(target: &Target, name: &str) -> Result<Json, TargetError> {
    let now = jiff::Timestamp::now().to_string();
    let mut annotations = json!({ annotation::RECONCILE_REQUESTED_AT: now });
    if target.kind.group == group::GITOPS_KLUCTL {
        // A suspended object would obey the original's request, too.
        let object = answer(target.api.get(name)).await?;
        let suspended = object.data.pointer("/spec/suspend").and_then(Json::as_bool) == Some(true);
        if let Some(fields) = annotations.as_object_mut().filter(|_| !suspended) {
            fields.insert(annotation::REQUEST_RECONCILE.to_owned(), now.into());
        }
    }
    Ok(annotations)
}

async fn answer<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, TargetError> {
    match tokio::time::timeout(ANSWER, request).await {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Err(TargetError::Missing),
        Ok(Err(error)) => Err(TargetError::Refused(runtime::client::describe(&error))),
        Err(_) => Err(TargetError::Timeout),
    }
}

/// Lists the metadata of all objects with labels, page by page.
async fn list(api: &Api<DynamicObject>, selector: &str) -> Result<Vec<ObjectMeta>, TargetError> {
    let mut params = ListParams::default().labels(selector).limit(PAGE);
    let mut objects = Vec::new();
    loop {
        let page = answer(api.list_metadata(&params)).await?;
        objects.extend(page.items.into_iter().map(|item| item.metadata));
        match page.metadata.continue_.filter(|next| !next.is_empty()) {
            Some(next) => params = params.continue_token(&next),
            None => return Ok(objects),
        }
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
    }
}
