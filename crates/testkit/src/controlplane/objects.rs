//! Objects of a control plane: those that exist from its start, and those that tests create.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use futures::future::try_join_all;
use k8s_openapi::{
    api::{
        authentication::v1::{TokenRequest, TokenRequestSpec},
        core::v1::{Namespace, Node, ServiceAccount},
        storage::v1::StorageClass,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
    discovery::Scope,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::ControlPlane;
use crate::wait::{WAIT_TIMEOUT, eventually, wait_for};

const ADMIN: &str = "testkit";

/// Adds a node for Pods to run on and a storage class for claims, and waits until Pods can be placed.
pub(super) async fn furnish(client: &Client) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let classes: Api<StorageClass> = Api::all(client.clone());
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    tokio::try_join!(create(&nodes, node()), create(&classes, storage_class()))?;
    tokio::try_join!(
        wait_for(
            &nodes,
            "node-1",
            "the node to take Pods",
            WAIT_TIMEOUT,
            takes_pods
        ),
        wait_for(
            &accounts,
            "default",
            "the default service account",
            WAIT_TIMEOUT,
            |_| true
        ),
    )?;
    Ok(())
}

fn node() -> Value {
    let resources = json!({"cpu": "1k", "memory": "1Ti", "pods": "1M", "ephemeral-storage": "1Pi"});
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "node-1",
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {
                "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": "node-1", "type": "kwok"
            },
        },
        "status": {"allocatable": resources, "capacity": resources},
    })
}

fn storage_class() -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "kubernetes.io/host-path",
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    })
}

fn takes_pods(node: &Node) -> bool {
    let conditions = node
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    let taints = node
        .spec
        .as_ref()
        .and_then(|spec| spec.taints.as_deref())
        .unwrap_or_default();
    taints.is_empty()
        && conditions
            .iter()
            .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Creates an object; one that is there already is as good.
async fn create<K>(api: &Api<K>, object: Value) -> Result<()>
where
    K: Resource + Clone + DeserializeOwned + Serialize + std::fmt::Debug,
{
    match api
        .create(&PostParams::default(), &serde_json::from_value(object)?)
        .await
    {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(error.into()),
    }
}

impl ControlPlane {
    /// Makes a namespace of a new name that begins with `prefix`, and returns that name.
    pub async fn namespace(&self, prefix: &str) -> Result<String> {
        let name = format!("{prefix}-{:08x}", fastrand::u32(..));
        self.namespace_named(&name).await?;
        Ok(name)
    }

    /// Makes a namespace of this name, unless it exists, and waits until Pods can be created in it.
    pub async fn namespace_named(&self, name: &str) -> Result<()> {
        let client = self.client().await?;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        create(&namespaces, json!({"metadata": {"name": name}})).await?;
        let accounts: Api<ServiceAccount> = Api::namespaced(client, name);
        wait_for(
            &accounts,
            "default",
            "the default service account",
            WAIT_TIMEOUT,
            |_| true,
        )
        .await?;
        Ok(())
    }

    /// Applies one object by server-side apply, with force, as manager `testkit`.
    pub async fn apply(&self, object: impl Into<Value>) -> Result<DynamicObject> {
        let (api, object) = self.api_for(object.into()).await?;
        let name = object.name_any();
        let params = PatchParams::apply(ADMIN).force();
        api.patch(&name, &params, &Patch::Apply(&object))
            .await
            .with_context(|| format!("can't apply {name}"))
    }

    pub async fn api_for(&self, object: Value) -> Result<(Api<DynamicObject>, DynamicObject)> {
        let object: DynamicObject = serde_json::from_value(object).context("this is no Kubernetes object")?;
        let types = object
            .types
            .clone()
            .context("an object without apiVersion and kind")?;
        let kind = GroupVersionKind::try_from(&types)?;
        let client = self.client().await?;
        let (resource, scope) = self.clients.discover(&client, &kind).await?;
        let api = match (scope, object.namespace()) {
            (Scope::Cluster, _) => Api::all_with(client, &resource),
            (Scope::Namespaced, Some(namespace)) => Api::namespaced_with(client, &namespace, &resource),
            (Scope::Namespaced, None) => Api::default_namespaced_with(client, &resource),
        };
        Ok((api, object))
    }

    /// Installs the CRDs in a folder of YAML files and waits until the API server serves them, watches included.
    pub async fn install_crds(&self, dir: &Path) -> Result<Vec<String>> {
        let dir = dir.to_str().context("the path of the folder isn't UTF-8")?;
        let applied = self
            .kubectl(&[
                "apply",
                "--server-side",
                "--force-conflicts",
                // The API server validates, too; kubectl needs the schemas of everything for that.
                "--validate=false",
                "-o",
                "name",
                "-f",
                dir,
            ])
            .await?;
        let names: Vec<String> = applied
            .lines()
            .filter_map(|line| line.strip_prefix("customresourcedefinition.apiextensions.k8s.io/"))
            .map(|name| name.split_ascii_whitespace().next().unwrap_or(name).to_owned())
            .collect();
        if names.is_empty() {
            bail!("{dir} holds no CRDs");
        }
        let client = self.client().await?;
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        let served = names.iter().map(|name| async {
            let what = "the API server to serve the CRD";
            let crd = wait_for(&crds, name, what, WAIT_TIMEOUT, is_served).await?;
            watchable(&client, &crd).await
        });
        try_join_all(served).await?;
        Ok(names)
    }

    /// Makes a service account, unless it exists, and a kubeconfig with a token of it, valid for a day.
    pub async fn service_account_kubeconfig(&self, namespace: &str, name: &str) -> Result<PathBuf> {
        let audience = "https://kubernetes.default.svc";
        let token = self.service_account_token(namespace, name, audience).await?;
        let path = self.credentials.kubeconfig(&format!("{namespace}-{name}"));
        crate::process::write_private(
            &path,
            self.credentials.kubeconfig_for(&self.server, namespace, &token)?,
        )?;
        Ok(path)
    }

    /// Makes a service account, unless it exists, and a file with a token of it for an audience, valid for a day, as a Pod
    /// mounts it.
    pub async fn service_account_token_file(
        &self,
        namespace: &str,
        name: &str,
        audience: &str,
    ) -> Result<PathBuf> {
        let token = self.service_account_token(namespace, name, audience).await?;
        let path = self.credentials.token(&format!("{namespace}-{name}-{audience}"));
        crate::process::write_private(&path, token)?;
        Ok(path)
    }

    /// Makes a service account, unless it exists, and returns a token of it for an audience, valid for a day.
    pub async fn service_account_token(&self, namespace: &str, name: &str, audience: &str) -> Result<String> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client().await?, namespace);
        create(
            &accounts,
            json!({"metadata": {"name": name, "namespace": namespace}}),
        )
        .await?;
        let request = TokenRequest {
            spec: TokenRequestSpec {
                audiences: vec![audience.to_owned()],
                expiration_seconds: Some(24 * 60 * 60),
                ..TokenRequestSpec::default()
            },
            ..TokenRequest::default()
        };
        let answer = eventually("a service account token", WAIT_TIMEOUT, || async {
            Ok(accounts
                .create_token_request(name, &PostParams::default(), &request)
                .await?)
        });
        let status = answer.await?.status;
        Ok(status.context("the API server gave no token")?.token)
    }
}

/// Waits until the API server has the objects of a kind in its cache. Until then it answers requests to watch them with 429, and
/// clients wait for a second.
async fn watchable(client: &Client, crd: &CustomResourceDefinition) -> Result<()> {
    let spec = &crd.spec;
    let version = spec.versions.iter().find(|version| version.storage);
    let version = version.map(|version| version.name.as_str()).unwrap_or_default();
    let gvk = GroupVersionKind::gvk(&spec.group, version, &spec.names.kind);
    let resource = ApiResource::from_gvk_with_plural(&gvk, &spec.names.plural);
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    // Without a limit, and of any version, lists come from the cache alone.
    let from_cache = ListParams::default().match_any();
    eventually("the API server to watch a kind", WAIT_TIMEOUT, || async {
        api.list_metadata(&from_cache).await?;
        Ok(())
    })
    .await
}

fn is_served(crd: &CustomResourceDefinition) -> bool {
    let conditions = crd
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    conditions
        .iter()
        .any(|condition| condition.type_ == "Established" && condition.status == "True")
}
