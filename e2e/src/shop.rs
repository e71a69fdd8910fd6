//! The whole story, with the bundled shop.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use api::{Condition, conditions, kluctl::KluctlDeployment, notification::Provider};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;
use testkit::{Repo, wait_for, wait_gone};

use crate::{
    foreign, granted, rights,
    stage::Stage,
    world::{CONTROLLERS, PATIENCE, SYSTEM, World, is_at, root},
};

/// Where the alerts of the demo are posted to.
const HOOK: &str = "alerts";

/// The folder of the bundled example.
#[must_use]
pub fn example() -> PathBuf {
    root().join("examples/shop")
}

/// The shop on its way from Git into the cluster.
#[derive(Debug)]
struct Shop<'a> {
    world: &'a World,
    repo: Repo,
    folder: PathBuf,
}

/// Plays the story. The controllers run already.
///
/// # Errors
/// When a step isn't observed.
pub async fn play(stage: &mut Stage, world: &World) -> Result<()> {
    let folder = example();
    let repo = world.git.repo("shop")?;
    let first = repo.change("The shop").copy(&folder)?.push()?;
    repo.require_basic_auth("deployer", "read-only");
    let shop = Shop { world, repo, folder };
    shop.watch_alerts().await?;
    shop.beginnings(stage, &first).await?;
    shop.changes(stage).await?;
    shop.suspension(stage).await?;
    shop.mistakes(stage).await?;
    shop.endings(stage).await?;
    stage
        .step(
            "the rights of the controllers are exactly what they used",
            shop.rights(),
        )
        .await
}

impl Shop<'_> {
    /// A Provider and an Alert for everything that happens to the two deployments.
    async fn watch_alerts(&self) -> Result<()> {
        let provider = json!({
            "apiVersion": "notification.toolkit.fluxcd.io/v1beta3",
            "kind": "Provider",
            "metadata": {"name": "webhook", "namespace": SYSTEM},
            "spec": {"type": "generic", "secretRef": {"name": "webhook"}},
        });
        self.world
            .apply_secret("webhook", json!({"address": self.world.sink.url(HOOK)}))
            .await?;
        let alert = json!({
            "apiVersion": "notification.toolkit.fluxcd.io/v1beta3",
            "kind": "Alert",
            "metadata": {"name": "shop", "namespace": SYSTEM},
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
            self.world.plane.apply(object).await?;
        }
        Ok(())
    }

    async fn heard(&self, about: &str, severity: &str, text: &str) -> Result<String> {
        let what = format!("the webhook to hear {text:?} about {about}");
        let heard = self.world.sink.wait_for(&what, PATIENCE, |request| {
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
        Api::namespaced(self.world.client.clone(), namespace)
    }

    async fn beginnings(&self, stage: &mut Stage, first: &str) -> Result<()> {
        let world = self.world;
        stage
            .step("a private GitRepository becomes an artifact", async {
                let login = json!({"username": "deployer", "password": "read-only"});
                world.apply_secret("shop-git", login).await?;
                let repository = json!({
                    "apiVersion": "source.toolkit.fluxcd.io/v1",
                    "kind": "GitRepository",
                    "metadata": {"name": "shop", "namespace": SYSTEM, "labels": {"app": "shop"}},
                    "spec": {"interval": "2s", "url": self.repo.url(), "ref": {"branch": "main"}, "secretRef": {"name": "shop-git"}},
                });
                world.plane.apply(repository).await?;
                world.artifact("shop", first).await
            })
            .await?;
        let rename = json!([{"oldContext": "default", "newContext": "kind-kind"}]);
        stage
            .step("dependsOn orders: prod waits for test", async {
                let after = json!([{"name": "shop-test"}]);
                // prod is reached as another cluster would be: through a kubeconfig in a Secret.
                let kubeconfig = std::fs::read_to_string(world.plane.kubeconfig())?;
                world.apply_secret("prod-cluster", json!({"value": kubeconfig})).await?;
                let remote = json!({"secretRef": {"name": "prod-cluster"}});
                let prod =
                    json!({"target": "prod", "renameContexts": rename, "dependsOn": after, "kubeConfig": remote});
                world.apply_deployment("shop-prod", "shop", prod).await?;
                let waiting = |ready: &Condition| ready.reason == "DependencyNotReady";
                world
                    .ready_is("shop-prod", "prod to wait for test", waiting)
                    .await?;
                let test = json!({"target": "test", "renameContexts": rename});
                world.apply_deployment("shop-test", "shop", test).await?;
                let test = world.ready("shop-test", first).await?;
                Ok(format!(
                    "prod waited; test is Ready with {} objects",
                    foreign::objects(world, &test).await?.len()
                ))
            })
            .await?;
        stage
            .step("both targets are Ready, and the webhook hears of it", async {
                let prod = world.ready("shop-prod", first).await?;
                let count = foreign::objects(world, &prod).await?.len();
                self.heard("shop-test", "info", "Reconciliation finished").await?;
                let heard = self.heard("shop-prod", "info", "Reconciliation finished").await?;
                Ok(format!("prod has {count} objects; heard: {heard}"))
            })
            .await
    }

    async fn changes(&self, stage: &mut Stage) -> Result<()> {
        let world = self.world;
        stage
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
                    PATIENCE,
                    scaled,
                )
                .await?;
                world.ready("shop-test", &commit).await?;
                Ok("3 frontends are ready".to_owned())
            })
            .await?;
        stage
            .step("a removed service is pruned", async {
                let services = self.edited("services/deployment.yaml", "  - path: reviews\n", "")?;
                let commit = self
                    .repo
                    .change("No more reviews")
                    .write("services/deployment.yaml", services)
                    .remove("services/reviews")
                    .push()?;
                wait_gone(&self.workloads("shop-test"), "reviews", PATIENCE).await?;
                wait_gone(&self.workloads("shop-prod"), "reviews", PATIENCE).await?;
                world.ready("shop-test", &commit).await?;
                Ok("reviews is gone in both environments".to_owned())
            })
            .await?;
        stage
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
                        wait_for(&workloads, "frontend", "3 frontends again", PATIENCE, back).await?;
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

    async fn suspension(&self, stage: &mut Stage) -> Result<()> {
        let world = self.world;
        let mut commit = String::new();
        stage
            .step("a push while suspended changes nothing", async {
                world
                    .patch_deployment("shop-prod", &json!({"spec": {"suspend": true}}))
                    .await?;
                let vars = self.edited("vars/common.yaml", "motto: ", "motto: New! ")?;
                commit = self
                    .repo
                    .change("A new motto")
                    .write("vars/common.yaml", vars)
                    .push()?;
                // The same push reaches the environment that isn't suspended.
                world.ready("shop-test", &commit).await?;
                let prod = world.deployments().get("shop-prod").await?;
                ensure!(
                    !is_at(&prod, &commit),
                    "the suspended deployment went on to {commit}"
                );
                Ok("test has the commit, prod hasn't".to_owned())
            })
            .await?;
        stage
            .step("resuming deploys it", async {
                world
                    .patch_deployment("shop-prod", &json!({"spec": {"suspend": false}}))
                    .await?;
                world.ready("shop-prod", &commit).await?;
                Ok("prod has the commit".to_owned())
            })
            .await?;
        stage
            .step("the annotation triggers", async {
                // Far from the next interval, only the annotation can be the cause.
                world
                    .patch_deployment("shop-test", &json!({"spec": {"interval": "1h"}}))
                    .await?;
                world.ready("shop-test", &commit).await?;
                let now = jiff::Timestamp::now().to_string();
                let annotation =
                    json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": now}}});
                world.patch_deployment("shop-test", &annotation).await?;
                let handled = |object: &KluctlDeployment| {
                    object
                        .status
                        .as_ref()
                        .and_then(|status| status.last_handled_reconcile_at.as_ref())
                        == Some(&now)
                };
                wait_for(
                    &world.deployments(),
                    "shop-test",
                    "the request to be handled",
                    PATIENCE,
                    handled,
                )
                .await?;
                world
                    .patch_deployment("shop-test", &json!({"spec": {"interval": "5s"}}))
                    .await?;
                Ok(format!("lastHandledReconcileAt is {now}"))
            })
            .await
    }

    async fn mistakes(&self, stage: &mut Stage) -> Result<()> {
        let world = self.world;
        const BROKEN: &str = "services/catalog/deployment.yaml";
        stage
            .step(
                "a broken commit turns Ready False, names file and line, and alerts",
                async {
                    let text = self.edited(BROKEN, "{{ ", "{{ no_such_variable.")?;
                    self.repo.change("A typing error").write(BROKEN, text).push()?;
                    let broken = |ready: &Condition| {
                        ready.is_false() && ready.message.contains(BROKEN) && ready.message.contains("line")
                    };
                    let object = world
                        .ready_is("shop-test", "a message with file and line", broken)
                        .await?;
                    self.heard("shop-test", "error", BROKEN).await?;
                    let message = crate::world::ready_condition(&object).map(|ready| ready.message.clone());
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
        stage
            .step("the fix recovers", async {
                let text = std::fs::read_to_string(self.folder.join(BROKEN))?;
                let commit = self
                    .repo
                    .change("The typing error is gone")
                    .write(BROKEN, text)
                    .push()?;
                world.ready("shop-test", &commit).await?;
                world.ready("shop-prod", &commit).await?;
                Ok("both are Ready again".to_owned())
            })
            .await?;
        stage
            .step("what isn't supported yet is refused by name", async {
                let provider = json!({
                    "apiVersion": "notification.toolkit.fluxcd.io/v1beta3",
                    "kind": "Provider",
                    "metadata": {"name": "pager", "namespace": SYSTEM},
                    "spec": {"type": "pagerduty"},
                });
                world.plane.apply(provider).await?;
                let providers: Api<Provider> = Api::namespaced(world.client.clone(), SYSTEM);
                let refused = |provider: &Provider| {
                    let conditions = provider
                        .status
                        .as_ref()
                        .map(|status| status.conditions.as_slice());
                    conditions::get(conditions.unwrap_or_default(), "Ready")
                        .is_some_and(|ready| ready.is_false() && ready.reason == "UnsupportedField")
                };
                let provider = wait_for(&providers, "pager", "UnsupportedField", PATIENCE, refused).await?;
                let conditions = provider
                    .status
                    .map(|status| status.conditions)
                    .unwrap_or_default();
                let message = conditions::get(&conditions, "Ready").map(|ready| ready.message.clone());
                providers.delete("pager", &DeleteParams::default()).await?;
                Ok(message.unwrap_or_default())
            })
            .await
    }

    async fn endings(&self, stage: &mut Stage) -> Result<()> {
        let world = self.world;
        stage
            .step("deleting a KluctlDeployment removes its objects", async {
                let prod = world.deployments().get("shop-prod").await?;
                let before = foreign::objects(world, &prod).await?.len();
                world
                    .deployments()
                    .delete("shop-prod", &DeleteParams::default())
                    .await?;
                wait_gone(&world.deployments(), "shop-prod", PATIENCE).await?;
                testkit::eventually("the objects to be gone", PATIENCE, || async {
                    let left = foreign::objects(world, &prod).await?;
                    ensure!(left.is_empty(), "left: {}", left.join(", "));
                    Ok(())
                })
                .await?;
                Ok(format!("{before} objects are gone"))
            })
            .await?;
        stage
            .step("deleting a suspended one doesn't", async {
                let test = world.deployments().get("shop-test").await?;
                let before = foreign::objects(world, &test).await?;
                world
                    .patch_deployment("shop-test", &json!({"spec": {"suspend": true}}))
                    .await?;
                world
                    .deployments()
                    .delete("shop-test", &DeleteParams::default())
                    .await?;
                wait_gone(&world.deployments(), "shop-test", PATIENCE).await?;
                let after = foreign::objects(world, &test).await?;
                ensure!(
                    before == after && !after.is_empty(),
                    "before: {before:?}\nafter: {after:?}"
                );
                Ok(format!("{} objects are still there", after.len()))
            })
            .await?;
        stage
            .step("deleting the GitRepository removes its artifacts", async {
                world
                    .repositories()
                    .delete("shop", &DeleteParams::default())
                    .await?;
                wait_gone(&world.repositories(), "shop", PATIENCE).await?;
                let source = world.controller("source-controller")?;
                let folder = source
                    .storage_path()
                    .join("gitrepository")
                    .join(SYSTEM)
                    .join("shop");
                ensure!(!folder.exists(), "{} is still there", folder.display());
                Ok("the storage is empty".to_owned())
            })
            .await
    }

    /// No request was denied, and no rule went unused; the cluster-admin of the deployer aside.
    async fn rights(&self) -> Result<String> {
        let entries = self.world.plane.audit()?;
        let mut complaints = Vec::new();
        for name in CONTROLLERS {
            let rules = granted::rules_of(self.world, name).await?;
            let user = format!("system:serviceaccount:{SYSTEM}:{name}");
            let verdict = rights::judge(&user, &rules, &entries);
            complaints.extend(
                verdict
                    .denied
                    .iter()
                    .map(|request| format!("{name} was denied: {request}")),
            );
            complaints.extend(
                verdict
                    .unused
                    .iter()
                    .map(|rule| format!("{name} didn't use: {rule}")),
            );
        }
        ensure!(complaints.is_empty(), "{}", complaints.join("\n"));
        Ok(format!("{} requests looked at", entries.len()))
    }
}
