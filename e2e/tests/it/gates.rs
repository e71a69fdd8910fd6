//! Gates of a release: an upgrade and the removal of an installation leave the workloads alone, and an upgrade leaves all objects ready.

use std::{collections::BTreeMap, process::Stdio};

use anyhow::{Context as _, Result, ensure};
use e2e::{
    cluster::{CONTROLLERS, NAMESPACE, TIMEOUT},
    workloads,
};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use serde_json::{Value, json};
use testkit::{
    ControlPlane, GitServer, Options, Repo, Stack, controller::find_program, eventually, manifest, wait_gone,
};
use tokio::process::Command;

const SHOP: &str = "shop";
/// Objects of the platform, as words of `weir`, and their resources.
const OBJECTS: [(&str, &str); 3] = [
    ("source git", "gitrepositories.source.toolkit.fluxcd.io"),
    ("kustomization", "kustomizations.kustomize.toolkit.fluxcd.io"),
    ("kluctldeployment", "kluctldeployments.flux.kluctl.io"),
];

struct Cluster {
    plane: ControlPlane,
    repo: Repo,
    _git: GitServer,
}

impl Cluster {
    async fn start() -> Result<Self> {
        let plane = ControlPlane::start(Options::default()).await?;
        let git = GitServer::start()?;
        let repo = git.repo(SHOP)?;
        Ok(Self {
            plane,
            repo,
            _git: git,
        })
    }

    /// Runs a command of `weir` that has to succeed, and returns its messages.
    async fn weir(&self, words: &str) -> Result<String> {
        let output = Command::new(find_program("weir")?)
            .args(words.split_ascii_whitespace())
            .env("KUBECONFIG", self.plane.kubeconfig())
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await?;
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "weir {words}: {messages}");
        Ok(messages)
    }

    async fn get(&self, words: &[&str]) -> Result<Value> {
        let output = self
            .plane
            .kubectl(&[&["get", "-o", "json"], words].concat())
            .await?;
        serde_json::from_str(&output).context("kubectl printed no JSON")
    }

    /// Pushes manifests, and a kluctl project with another ConfigMap.
    fn push(&self, color: &str) -> Result<()> {
        let map = |name: &str| {
            let metadata = json!({"name": name, "namespace": SHOP});
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"color": color}})
        };
        let container = json!({"name": "web", "image": "registry.example.com/web:1.0.0"});
        let labels = json!({"app": "web"});
        let web = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": SHOP},
            "spec": {
                "replicas": 2, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        });
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": SHOP},
            "spec": {"selector": labels, "ports": [{"port": 80}]},
        });
        let change = self
            .repo
            .change(color)
            .write("app/web.yaml", web.to_string())
            .write("app/service.yaml", service.to_string())
            .write("app/map.yaml", map("by-kustomization").to_string());
        let project = "discriminator: shop\ntargets: [{name: only}]\n";
        change
            .write("project/.kluctl.yaml", project)
            .write("project/deployment.yaml", "deployments: [{path: objects}]\n")
            .write("project/objects/map.yaml", map("by-kluctl").to_string())
            .push()?;
        Ok(())
    }

    /// Creates the objects of the platform, and waits until they have deployed the workloads.
    async fn deploy(&self) -> Result<()> {
        self.plane.namespace_named(SHOP).await?;
        self.push("red")?;
        let kustomization =
            manifest::Manifest::new("kustomize.toolkit.fluxcd.io/v1", "Kustomization", NAMESPACE, SHOP);
        let spec = json!({
            "interval": "1h", "path": "./app", "prune": true, "wait": true, "timeout": "2m",
            "sourceRef": {"kind": "GitRepository", "name": SHOP},
        });
        for object in [
            manifest::git_repository(NAMESPACE, SHOP, &self.repo.url()),
            kustomization.spec(spec),
            manifest::kluctl_deployment(NAMESPACE, SHOP, SHOP, "project").spec(json!({"target": "only"})),
        ] {
            self.plane.apply(object).await?;
        }
        self.reconcile().await
    }

    /// Requests a pass over each object, and waits until all are ready after it.
    async fn reconcile(&self) -> Result<()> {
        for (words, _) in OBJECTS {
            self.weir(&format!("reconcile {words} {SHOP}")).await?;
        }
        Ok(())
    }

    async fn workloads(&self) -> Result<BTreeMap<String, String>> {
        workloads::identities(&self.plane, SHOP).await
    }

    /// Fails unless all objects of the platform are ready.
    async fn all_are_ready(&self) -> Result<()> {
        for (_, resource) in OBJECTS {
            let object = self.get(&[resource, SHOP, "-n", NAMESPACE]).await?;
            let ready = testkit::ready(&serde_json::from_value(object)?);
            ensure!(ready["status"] == "True", "{resource}: {ready}");
        }
        Ok(())
    }

    /// Returns image and flags of a controller.
    async fn container(&self, name: &str) -> Result<(String, String)> {
        let deployment = self.get(&["deployment", name, "-n", NAMESPACE]).await?;
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let image = container["image"].as_str().context("no image")?;
        Ok((image.to_owned(), container["args"].to_string()))
    }
}

/// Ends the controllers when their Deployments are deleted, as a kubelet does.
async fn end_with_deployments(plane: &ControlPlane, stack: Stack) -> Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(plane.client().await?, NAMESPACE);
    for name in CONTROLLERS {
        wait_gone(&deployments, name, TIMEOUT).await?;
    }
    stack.terminate().await
}

#[tokio::test(flavor = "multi_thread")]
async fn upgrade_and_removal_leave_workloads_alone() -> Result<()> {
    crate::init();
    let cluster = Cluster::start().await?;
    let earlier = "install --version=v0.0.9 --registry=registry.example.com/earlier --log-level=debug";
    cluster.weir(earlier).await?;
    let stack = Stack::start_deployed(&cluster.plane, |launch| launch).await?;
    cluster.deploy().await?;
    let workloads = cluster.workloads().await?;
    ensure!(workloads.len() > 5, "{workloads:?}");

    let upgraded = cluster
        .weir("install --registry=registry.example.com/weir")
        .await?;
    for name in CONTROLLERS {
        let line = format!("Deployment/{NAMESPACE}/{name} configured");
        ensure!(upgraded.contains(&line), "{line}: {upgraded}");
        let (image, flags) = cluster.container(name).await?;
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(image, format!("registry.example.com/weir/{name}:v{version}"));
        ensure!(flags.contains("--log-level=info"), "{name}: {flags}");
    }
    stack.terminate().await?;
    cluster.all_are_ready().await?;
    let stack = Stack::start_deployed(&cluster.plane, |launch| launch).await?;
    cluster.reconcile().await?;
    assert_eq!(cluster.workloads().await?, workloads);
    cluster.all_are_ready().await?;
    upgraded_controllers_deploy(&cluster).await?;

    let workloads = cluster.workloads().await?;
    let (removed, ()) = tokio::try_join!(
        cluster.weir("uninstall --silent"),
        end_with_deployments(&cluster.plane, stack)
    )?;
    nothing_is_left(&cluster, &removed).await?;
    assert_eq!(cluster.workloads().await?, workloads);
    cluster.plane.stop()
}

/// Pushes a commit, and waits until both kinds have deployed it.
async fn upgraded_controllers_deploy(cluster: &Cluster) -> Result<()> {
    cluster.push("blue")?;
    cluster.reconcile().await?;
    eventually("the new commit to be deployed", TIMEOUT, || async {
        for name in ["by-kustomization", "by-kluctl"] {
            let map = cluster.get(&["configmap", name, "-n", SHOP]).await?;
            ensure!(map["data"]["color"] == "blue", "{map}");
        }
        Ok(())
    })
    .await
}

async fn nothing_is_left(cluster: &Cluster, removed: &str) -> Result<()> {
    for (_, resource) in OBJECTS {
        let line = format!("CustomResourceDefinition/{resource} deleted");
        ensure!(removed.contains(&line), "{line}: {removed}");
    }
    ensure!(removed.contains("finalizers deleted"), "{removed}");
    let kinds =
        "crd,namespace,clusterrole,clusterrolebinding,role,rolebinding,deployment,service,serviceaccount";
    let left = cluster
        .get(&[kinds, "-A", "-l", "app.kubernetes.io/part-of=flux"])
        .await?;
    assert_eq!(left["items"], json!([]));
    Ok(())
}
