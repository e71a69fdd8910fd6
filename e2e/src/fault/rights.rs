//! The kustomize-controller without one of its rights, for each of them: something that people see breaks, and names the right. A right without which
//! nothing breaks is one too many.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::pin,
};

use anyhow::{Context as _, Result, ensure};
use api::kustomize::Kustomization;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::{core::v1::ServiceAccount, rbac::v1::PolicyRule};
use kube::{Api, api::DeleteParams};
use serde_json::{Value, json};
use testkit::{Controller, controller::SHORT_LEASE, eventually, wait_for, wait_gone};

use crate::{
    cluster::{NAMESPACE, TIMEOUT, TestCluster, ready_of},
    rbac::{right::Right, roles},
    report::Report,
};

const NAME: &str = "kustomize-controller";
const SOURCE: &str = "shop";
const RBAC: &str = "rbac.authorization.k8s.io";
/// The group of the Events that the original writes: it may run with the same roles while one replaces the other.
const EVENTS: &str = "events.k8s.io";
/// Kinds in the role of consumers of sources that Receivers alone name: the role is shared with the notification-controller.
const OF_RECEIVERS: [&str; 2] = ["helmcharts", "helmrepositories"];
/// The accounts that objects deploy with; the second one goes before its object.
const ACCOUNTS: [&str; 2] = ["deployer", "temporary"];
/// Part of the message about the missing right to watch everything.
const UNINDEXED: &str = "may not list and watch all kinds";
/// Controllers that run at a time.
const CONCURRENCY: usize = 4;

/// Plays objects that need all rights with all of them, and then without each one.
pub async fn every_right_is_needed(report: &mut Report) -> Result<()> {
    let mut cluster = TestCluster::bare().await?;
    cluster.start("source-controller", &[]).await?;
    let url = push(&cluster)?;
    let mut rights = Right::all_of(&roles::granted(&cluster, NAME).await?);
    rights.retain(|right| right.group() != EVENTS && !OF_RECEIVERS.contains(&right.resource()));
    report
        .step("the kustomize-controller uses all of its rights", async {
            let trial = Trial::start(&cluster, "all", &url, &rights.iter().collect::<Vec<_>>()).await?;
            trial.play().await?;
            trial.has_used(&rights).await?;
            trial.controller.terminate().await?;
            Ok(format!("{} rights", rights.len()))
        })
        .await?;
    report
        .step("without one of them, something breaks and names it", async {
            let trials = rights.iter().enumerate().map(|(number, withheld)| {
                let (rights, cluster, url) = (&rights, &cluster, &url);
                async move {
                    let left = without(rights, withheld);
                    let trial = Trial::start(cluster, &format!("without-{number}"), url, &left).await?;
                    let seen = trial.seen(withheld).await;
                    let seen = seen.with_context(|| format!("nothing is seen without: {withheld}"))?;
                    trial.controller.kill().await?;
                    anyhow::Ok(seen)
                }
            });
            let seen: BTreeSet<&str> = stream::iter(trials)
                .buffer_unordered(CONCURRENCY)
                .try_collect()
                .await?;
            Ok(format!(
                "{} rights, seen in {}",
                rights.len(),
                seen.into_iter().collect::<Vec<_>>().join(" and ")
            ))
        })
        .await?;
    cluster.stop().await
}

/// Returns all rights but one. Rights on everything would include it.
fn without<'a>(rights: &'a [Right], withheld: &Right) -> Vec<&'a Right> {
    let left = rights.iter().filter(|right| *right != withheld);
    left.filter(|right| withheld.is_on_everything() || !right.is_on_everything())
        .collect()
}

fn push(cluster: &TestCluster) -> Result<String> {
    let repo = cluster.git.repo(SOURCE)?;
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map"}, "data": {"value": "${own} ${hidden}"},
    });
    repo.change("A map")
        .write("app/map.yaml", map.to_string())
        .push()?;
    Ok(repo.url())
}

/// Gives these rights to the controller's account of a namespace, and all rights to the accounts that objects deploy with.
async fn grant(cluster: &TestCluster, namespace: &str, rights: &[&Right]) -> Result<()> {
    let mut by_namespace: BTreeMap<Option<&str>, Vec<&PolicyRule>> = BTreeMap::new();
    for right in rights {
        let of = right.namespace.as_deref();
        by_namespace.entry(of).or_default().push(&right.rule);
    }
    for (of, rules) in by_namespace {
        let (role, binding) = match of {
            None => ("ClusterRole", "ClusterRoleBinding"),
            Some(_) => ("Role", "RoleBinding"),
        };
        let own = of.map(|of| counterpart(of, namespace));
        let metadata = json!({"name": namespace, "namespace": own});
        let rules = json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": role, "metadata": metadata, "rules": rules,
        });
        let binding = json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": binding, "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": role, "name": namespace},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}],
        });
        cluster.plane.apply(rules).await?;
        cluster.plane.apply(binding).await?;
    }
    for account in ACCOUNTS {
        let metadata = json!({"name": account, "namespace": namespace});
        let made = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata});
        let binding = json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        });
        cluster.plane.apply(made).await?;
        cluster.plane.apply(binding).await?;
    }
    Ok(())
}

/// Returns the namespace of a trial that stands for one of the installation.
fn counterpart<'a>(of: &'a str, namespace: &'a str) -> &'a str {
    match of {
        NAMESPACE => namespace,
        other => other,
    }
}

/// A controller with some rights, which works in its own namespace alone.
struct Trial<'a> {
    cluster: &'a TestCluster,
    namespace: String,
    controller: Controller,
    url: &'a str,
}

impl<'a> Trial<'a> {
    /// Starts the controller as an account with these rights.
    async fn start(
        cluster: &'a TestCluster,
        namespace: &str,
        url: &'a str,
        rights: &[&Right],
    ) -> Result<Self> {
        cluster.plane.namespace_named(namespace).await?;
        grant(cluster, namespace, rights).await?;
        let kubeconfig = cluster.plane.service_account_kubeconfig(namespace, NAME).await?;
        let mut launch = Controller::named(NAME).run_by(&kubeconfig).namespace(namespace);
        let flags = [
            "--watch-all-namespaces=false",
            "--no-cross-namespace-refs=true",
            "--feature-gates=ExternalArtifact=true",
            "--requeue-dependency=1s",
            "--events-addr=",
        ];
        for flag in flags.iter().chain(&SHORT_LEASE) {
            launch = launch.flag(flag);
        }
        Ok(Self {
            cluster,
            namespace: namespace.to_owned(),
            controller: launch.spawn()?,
            url,
        })
    }

    fn objects(&self) -> Api<Kustomization> {
        Api::namespaced(self.cluster.client.clone(), &self.namespace)
    }

    /// Creates objects that need all rights, and removes one of them after its account.
    async fn play(&self) -> Result<()> {
        for object in self.settings()? {
            self.cluster.plane.apply(object).await?;
        }
        let account = |name: &str| json!({"serviceAccountName": name});
        let from = |kind: &str| json!({"sourceRef": {"kind": kind, "name": "missing"}});
        for (name, spec) in [
            ("plain", account(ACCOUNTS[0])),
            (
                "dependent",
                json!({"dependsOn": [{"name": "plain"}], "serviceAccountName": ACCOUNTS[0]}),
            ),
            (
                "remote",
                json!({"kubeConfig": {"configMapRef": {"name": "cluster"}}}),
            ),
            ("git", from("GitRepository")),
            ("oci", from("OCIRepository")),
            ("bucket", from("Bucket")),
            ("external", from("ExternalArtifact")),
            ("orphan", account(ACCOUNTS[1])),
        ] {
            self.cluster.plane.apply(self.kustomization(name, &spec)).await?;
        }
        for name in ["dependent", "remote", "orphan"] {
            self.ready(name, true).await?;
        }
        for name in ["git", "oci", "bucket", "external"] {
            self.ready(name, false).await?;
        }
        // The second failure is the first one's event again.
        for (path, is_ready) in [("none", false), ("app", true), ("none", false)] {
            let spec = json!({"path": path, "serviceAccountName": ACCOUNTS[0]});
            self.cluster
                .plane
                .apply(self.kustomization("unsteady", &spec))
                .await?;
            self.ready("unsteady", is_ready).await?;
        }
        let accounts: Api<ServiceAccount> = Api::namespaced(self.cluster.client.clone(), &self.namespace);
        accounts.delete(ACCOUNTS[1], &DeleteParams::default()).await?;
        self.objects().delete("orphan", &DeleteParams::default()).await?;
        wait_gone(&self.objects(), "orphan", TIMEOUT).await
    }

    /// Returns the source, and the settings that objects read.
    fn settings(&self) -> Result<Vec<Value>> {
        let watched = json!({"reconcile.fluxcd.io/watch": "Enabled"});
        let config = |kind: &str, name: &str, field: &str, data: Value| {
            json!({
                "apiVersion": "v1", "kind": kind, field: data,
                "metadata": {"name": name, "namespace": self.namespace, "labels": watched},
            })
        };
        let described = json!({
            "provider": "generic", "address": self.cluster.plane.server(), "ca.crt": self.cluster.plane.ca_pem()?,
            "audiences": "https://kubernetes.default.svc", "serviceAccountName": ACCOUNTS[0],
        });
        let repository = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"name": SOURCE, "namespace": self.namespace},
            "spec": {"interval": "1h", "url": self.url, "ref": {"branch": "main"}},
        });
        Ok(vec![
            repository,
            config("ConfigMap", "cluster", "data", described),
            config("ConfigMap", "variables", "data", json!({"own": "1"})),
            config("Secret", "variables", "stringData", json!({"hidden": "2"})),
        ])
    }

    fn kustomization(&self, name: &str, spec: &Value) -> Value {
        let mut object = json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "interval": "1s", "retryInterval": "1s", "prune": true, "path": "app",
                "namePrefix": format!("{name}-"), "targetNamespace": self.namespace,
                "sourceRef": {"kind": "GitRepository", "name": SOURCE},
                "postBuild": {"substituteFrom": [
                    {"kind": "ConfigMap", "name": "variables"}, {"kind": "Secret", "name": "variables"},
                ]},
            },
        });
        let spec = spec.as_object().into_iter().flatten();
        for (field, value) in spec {
            object["spec"][field] = value.clone();
        }
        object
    }

    async fn ready(&self, name: &str, is_ready: bool) -> Result<()> {
        let what = format!("Ready={is_ready} of Kustomization {name}");
        wait_for(&self.objects(), name, &what, TIMEOUT, |object| {
            let ready = object.status.as_ref().and_then(ready_of);
            ready.is_some_and(|ready| {
                ready.is_true() == is_ready && ready.observed_generation == object.metadata.generation
            })
        })
        .await
        .map(drop)
    }

    /// Waits until the controller has used each of these rights.
    async fn has_used(&self, rights: &[Right]) -> Result<()> {
        let user = format!("system:serviceaccount:{}:{NAME}", self.namespace);
        let here = |right: &Right| Right {
            namespace: right
                .namespace
                .as_deref()
                .map(|of| counterpart(of, &self.namespace).to_owned()),
            ..right.clone()
        };
        let rights: Vec<Right> = rights.iter().map(here).collect();
        eventually("all rights to be used", TIMEOUT, || async {
            let mut entries = self.cluster.plane.audit()?;
            entries.retain(|entry| entry.user == user);
            let is_unused = |right: &&Right| !entries.iter().any(|entry| right.was_used_by(entry));
            let unused: Vec<_> = rights.iter().filter(is_unused).map(Right::to_string).collect();
            ensure!(unused.is_empty(), "no request needed: {}", unused.join(", "));
            Ok(())
        })
        .await
    }

    /// Plays the objects until a condition or the log names this right, and returns which of them does.
    async fn seen(&self, withheld: &Right) -> Result<&'static str> {
        let words = match withheld.is_on_everything() {
            true => UNINDEXED.to_owned(),
            false => withheld.denial(),
        };
        let named = eventually("a message about the missing right", TIMEOUT, || async {
            let mut objects = self.objects().list(&Default::default()).await?.items.into_iter();
            let messages = |object: &Kustomization| -> Vec<String> {
                let status = object.status.clone().unwrap_or_default();
                status
                    .conditions
                    .into_iter()
                    .map(|condition| condition.message)
                    .collect()
            };
            if objects.any(|object| messages(&object).iter().any(|message| message.contains(&words))) {
                return Ok("conditions");
            }
            let names = |entry: &Value| {
                let texts = entry.as_object().into_iter().flat_map(|fields| fields.values());
                texts.filter_map(Value::as_str).any(|text| text.contains(&words))
            };
            ensure!(
                self.controller.log_entries().iter().any(names),
                "no message has {words:?}"
            );
            Ok("the log")
        });
        let (mut played, mut named) = (pin!(self.play()), pin!(named));
        tokio::select! {
            named = &mut named => named,
            // Its failure may be of the kind that is looked for.
            _ = &mut played => named.await,
        }
    }
}
