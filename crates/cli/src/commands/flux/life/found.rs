//! The installation that a cluster has.

use anyhow::Result;
use cluster::{Cluster, Detail, ResourceKind};
use install::{INSTANCE, MANAGED_BY, PART_OF, VERSION_LABEL};
use objects::{ObjectRef, meta};
use yaml::Value;

/// Labels of the objects that the kustomize-controller deploys: an installation with them follows a Git repository.
const BOOTSTRAPPED: &[&str] = &[
    "kustomize.toolkit.fluxcd.io/name",
    "kustomize.toolkit.fluxcd.io/namespace",
];
/// Maximum number of objects of a kind in a list.
pub(super) const MOST: usize = 100_000;

/// An installation, as the labels of the definition of GitRepositories tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Installation {
    /// The tool that installed it; Flux names none.
    pub(super) manager: Option<String>,
    pub(super) version: Option<String>,
    pub(super) is_bootstrapped: bool,
}

impl Installation {
    pub(super) async fn find(cluster: &Cluster) -> Result<Option<Self>> {
        let definition = definition("gitrepositories.source.toolkit.fluxcd.io");
        Ok(cluster.get(&definition).await?.as_ref().map(Self::of))
    }

    fn of(definition: &Value) -> Self {
        let label = |name| meta::label(definition, name).map(str::to_owned);
        Self {
            manager: label(MANAGED_BY.0).filter(|manager| manager != "flux"),
            version: label(VERSION_LABEL),
            is_bootstrapped: BOOTSTRAPPED.iter().all(|name| label(name).is_some()),
        }
    }

    /// Returns name and version, such as `weir-v0.1.0`.
    pub(super) fn distribution(&self) -> String {
        let name = self.manager.as_deref().unwrap_or("flux");
        format!("{name}-{}", self.version.as_deref().unwrap_or("unknown"))
    }
}

pub(super) fn definition(name: &str) -> ObjectRef {
    ObjectRef {
        group: "apiextensions.k8s.io".to_owned(),
        version: "v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        namespace: None,
        name: name.to_owned(),
    }
}

/// Returns the selector of the objects of an installation.
pub(super) fn selector(namespace: &str) -> String {
    format!("{}={},{INSTANCE}={namespace}", PART_OF.0, PART_OF.1)
}

/// Lists the objects of an installation of a built-in kind; none if the cluster doesn't serve it.
pub(super) async fn list(
    cluster: &Cluster,
    (group, version, kind): (&str, &str, &str),
    namespace: Option<&str>,
    selector: &str,
) -> Result<Vec<Value>> {
    let kind: ResourceKind = match cluster.kind(group, version, kind).await {
        Ok(kind) => kind,
        Err(cluster::Error::NoMatch { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    Ok(cluster
        .list_selected(&kind, namespace, selector, Detail::Full, MOST)
        .await?)
}

pub(super) async fn deployments(cluster: &Cluster, namespace: &str) -> Result<Vec<Value>> {
    let selector = format!("{}={}", PART_OF.0, PART_OF.1);
    list(cluster, ("apps", "v1", "Deployment"), Some(namespace), &selector).await
}

pub(super) async fn definitions(cluster: &Cluster) -> Result<Vec<Value>> {
    let selector = format!("{}={}", PART_OF.0, PART_OF.1);
    let kind = ("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    list(cluster, kind, None, &selector).await
}

/// Returns the images of the containers of a Deployment.
pub(super) fn images(deployment: &Value) -> Vec<&str> {
    let containers = deployment.pointer(&["spec", "template", "spec", "containers"]);
    let containers = containers.and_then(Value::as_seq).unwrap_or_default().iter();
    containers
        .filter_map(|container| container.get("image").and_then(Value::as_str))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn labels_tell_the_distribution() {
        let of = |labels: serde_json::Value| {
            Installation::of(&Value::from_json(json!({ "metadata": { "labels": labels } })))
        };
        let flux = of(json!({
            "app.kubernetes.io/version": "v2.9.4",
            "kustomize.toolkit.fluxcd.io/name": "flux-system",
            "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
        }));
        assert_eq!(
            (flux.distribution().as_str(), flux.is_bootstrapped),
            ("flux-v2.9.4", true)
        );
        let weir =
            of(json!({ "app.kubernetes.io/version": "v0.1.0", "app.kubernetes.io/managed-by": "weir" }));
        assert_eq!(
            (weir.distribution().as_str(), weir.is_bootstrapped),
            ("weir-v0.1.0", false)
        );
        assert_eq!(of(json!({})).distribution(), "flux-unknown");
    }
}
