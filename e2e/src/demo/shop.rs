//! The demo's steps with the bundled example, a shop.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use api::{Condition, conditions, kluctl::KluctlDeployment, source::OCIRepository};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;
use testkit::{Repo, wait_for, wait_gone};

use super::{boxed, eras, mesh, project, successor, webhook};
use crate::{
    cluster::{CONTROLLERS, NAMESPACE, TIMEOUT, TestCluster, is_at, root},
    rbac::{self, roles},
    report::Report,
};

const HOOK: &str = "alerts";

/// Rules that only objects need which the demo doesn't have; the tests of their controllers use them.
const NOT_PLAYED: &[(&str, &str)] = &[
    // Pull secrets of an OCIRepository's service account.
    ("source-controller", "get /serviceaccounts"),
    // Tokens for artifacts go to the Service alone, which leads nowhere here.
    ("source-controller", "create authentication.k8s.io/tokenreviews"),
    // Cloud identities of Providers.
    ("notification-controller", "get /serviceaccounts"),
    // Variables, keys and kubeconfigs of Kustomizations.
    ("kustomize-controller", "get /secrets,configmaps"),
    // Cloud identities of Kustomizations.
    ("kustomize-controller", "create /serviceaccounts/token"),
];

#[must_use]
pub fn example() -> PathBuf {
    root().join("examples/shop")
}

#[derive(Debug)]
struct Shop<'a> {
    cluster: &'a TestCluster,
    repo: Repo,
    folder: PathBuf,
}

pub async fn play(report: &mut Report, cluster: &TestCluster) -> Result<()> {
    let folder = example();
    let repo = cluster.git.repo("shop")?;
    let first = repo.change("The shop").copy(&folder)?.push()?;
    repo.require_basic_auth("deployer", "read-only");
    let shop = Shop {
        cluster,
        repo,
        folder,
    };
    boxed(|| shop.watch_alerts()).await?;
    boxed(|| shop.beginnings(report, &first)).await?;
    boxed(|| shop.changes(report)).await?;
    let hooked = boxed(|| webhook::fetches_at_once(cluster));
    report
        .step("the webhook of a push has it fetched at once", hooked)
        .await?;
    boxed(|| shop.suspension(report)).await?;
    boxed(|| shop.mistakes(report)).await?;
    boxed(|| successor::play(report, cluster, &shop.repo)).await?;
    boxed(|| shop.endings(report)).await?;
    boxed(|| eras::play(report, cluster, &shop.folder)).await?;
    boxed(|| mesh::play(report, cluster)).await?;
    report
        .step(
            "the rights of the controllers are exactly what they used",
            shop.rights(),
        )
        .await
}

impl Shop<'_> {
    async fn watch_alerts(&self) -> Result<()> {
        let provider = json!({
            "apiVersion": "notification.toolkit.fluxcd.io/v1beta3",
            "kind": "Provider",
            "metadata": {"name": "webhook", "namespace": NAMESPACE},
            "spec": {"type": "generic", "secretRef": {"name": "webhook"}},
        });
        self.cluster
            .apply_secret("webhook", json!({"address": self.cluster.sink.url(HOOK)}))
            .await?;
        let alert = json!({
            "apiVersion": "notification.toolkit.fluxcd.io/v1beta3",
            "kind": "Alert",
            "metadata": {"name": "shop", "namespace": NAMESPACE},
            "spec": {
                "providerRef": {"name": "webhook"},
                "eventSeverity": "info",
                "eventSources": [
                    {"kind": "KluctlDeployment", "name": "*", "matchLabels": {"app": "shop"}},
                    {"kind": "GitRepository", "name": "shop", "matchLabels": {"app": "shop"}},
                ],
            },
        });
        for object in [provider, alert] {
            self.cluster.plane.apply(object).await?;
        }
        Ok(())
    }

    /// Waits until the webhook has received an event about an object, and returns the first line of its message.
    async fn heard(&self, about: &str, severity: &str, text: &str) -> Result<String> {
        let what = format!("the webhook to hear {text:?} about {about}");
        let heard = self.cluster.sink.wait_for(&what, TIMEOUT, |request| {
            let event = request.json();
            event["involvedObject"]["name"] == about
                && event["severity"] == severity
                && event["message"]
                    .as_str()
                    .is_some_and(|message| message.contains(text))
        });
        let event = heard.await?.json();
        Ok(event["message"]
            .as_str()
            .unwrap_or_default()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned())
    }

    /// A file of the example with one passage replaced.
    fn edited(&self, path: &str, from: &str, to: &str) -> Result<String> {
        let file = self.folder.join(path);
        let text =
            std::fs::read_to_string(&file).with_context(|| format!("can't read {}", file.display()))?;
        ensure!(text.contains(from), "{} doesn't contain {from:?}", file.display());
        Ok(text.replacen(from, to, 1))
    }

    fn workloads(&self, namespace: &str) -> Api<Deployment> {
        Api::namespaced(self.cluster.client.clone(), namespace)
    }

    async fn beginnings(&self, report: &mut Report, first: &str) -> Result<()> {
        let cluster = self.cluster;
        report
            .step("a private GitRepository becomes an artifact", async {
                let login = json!({"username": "deployer", "password": "read-only"});
                cluster.apply_secret("shop-git", login).await?;
                let repository = json!({
                    "apiVersion": "source.toolkit.fluxcd.io/v1",
                    "kind": "GitRepository",
                    "metadata": {"name": "shop", "namespace": NAMESPACE, "labels": {"app": "shop"}},
                    "spec": {"interval": "2s", "url": self.repo.url(), "ref": {"branch": "main"}, "secretRef": {"name": "shop-git"}},
                });
                cluster.plane.apply(repository).await?;
                cluster.artifact("shop", first).await
            })
            .await?;
        let rename = json!([{"oldContext": "default", "newContext": "kind-kind"}]);
        report
            .step("dependsOn orders: prod waits for test", async {
                let after = json!([{"name": "shop-test"}]);
                // prod is reached as another cluster would be: through a kubeconfig in a Secret.
                let kubeconfig = std::fs::read_to_string(cluster.plane.kubeconfig())?;
                cluster.apply_secret("prod-cluster", json!({"value": kubeconfig})).await?;
                let remote = json!({"secretRef": {"name": "prod-cluster"}});
                let prod =
                    json!({"target": "prod", "renameContexts": rename, "dependsOn": after, "kubeConfig": remote});
                cluster.apply_deployment("shop-prod", "shop", prod).await?;
                let waiting = |ready: &Condition| ready.reason == "DependencyNotReady";
                cluster
                    .ready_is("shop-prod", "prod to wait for test", waiting)
                    .await?;
                let test = json!({"target": "test", "renameContexts": rename});
                cluster.apply_deployment("shop-test", "shop", test).await?;
                let test = cluster.ready("shop-test", first).await?;
                Ok(format!(
                    "prod waited; test is Ready with {} objects",
                    project::objects(cluster, &test).await?.len()
                ))
            })
            .await?;
        report
            .step("both targets are Ready, and the webhook hears of it", async {
                let prod = cluster.ready("shop-prod", first).await?;
                let count = project::objects(cluster, &prod).await?.len();
                self.heard("shop-test", "info", "Reconciliation finished").await?;
                let heard = self.heard("shop-prod", "info", "Reconciliation finished").await?;
                Ok(format!("prod has {count} objects; heard: {heard}"))
            })
            .await
    }

    async fn changes(&self, report: &mut Report) -> Result<()> {
        let cluster = self.cluster;
        report
            .step("a pushed commit rolls out", async {
                let vars = self.edited("vars/test.yaml", "frontend: 1", "frontend: 3")?;
                let commit = self
                    .repo
                    .change("More frontends")
                    .write("vars/test.yaml", vars)
                    .push()?;
                let scaled = |frontend: &Deployment| {
                    frontend.status.as_ref().and_then(|status| status.ready_replicas) == Some(3)
                };
                wait_for(
                    &self.workloads("shop-test"),
                    "frontend",
                    "3 frontends",
                    TIMEOUT,
                    scaled,
                )
                .await?;
                cluster.ready("shop-test", &commit).await?;
                Ok("3 frontends are ready".to_owned())
            })
            .await?;
        report
            .step("a removed service is pruned", async {
                let services = self.edited("services/deployment.yaml", "  - path: reviews\n", "")?;
                let commit = self
                    .repo
                    .change("No more reviews")
                    .write("services/deployment.yaml", services)
                    .remove("services/reviews")
                    .push()?;
                wait_gone(&self.workloads("shop-test"), "reviews", TIMEOUT).await?;
                wait_gone(&self.workloads("shop-prod"), "reviews", TIMEOUT).await?;
                cluster.ready("shop-test", &commit).await?;
                Ok("reviews is gone in both environments".to_owned())
            })
            .await?;
        report
            .step(
                "a manual change is corrected, another manager's own field is left alone",
                async {
                    let workloads = self.workloads("shop-test");
                    let edit = PatchParams {
                        field_manager: Some("kubectl-edit".to_owned()),
                        ..PatchParams::default()
                    };
                    let changed =
                        json!({"spec": {"replicas": 7}, "metadata": {"annotations": {"on-call": "eve"}}});
                    workloads
                        .patch("frontend", &edit, &Patch::Merge(&changed))
                        .await?;
                    let back = |frontend: &Deployment| {
                        frontend.spec.as_ref().and_then(|spec| spec.replicas) == Some(3)
                    };
                    let corrected =
                        wait_for(&workloads, "frontend", "3 frontends again", TIMEOUT, back).await?;
                    let note = corrected.annotations().get("on-call").map(String::as_str);
                    ensure!(
                        note == Some("eve"),
                        "the annotation that nobody declares was removed"
                    );
                    Ok("replicas went from 7 back to 3, the foreign annotation stayed".to_owned())
                },
            )
            .await
    }

    async fn suspension(&self, report: &mut Report) -> Result<()> {
        let cluster = self.cluster;
        let mut commit = String::new();
        report
            .step("a push while suspended changes nothing", async {
                cluster
                    .patch_deployment("shop-prod", &json!({"spec": {"suspend": true}}))
                    .await?;
                let vars = self.edited("vars/common.yaml", "motto: ", "motto: New! ")?;
                commit = self
                    .repo
                    .change("A new motto")
                    .write("vars/common.yaml", vars)
                    .push()?;
                // The same push reaches the environment that isn't suspended.
                cluster.ready("shop-test", &commit).await?;
                let prod = cluster.deployments().get("shop-prod").await?;
                ensure!(
                    !is_at(&prod, &commit),
                    "the suspended deployment went on to {commit}"
                );
                Ok("test has the commit, prod hasn't".to_owned())
            })
            .await?;
        report
            .step("resuming deploys it", async {
                cluster
                    .patch_deployment("shop-prod", &json!({"spec": {"suspend": false}}))
                    .await?;
                cluster.ready("shop-prod", &commit).await?;
                Ok("prod has the commit".to_owned())
            })
            .await?;
        report
            .step("the annotation triggers", async {
                // Far from the next interval, only the annotation can be the cause.
                cluster
                    .patch_deployment("shop-test", &json!({"spec": {"interval": "1h"}}))
                    .await?;
                cluster.ready("shop-test", &commit).await?;
                let now = jiff::Timestamp::now().to_string();
                let annotation =
                    json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": now}}});
                cluster.patch_deployment("shop-test", &annotation).await?;
                let handled = |object: &KluctlDeployment| {
                    object
                        .status
                        .as_ref()
                        .and_then(|status| status.last_handled_reconcile_at.as_ref())
                        == Some(&now)
                };
                wait_for(
                    &cluster.deployments(),
                    "shop-test",
                    "the request to be handled",
                    TIMEOUT,
                    handled,
                )
                .await?;
                cluster
                    .patch_deployment("shop-test", &json!({"spec": {"interval": "5s"}}))
                    .await?;
                Ok(format!("lastHandledReconcileAt is {now}"))
            })
            .await
    }

    async fn mistakes(&self, report: &mut Report) -> Result<()> {
        let cluster = self.cluster;
        const BROKEN: &str = "services/catalog/deployment.yaml";
        report
            .step(
                "a broken commit turns Ready False, names file and line, and alerts",
                async {
                    let text = self.edited(BROKEN, "{{ ", "{{ no_such_variable.")?;
                    self.repo.change("A typing error").write(BROKEN, text).push()?;
                    let broken = |ready: &Condition| {
                        ready.is_false() && ready.message.contains(BROKEN) && ready.message.contains("line")
                    };
                    let object = cluster
                        .ready_is("shop-test", "a message with file and line", broken)
                        .await?;
                    self.heard("shop-test", "error", BROKEN).await?;
                    let message = crate::cluster::ready_condition(&object).map(|ready| ready.message.clone());
                    let message = message.unwrap_or_default();
                    let told = message
                        .lines()
                        .find(|line| line.contains(BROKEN))
                        .unwrap_or_default()
                        .trim();
                    Ok(told.to_owned())
                },
            )
            .await?;
        report
            .step("the fix recovers", async {
                let text = std::fs::read_to_string(self.folder.join(BROKEN))?;
                let commit = self
                    .repo
                    .change("The typing error is gone")
                    .write(BROKEN, text)
                    .push()?;
                cluster.ready("shop-test", &commit).await?;
                cluster.ready("shop-prod", &commit).await?;
                Ok("both are Ready again".to_owned())
            })
            .await?;
        report
            .step("what would have no effect is refused by name", async {
                let verify = json!({
                    "provider": "cosign", "secretRef": {"name": "keys"},
                    "matchOIDCIdentity": [{"issuer": "^https://a$", "subject": "^b$"}],
                });
                let artifact = json!({
                    "apiVersion": "source.toolkit.fluxcd.io/v1",
                    "kind": "OCIRepository",
                    "metadata": {"name": "signed", "namespace": NAMESPACE},
                    "spec": {"url": "oci://registry.invalid/shop", "interval": "1h", "verify": verify},
                });
                cluster.plane.apply(artifact).await?;
                let repositories: Api<OCIRepository> = Api::namespaced(cluster.client.clone(), NAMESPACE);
                let ready = |repository: &OCIRepository| {
                    let conditions = repository
                        .status
                        .as_ref()
                        .map(|status| status.conditions.as_slice());
                    conditions::get(conditions.unwrap_or_default(), "Ready").cloned()
                };
                let refused = |repository: &OCIRepository| {
                    ready(repository)
                        .is_some_and(|ready| ready.is_false() && ready.reason == "UnsupportedField")
                };
                let repository =
                    wait_for(&repositories, "signed", "UnsupportedField", TIMEOUT, refused).await?;
                let message = ready(&repository).map(|ready| ready.message);
                repositories.delete("signed", &DeleteParams::default()).await?;
                Ok(message.unwrap_or_default())
            })
            .await
    }

    async fn endings(&self, report: &mut Report) -> Result<()> {
        let cluster = self.cluster;
        report
            .step("deleting a KluctlDeployment removes its objects", async {
                let prod = cluster.deployments().get("shop-prod").await?;
                let before = project::objects(cluster, &prod).await?.len();
                cluster
                    .deployments()
                    .delete("shop-prod", &DeleteParams::default())
                    .await?;
                wait_gone(&cluster.deployments(), "shop-prod", TIMEOUT).await?;
                testkit::eventually("the objects to be gone", TIMEOUT, || async {
                    let left = project::objects(cluster, &prod).await?;
                    ensure!(left.is_empty(), "left: {}", left.join(", "));
                    Ok(())
                })
                .await?;
                Ok(format!("{before} objects are gone"))
            })
            .await?;
        report
            .step("deleting the GitRepository removes its artifacts", async {
                cluster
                    .repositories()
                    .delete("shop", &DeleteParams::default())
                    .await?;
                wait_gone(&cluster.repositories(), "shop", TIMEOUT).await?;
                let source = cluster.controller("source-controller")?;
                let folder = source
                    .storage_path()
                    .join("gitrepository")
                    .join(NAMESPACE)
                    .join("shop");
                ensure!(!folder.exists(), "{} is still there", folder.display());
                Ok("the storage is empty".to_owned())
            })
            .await
    }

    /// Checks that no request was denied and that every rule was used, except [`NOT_PLAYED`].
    async fn rights(&self) -> Result<String> {
        let entries = self.cluster.plane.audit()?;
        let mut problems = Vec::new();
        for &name in CONTROLLERS {
            let rules = roles::rules_of(self.cluster, name).await?;
            let user = format!("system:serviceaccount:{NAMESPACE}:{name}");
            let usage = rbac::compare(&user, &rules, &entries);
            problems.extend(
                usage
                    .denied
                    .iter()
                    .map(|request| format!("{name} was denied: {request}")),
            );
            problems.extend(
                usage
                    .unused
                    .iter()
                    .filter(|rule| !NOT_PLAYED.contains(&(name, rule.as_str())))
                    .map(|rule| format!("{name} didn't use: {rule}")),
            );
        }
        ensure!(problems.is_empty(), "{}", problems.join("\n"));
        Ok(format!("{} requests looked at", entries.len()))
    }
}
