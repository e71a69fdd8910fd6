//! The demo's steps for `gitops.kluctl.io`: its KluctlDeployment takes over from the one of `flux.kluctl.io` with the same name, and fetches
//! by itself.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use api::{
    conditions,
    kluctl::gitops::{KluctlDeployment, KluctlDeploymentStatus},
};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use testkit::{Repo, stack, wait_for, wait_gone};

use super::project;
use crate::{
    cluster::{NAMESPACE, TIMEOUT, TestCluster},
    report::Report,
};

const NAME: &str = "shop-test";
/// The discriminator and the namespace of the target `test`.
const TARGET: &str = "shop-test";

/// Lets a KluctlDeployment of `gitops.kluctl.io` take over the objects of the target `test` once it is approved, deletes its predecessor of
/// the same name, shows a drift and corrects it, and deletes it with its objects. The Secret `shop-git` has the credentials of the
/// repository.
pub(super) async fn play(report: &mut Report, cluster: &TestCluster, repo: &Repo) -> Result<()> {
    let successor = Successor::new(cluster);
    let mut before = BTreeMap::new();
    report
        .step(
            "one of gitops.kluctl.io, of the same name, waits for an approval",
            async {
                before = identities(cluster).await?;
                ensure!(!before.is_empty(), "nothing is there to be taken over");
                successor.wait_for_approval(repo).await
            },
        )
        .await?;
    report
        .step("approved, it takes over", successor.approve(&before))
        .await?;
    report
        .step(
            "its predecessor is deleted, and nothing with it",
            successor.leave_predecessor(&before),
        )
        .await?;
    report
        .step("a drift is shown, and corrected on request", successor.drift())
        .await?;
    report
        .step("it is deleted with all that it deployed", successor.remove())
        .await
}

struct Successor<'a> {
    cluster: &'a TestCluster,
    deployments: Api<KluctlDeployment>,
}

impl<'a> Successor<'a> {
    fn new(cluster: &'a TestCluster) -> Self {
        let deployments = Api::namespaced(cluster.client.clone(), NAMESPACE);
        Self { cluster, deployments }
    }

    async fn patch(&self, patch: &Value) -> Result<()> {
        let merge = Patch::Merge(patch);
        self.deployments
            .patch(NAME, &PatchParams::default(), &merge)
            .await?;
        Ok(())
    }

    async fn status(
        &self,
        what: &str,
        predicate: impl Fn(&KluctlDeploymentStatus) -> bool,
    ) -> Result<KluctlDeploymentStatus> {
        let found = wait_for(&self.deployments, NAME, what, TIMEOUT, |object| {
            object.status.as_ref().is_some_and(&predicate)
        });
        found.await?.status.context("no status")
    }

    async fn wait_for_approval(&self, repo: &Repo) -> Result<String> {
        let url = repo.url();
        let host = url.split('/').nth(2).context("the URL has no host")?;
        let object = json!({
            "apiVersion": "gitops.kluctl.io/v1beta1",
            "kind": "KluctlDeployment",
            "metadata": {"name": NAME, "namespace": NAMESPACE},
            "spec": {
                "interval": "5s",
                "source": {"git": {"url": url, "ref": {"branch": "main"}}},
                "credentials": {"git": [{"host": host, "secretRef": {"name": "shop-git"}}]},
                "serviceAccountName": stack::DEPLOYER,
                "target": "test", "context": "default", "prune": true, "delete": true,
                "manual": true,
            },
        });
        self.cluster.plane.apply(object).await?;
        let rendered = |status: &KluctlDeploymentStatus| {
            status.last_objects_hash.is_some() && status.last_drift_detection_result_message.is_some()
        };
        let status = self.status("the hash of what it would deploy", rendered).await?;
        ensure!(
            status.last_deploy_result.is_none(),
            "it was deployed without approval"
        );
        let hash = status.last_objects_hash.unwrap_or_default();
        Ok(format!("objects {} wait", hash.get(..12).unwrap_or(&hash)))
    }

    async fn approve(&self, before: &BTreeMap<String, Option<String>>) -> Result<String> {
        let object = self.deployments.get(NAME).await?;
        let hash = object.status.and_then(|status| status.last_objects_hash);
        self.patch(&json!({"spec": {"manualObjectsHash": hash}})).await?;
        let ready = self.status("Ready", is_ready).await?;
        let after = identities(self.cluster).await?;
        ensure!(*before == after, "before: {before:?}\nafter: {after:?}");
        let message = conditions::get(&ready.conditions, "Ready").map(|ready| ready.message.clone());
        let message = message.unwrap_or_default();
        Ok(format!("the same {} Deployments; {message}", after.len()))
    }

    /// Deletes the KluctlDeployment of `flux.kluctl.io`, which gave way.
    async fn leave_predecessor(&self, before: &BTreeMap<String, Option<String>>) -> Result<String> {
        let predecessors = self.cluster.deployments();
        let predecessor = predecessors.get(NAME).await?;
        let gave_way = predecessor
            .status
            .is_some_and(|status| status.ready_for_migration == Some(true));
        ensure!(gave_way, "its status.readyForMigration isn't true");
        predecessors.delete(NAME, &DeleteParams::default()).await?;
        wait_gone(&predecessors, NAME, TIMEOUT).await?;
        let after = identities(self.cluster).await?;
        ensure!(*before == after, "before: {before:?}\nafter: {after:?}");
        Ok(format!("the same {} Deployments", after.len()))
    }

    async fn drift(&self) -> Result<String> {
        let workloads: Api<Deployment> = Api::namespaced(self.cluster.client.clone(), TARGET);
        let edit = PatchParams {
            field_manager: Some("kubectl-edit".to_owned()),
            ..PatchParams::default()
        };
        let changed = Patch::Merge(json!({"spec": {"replicas": 7}}));
        workloads.patch("frontend", &edit, &changed).await?;
        let message = |status: &KluctlDeploymentStatus| status.last_drift_detection_result_message.clone();
        let drifted = |status: &KluctlDeploymentStatus| message(status).as_deref() == Some("1 chg");
        self.status("the drift", drifted).await?;
        let request = json!({"requestValue": "demo"}).to_string();
        self.patch(&json!({"metadata": {"annotations": {"kluctl.io/request-deploy": request}}}))
            .await?;
        let handled = |status: &KluctlDeploymentStatus| {
            let result = status.deploy_request_result.as_ref();
            result.is_some_and(|result| result.request.request_value == "demo" && result.end_time.is_some())
        };
        let status = self.status("the request to deploy", handled).await?;
        let error = status
            .deploy_request_result
            .and_then(|result| result.command_error);
        ensure!(error.is_none(), "{error:?}");
        let corrected =
            |frontend: &Deployment| frontend.spec.as_ref().and_then(|spec| spec.replicas) != Some(7);
        wait_for(&workloads, "frontend", "the old replicas", TIMEOUT, corrected).await?;
        let calm = |status: &KluctlDeploymentStatus| message(status).as_deref() == Some("no drift");
        self.status("no drift", calm).await?;
        Ok("1 chg, then no drift".to_owned())
    }

    async fn remove(&self) -> Result<String> {
        self.deployments.delete(NAME, &DeleteParams::default()).await?;
        wait_gone(&self.deployments, NAME, TIMEOUT).await?;
        testkit::eventually("the objects to be gone", TIMEOUT, || async {
            let left = project::labelled(self.cluster, TARGET).await?;
            ensure!(left.is_empty(), "left: {}", left.join(", "));
            Ok(())
        })
        .await?;
        Ok("nothing is left".to_owned())
    }
}

fn is_ready(status: &KluctlDeploymentStatus) -> bool {
    conditions::is_true(&status.conditions, "Ready")
}

async fn identities(cluster: &TestCluster) -> Result<BTreeMap<String, Option<String>>> {
    let workloads: Api<Deployment> = Api::namespaced(cluster.client.clone(), TARGET);
    let listed = workloads.list(&ListParams::default()).await?;
    Ok(listed
        .items
        .into_iter()
        .map(|object| (object.name_any(), object.uid()))
        .collect())
}
