//! A cluster with the default overlay, and two tenants who each administer a namespace.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::{authorization::v1::SubjectAccessReview, core::v1::ConfigMap};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};
use testkit::{ControlPlane, GitServer, Options, Repo, WebhookSink, eventually, manifest};

use crate::cluster::{CONTROLLERS, NAMESPACE, TIMEOUT, TestCluster, root};

pub const VICTIM: &str = "victim";
pub const ATTACKER: &str = "attacker";
/// Another namespace of the attacker.
pub const NEIGHBOUR: &str = "tim";
pub const API_SERVER: &str = "10.96.0.1";
/// Flags that the overlay sets, and that controllers of this test need as well.
const TENANCY: [&str; 4] = [
    "--no-cross-namespace-refs",
    "--default-service-account",
    "--feature-gates",
    "--max-timeout",
];

pub struct Tenants {
    pub cluster: TestCluster,
    pub mallory: Client,
    repo: Repo,
    /// A project of the victim for the kind that fetches by itself.
    pub stored: Repo,
}

impl std::fmt::Debug for Tenants {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tenants")
            .field("cluster", &self.cluster)
            .finish_non_exhaustive()
    }
}

impl Tenants {
    pub async fn start() -> Result<Self> {
        let plane = ControlPlane::start(Options::default()).await?;
        let (git, sink, client) = (GitServer::start()?, WebhookSink::start()?, plane.client().await?);
        plane.install_crds(&root().join("crds")).await?;
        plane.apply(loose_definition()?).await?;
        for namespace in [NAMESPACE, VICTIM, ATTACKER, NEIGHBOUR] {
            plane.namespace_named(namespace).await?;
        }
        let overlay = root().join("deploy/overlays").join("default");
        let args = [
            "apply",
            "--server-side",
            "--force-conflicts",
            "-k",
            &overlay.to_string_lossy(),
        ];
        plane.kubectl(&args).await?;
        // The overlay has the definition as it is.
        plane.apply(loose_definition()?).await?;
        for (namespace, account) in [(VICTIM, "default"), (ATTACKER, "default"), (ATTACKER, "mallory")] {
            plane.apply(admin(namespace, account)).await?;
        }
        plane.apply(admin_of(NEIGHBOUR, ATTACKER, "mallory")).await?;
        let mallory = plane.service_account_kubeconfig(ATTACKER, "mallory").await?;
        let mallory = testkit::controlplane::client(&mallory).await?;
        let (repo, stored) = (git.repo("victim")?, git.repo("victim-stored")?);
        let mut cluster = TestCluster {
            plane,
            git,
            sink,
            controllers: Vec::new(),
            client,
        };
        for &name in CONTROLLERS {
            let mut flags = flags_of(&cluster, name).await?;
            // The Git server of the test; every other address of this machine stays refused.
            flags.push("--allow-addresses=127.0.0.1".to_owned());
            let mut launch = testkit::stack::launch(&cluster.plane, name).await?;
            // As in a Pod, so that the names and addresses of the cluster's own services are known.
            launch = launch.env("KUBERNETES_SERVICE_HOST", API_SERVER);
            if let Some(notification) = cluster.find("notification-controller") {
                launch = launch.events_to(&notification.events_url());
            }
            for flag in &flags {
                launch = launch.flag(flag);
            }
            cluster.controllers.push(launch.start().await?);
        }
        Ok(Self {
            cluster,
            mallory,
            repo,
            stored,
        })
    }

    /// Applies the objects of the victim.
    pub async fn victim_begins(&self) -> Result<()> {
        let fast = json!({"interval": "2s", "retryInterval": "2s", "target": "only", "timeout": "1m"});
        let plane = &self.cluster.plane;
        push(&self.repo, 0)?;
        let source =
            manifest::git_repository(VICTIM, "app", &self.repo.url()).spec(json!({"interval": "2s"}));
        plane.apply(source).await?;
        plane
            .apply(manifest::kluctl_deployment(VICTIM, "app", "app", ".").spec(fast))
            .await?;
        plane
            .apply(manifest::provider(
                VICTIM,
                "sink",
                "generic",
                &self.cluster.sink.url("/victim"),
            ))
            .await?;
        plane
            .apply(manifest::alert(
                VICTIM,
                "app",
                "sink",
                &["GitRepository", "KluctlDeployment"],
            ))
            .await?;
        self.victim_has(0).await
    }

    /// Pushes a new state and waits until it is in the cluster, and the objects of the last one are not.
    pub async fn victim_pushes(&self, number: u32) -> Result<()> {
        push(&self.repo, number)?;
        self.victim_has(number).await
    }

    async fn victim_has(&self, number: u32) -> Result<()> {
        let maps: Api<ConfigMap> = Api::namespaced(self.cluster.client.clone(), VICTIM);
        let what = format!("state {number} of the victim");
        let found = eventually(&what, TIMEOUT, || async {
            let map = maps.get("settings").await?;
            let data = map.data.unwrap_or_default();
            ensure!(data.get("number") == Some(&number.to_string()), "it is {data:?}");
            let last = number.checked_sub(1).map(round);
            let is_left = match &last {
                Some(last) => maps.get_opt(last).await?.is_some(),
                None => false,
            };
            ensure!(!is_left, "{last:?} is not pruned");
            Ok(())
        })
        .await;
        match found {
            Ok(()) => Ok(()),
            Err(error) => {
                let objects = [
                    "get",
                    "gitrepositories,kluctldeployments",
                    "-n",
                    VICTIM,
                    "-o",
                    "yaml",
                ];
                let objects = self.cluster.plane.kubectl(&objects).await.unwrap_or_default();
                Err(error.context(objects))
            }
        }
    }

    pub async fn apply(&self, object: impl Into<Value>) -> Result<()> {
        let object: Value = object.into();
        let (api, name) = api(&self.mallory, &object)?;
        let params = PatchParams::apply("mallory").force();
        api.patch(&name, &params, &Patch::Apply(&object)).await?;
        Ok(())
    }

    /// Returns an object of the attacker's namespace, read as an administrator.
    pub async fn attacking(&self, kind: &str, name: &str) -> Result<DynamicObject> {
        self.of(ATTACKER, kind, name).await
    }

    /// Returns an object, read as an administrator. A kind may have its group, after a dot.
    pub async fn of(&self, namespace: &str, kind: &str, name: &str) -> Result<DynamicObject> {
        let versions = BTreeMap::from([
            ("KluctlDeployment", "flux.kluctl.io/v1alpha1"),
            ("KluctlDeployment.gitops.kluctl.io", "gitops.kluctl.io/v1beta1"),
            ("GitRepository", "source.toolkit.fluxcd.io/v1"),
            ("HelmChart", "source.toolkit.fluxcd.io/v1"),
            ("Alert", "notification.toolkit.fluxcd.io/v1beta3"),
            ("Receiver", "notification.toolkit.fluxcd.io/v1"),
            ("ConfigMap", "v1"),
        ]);
        let version = versions.get(kind).context("an unknown kind")?;
        let kind = kind.split('.').next().unwrap_or_default();
        let object =
            json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}});
        let (api, name) = api(&self.cluster.client, &object)?;
        Ok(api.get(&name).await?)
    }

    /// Waits until the Ready condition of an object of the attacker is False with a reason and message that `is_wanted` accepts, and
    /// returns them. Before that it may fail for other reasons: its source may not be ready yet.
    pub async fn failed(
        &self,
        kind: &str,
        name: &str,
        is_wanted: impl Fn(&str, &str) -> bool,
    ) -> Result<(String, String)> {
        let is_wanted = &is_wanted;
        eventually(&format!("{kind} {name} to be refused"), TIMEOUT, || async move {
            let object = self.attacking(kind, name).await?;
            let ready = testkit::ready(&object);
            let text = |field: &str| ready[field].as_str().unwrap_or_default().to_owned();
            let (reason, message) = (text("reason"), text("message"));
            ensure!(
                ready["status"] == "False" && is_wanted(&reason, &message),
                "it is {ready}"
            );
            Ok((reason, message))
        })
        .await
    }

    /// Waits until a ServiceAccount of the attacker may not list ConfigMaps any more: the API server learns of removed roles by a watch.
    pub async fn rights_are_gone(&self, account: &str) -> Result<()> {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {
                "user": format!("system:serviceaccount:{ATTACKER}:{account}"),
                "resourceAttributes": {"namespace": ATTACKER, "verb": "list", "resource": "configmaps"},
            },
        });
        let review: SubjectAccessReview = serde_json::from_value(review)?;
        let reviews: Api<SubjectAccessReview> = Api::all(self.cluster.client.clone());
        eventually("the rights to go", TIMEOUT, || async {
            let reviewed = reviews.create(&PostParams::default(), &review).await?;
            ensure!(
                reviewed.status.is_some_and(|status| !status.allowed),
                "they are there"
            );
            Ok(())
        })
        .await
    }

    /// Stops everything; deployments that wait are not waited for.
    pub async fn stop(self) -> Result<()> {
        for controller in &self.cluster.controllers {
            controller.kill().await?;
        }
        self.cluster.stop_plane()
    }
}

fn api(client: &Client, object: &Value) -> Result<(Api<DynamicObject>, String)> {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (group, version) = text("/apiVersion")
        .split_once('/')
        .unwrap_or(("", text("/apiVersion")));
    let kind = GroupVersionKind::gvk(group, version, text("/kind"));
    let resource = ApiResource::from_gvk(&kind);
    let api = Api::namespaced_with(client.clone(), text("/metadata/namespace"), &resource);
    Ok((api, text("/metadata/name").to_owned()))
}

/// Returns the flags of tenancy that the overlay's Deployment of a controller has.
async fn flags_of(cluster: &TestCluster, name: &str) -> Result<Vec<String>> {
    let args = ["get", "deployment", name, "-n", NAMESPACE, "-o", "json"];
    let deployment: Value = serde_json::from_str(&cluster.plane.kubectl(&args).await?)?;
    let args = deployment.pointer("/spec/template/spec/containers/0/args");
    let args = args.and_then(Value::as_array).context("no arguments")?;
    let args = args.iter().filter_map(Value::as_str);
    Ok(args
        .filter(|arg| TENANCY.iter().any(|flag| arg.starts_with(flag)))
        .map(str::to_owned)
        .collect())
}

/// The definition of KluctlDeployments as of a release whose schema accepts a spec that the type refuses.
fn loose_definition() -> Result<Value> {
    let mut definition = serde_json::to_value(api::crd::kluctl_deployment())?;
    let interval = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/interval";
    let interval = definition
        .pointer_mut(interval)
        .context("a field of the schema")?;
    *interval = json!({"type": "string"});
    Ok(definition)
}

pub(crate) fn admin(namespace: &str, account: &str) -> Value {
    admin_of(namespace, namespace, account)
}

/// Makes a ServiceAccount of the namespace `home` the administrator of a namespace.
fn admin_of(namespace: &str, home: &str, account: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": format!("admin-{account}"), "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": home}],
    })
}

/// Returns the name of the ConfigMap that only the state of this number has.
fn round(number: u32) -> String {
    format!("round-{number}")
}

fn push(repo: &Repo, number: u32) -> Result<String> {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": VICTIM}, "data": {"number": number.to_string()}});
    let round = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": round(number), "namespace": VICTIM}});
    repo.change(&format!("state {number}"))
        .clear()
        .write(
            ".kluctl.yaml",
            "discriminator: victim-app\ntargets:\n  - name: only\n",
        )
        .write("deployment.yaml", "deployments:\n  - path: objects\n")
        .write("objects/settings.yaml", map.to_string())
        .write("objects/round.yaml", round.to_string())
        .push()
}

/// Timeout of the attacker's deployments: as long as it may be.
pub(crate) const HOUR: Duration = Duration::from_secs(3600);
