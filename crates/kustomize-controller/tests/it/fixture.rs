//! A namespace with a controller process that watches nothing else, and a source for each test.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, OnceLock},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use api::{
    conditions,
    kustomize::{Kustomization, KustomizationStatus},
};
use artifact::{
    Algorithm, Error,
    pack::{self, Item, PathKind},
};
use k8s_openapi::api::core::v1::{ConfigMap, Event};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use testkit::{
    ControlPlane, Controller, FaultProxy, Options, WebServer, controller::Launch, eventually, wait_for,
    wait_gone, web::Page,
};
use tokio::sync::OnceCell;
use tree::{Budget, TreePath, ignore::Rules};

/// Timeout of every wait, for a busy machine.
pub(crate) const TIMEOUT: Duration = testkit::WAIT_TIMEOUT;

static PLANE: OnceCell<ControlPlane> = OnceCell::const_new();

pub(crate) async fn plane() -> Result<&'static ControlPlane> {
    PLANE
        .get_or_try_init(|| async {
            let plane = ControlPlane::start(Options::default()).await?;
            plane
                .install_crds(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds"))
                .await?;
            Ok(plane)
        })
        .await
}

pub(crate) struct Fixture {
    pub(crate) plane: &'static ControlPlane,
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) controller: Controller,
    /// The name of the controller in the audit log.
    pub(crate) user: String,
}

/// A Secret that is encrypted for an age key.
pub(crate) const AGE_FILE: &str = include_str!("../../../secrets/fixtures/secret.yaml");

/// Returns [`AGE_FILE`] with keys of the Vault at [`server`] instead of the age key.
pub(crate) fn encrypted_for_vault(key: &str, count: usize) -> Result<String> {
    let (before, rest) = AGE_FILE.split_once("    age:\n").context("no age keys")?;
    let (_, after) = rest
        .split_once("    lastmodified:")
        .context("no end of the age keys")?;
    let entry = json!({
        "vault_address": server().url("").trim_end_matches('/'), "engine_path": "transit", "key_name": key,
        "enc": "vault:v1:AAAA",
    });
    let entries = Value::from(vec![entry; count]);
    Ok(format!(
        "{before}    hc_vault: {entries}\n    lastmodified:{after}"
    ))
}

/// Returns the manifest of a ConfigMap with one value.
pub(crate) fn map(name: &str, value: &str) -> String {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "value": value } })
        .to_string()
}

impl Fixture {
    pub(crate) async fn new(prefix: &str, flags: &[&str]) -> Result<Self> {
        let plane = plane().await?;
        let namespace = plane.namespace(prefix).await?;
        let kubeconfig = plane.service_account_kubeconfig(&namespace, "controller").await?;
        Self::started(plane, namespace, &kubeconfig, flags).await
    }

    /// Starts a controller that reaches the API server by a proxy.
    pub(crate) async fn by_proxy(prefix: &str, flags: &[&str]) -> Result<(Self, FaultProxy)> {
        let plane = plane().await?;
        let proxy = FaultProxy::start(plane)?;
        let namespace = plane.namespace(prefix).await?;
        let kubeconfig = plane.service_account_kubeconfig(&namespace, "controller").await?;
        let kubeconfig = proxy.kubeconfig(&kubeconfig)?;
        let fixture = Self::started(plane, namespace, &kubeconfig, flags).await?;
        Ok((fixture, proxy))
    }

    pub(crate) async fn started(
        plane: &'static ControlPlane,
        namespace: String,
        kubeconfig: &Path,
        flags: &[&str],
    ) -> Result<Self> {
        let launch = Controller::named("kustomize-controller").run_by(kubeconfig);
        Self::launched(plane, namespace, launch, flags).await
    }

    /// Starts a controller that runs as the service account `controller` of the namespace.
    pub(crate) async fn launched(
        plane: &'static ControlPlane,
        namespace: String,
        launch: Launch,
        flags: &[&str],
    ) -> Result<Self> {
        grant(plane, &namespace, "controller").await?;
        let mut launch = launch
            .namespace(&namespace)
            .flag("--watch-all-namespaces=false")
            .flag("--requeue-dependency=1s");
        for flag in flags {
            launch = launch.flag(flag);
        }
        Ok(Self {
            plane,
            client: plane.client().await?,
            controller: launch.start().await?,
            user: format!("system:serviceaccount:{namespace}:controller"),
            namespace,
        })
    }

    pub(crate) fn objects(&self) -> Api<Kustomization> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Returns a Kustomization of the source `name`, whose objects are in the namespace.
    pub(crate) fn kustomization(&self, name: &str, spec: &Value) -> Value {
        let mut all = json!({
            "interval": "10m", "retryInterval": "1s", "prune": true, "targetNamespace": self.namespace,
            "sourceRef": { "kind": "GitRepository", "name": name },
        });
        for (field, value) in spec.as_object().unwrap() {
            all[field] = value.clone();
        }
        json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": { "name": name, "namespace": self.namespace }, "spec": all,
        })
    }

    /// Applies a Kustomization of the source of the same name.
    pub(crate) async fn deploy(&self, name: &str, spec: Value) -> Result<()> {
        self.plane.apply(self.kustomization(name, &spec)).await.map(drop)
    }

    /// Applies a Kustomization whose objects name their namespaces.
    pub(crate) async fn deploy_unbound(&self, name: &str) -> Result<()> {
        let mut object = self.kustomization(name, &json!({}));
        object["spec"].as_object_mut().unwrap().remove("targetNamespace");
        self.plane.apply(object).await.map(drop)
    }

    pub(crate) async fn edit(&self, name: &str, spec: Value) -> Result<()> {
        let patch = Patch::Merge(json!({ "spec": spec }));
        self.objects()
            .patch(name, &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    /// Offers files as the newest revision of the source `name`, and returns that.
    pub(crate) async fn offer(&self, name: &str, files: &[(&str, String)]) -> Result<String> {
        self.offer_of("GitRepository", name, files).await
    }

    pub(crate) async fn offer_of(&self, kind: &str, name: &str, files: &[(&str, String)]) -> Result<String> {
        let (bytes, digest) = tarball(files)?;
        let spec = match kind {
            "GitRepository" => json!({ "interval": "1h", "url": "https://example.invalid/shop" }),
            "OCIRepository" => json!({ "interval": "1h", "url": "oci://example.invalid/shop" }),
            "Bucket" => json!({ "interval": "1h", "bucketName": "shop", "endpoint": "example.invalid" }),
            _ => json!({}),
        };
        let object = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": kind,
            "metadata": { "name": name, "namespace": self.namespace }, "spec": spec,
        });
        let (api, _) = self.plane.api_for(object.clone()).await?;
        self.plane.apply(object).await?;
        let path = format!(
            "/{}/{}/{name}/{:x}.tar.gz",
            kind.to_lowercase(),
            self.namespace,
            fastrand::u128(..)
        );
        server().page(&path, Page::Content(bytes.into()));
        let revision = format!("main@sha1:{:040x}", fastrand::u128(..));
        let artifact = json!({
            "url": server().url(&path), "revision": revision, "digest": digest, "path": path,
            "lastUpdateTime": "2026-01-01T00:00:00Z",
            "metadata": { "org.opencontainers.image.revision": "v1.0.0" },
        });
        set_artifact(&api, name, artifact).await?;
        Ok(revision)
    }

    /// Waits until the Ready condition of the newest generation has this status and reason.
    pub(crate) async fn ready(&self, name: &str, status: &str, reason: &str) -> Result<Kustomization> {
        let expected = format!("Ready={status} {reason}");
        wait_for(&self.objects(), name, &expected, TIMEOUT, |object| {
            let ready = condition(object, "Ready");
            ready["status"] == status
                && ready["reason"] == reason
                && ready["observedGeneration"] == json!(object.metadata.generation)
        })
        .await
    }

    /// Waits until a revision is applied.
    pub(crate) async fn applied(&self, name: &str, revision: &str) -> Result<Kustomization> {
        wait_for(&self.objects(), name, revision, TIMEOUT, |object| {
            let status = object.status.clone().unwrap_or_default();
            status.last_applied_revision.as_deref() == Some(revision)
                && status.observed_generation == object.metadata.generation
                && conditions::is_true(&status.conditions, "Ready")
        })
        .await
    }

    /// Asks for a pass, and waits until it is over.
    pub(crate) async fn reconcile(&self, name: &str) -> Result<Kustomization> {
        let value = format!("{:x}", fastrand::u64(..));
        let patch = json!({ "metadata": { "annotations": { "reconcile.fluxcd.io/requestedAt": value } } });
        self.objects()
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        wait_for(
            &self.objects(),
            name,
            "the request to be handled",
            TIMEOUT,
            |object| {
                let status = object.status.as_ref();
                status.and_then(|status| status.last_handled_reconcile_at.as_deref()) == Some(&value)
            },
        )
        .await
    }

    /// Returns the names and values of the ConfigMaps of a Kustomization.
    pub(crate) async fn values(&self, name: &str) -> Result<BTreeMap<String, String>> {
        let params = ListParams::default().labels(&format!("kustomize.toolkit.fluxcd.io/name={name}"));
        let maps = self.maps().list(&params).await?;
        let value = |map: &ConfigMap| map.data.as_ref()?.get("value").cloned();
        Ok(maps
            .iter()
            .map(|map| (map.name_any(), value(map).unwrap_or_default()))
            .collect())
    }

    pub(crate) async fn remove(&self, name: &str) -> Result<()> {
        self.objects().delete(name, &DeleteParams::default()).await?;
        wait_gone(&self.objects(), name, TIMEOUT).await
    }

    /// Waits for an Event of a Kustomization whose message has this part, and returns it.
    pub(crate) async fn told(&self, name: &str, part: &str) -> Result<Event> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        let found = || async {
            let list = events.list(&ListParams::default()).await?;
            let of_object = |event: &&Event| event.involved_object.name.as_deref() == Some(name);
            let messages: Vec<_> = list
                .iter()
                .filter(of_object)
                .map(|event| event.message.clone())
                .collect();
            let mut found = list.iter().filter(of_object);
            let found = found.find(|event| event.message.as_deref().is_some_and(|text| text.contains(part)));
            found.cloned().ok_or_else(|| anyhow::anyhow!("{messages:?}"))
        };
        eventually(part, TIMEOUT, found).await
    }
}

/// Returns the messages of the Events of a Kustomization so far.
pub(crate) async fn messages(fixture: &Fixture, name: &str) -> Result<Vec<String>> {
    let events: Api<Event> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    let list = events.list(&ListParams::default()).await?;
    let of_object = |event: &Event| event.involved_object.name.as_deref() == Some(name);
    let messages = list.into_iter().filter(of_object);
    Ok(messages.filter_map(|event| event.message).collect())
}

pub(crate) fn status(object: &Kustomization) -> KustomizationStatus {
    object.status.clone().unwrap_or_default()
}

/// Returns a condition as JSON; null without one.
pub(crate) fn condition(object: &Kustomization, type_: &str) -> Value {
    let status = status(object);
    let found = conditions::get(&status.conditions, type_);
    serde_json::to_value(found).unwrap_or_default()
}

pub(crate) fn ids(object: &Kustomization) -> Vec<String> {
    let inventory = status(object).inventory.unwrap_or_default();
    inventory.entries.into_iter().map(|entry| entry.id).collect()
}

/// Lets a service account do anything.
pub(crate) async fn grant(plane: &ControlPlane, namespace: &str, account: &str) -> Result<()> {
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": { "name": format!("{namespace}-{account}") },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "kind": "ServiceAccount", "name": account, "namespace": namespace }],
    });
    plane.apply(binding).await.map(drop)
}

pub(crate) async fn set_artifact(api: &Api<DynamicObject>, name: &str, artifact: Value) -> Result<()> {
    let patch = Patch::Merge(json!({ "status": { "artifact": artifact } }));
    let object = api.patch_status(name, &PatchParams::default(), &patch).await?;
    ensure!(object.name_any() == name);
    Ok(())
}

pub(crate) fn server() -> &'static Arc<WebServer> {
    static SERVER: OnceLock<Arc<WebServer>> = OnceLock::new();
    SERVER.get_or_init(|| {
        let (send, receive) = std::sync::mpsc::channel();
        // It outlives the runtime of the test that starts it.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async move {
                let server = Arc::new(WebServer::start().expect("a server"));
                send.send(server).expect("a receiver");
                std::future::pending::<()>().await;
            });
        });
        receive.recv().expect("a server")
    })
}

pub(crate) fn tarball(files: &[(&str, String)]) -> Result<(Vec<u8>, String)> {
    let mut items: BTreeMap<TreePath, Item<Option<String>>> = BTreeMap::new();
    for (path, content) in files {
        let path = TreePath::parse(path)?;
        let mut parent = path.parent();
        while let Some(dir) = parent.filter(|dir| !dir.is_root()) {
            let item = Item {
                path: dir.clone(),
                kind: PathKind::Dir,
                content: None,
            };
            items.insert(dir.clone(), item);
            parent = dir.parent();
        }
        let item = Item {
            path: path.clone(),
            kind: PathKind::File { executable: false },
            content: Some(content.clone()),
        };
        items.insert(path, item);
    }
    let items = pack::plan(items.into_values().collect(), &Rules::new(), &Budget::default())?.items;
    let mut out = Vec::new();
    let read = |item: &Item<Option<String>>, buffer: &mut Vec<u8>| -> Result<(), Error> {
        buffer.extend_from_slice(item.content.as_deref().unwrap_or_default().as_bytes());
        Ok(())
    };
    let packed = pack::pack(&items, read, Algorithm::Sha256, 16 << 20, &mut out)?;
    Ok((out, packed.digest.to_string()))
}
