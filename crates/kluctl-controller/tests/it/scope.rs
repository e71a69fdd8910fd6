//! Definitions and rights that a controller finds in its cluster.

use anyhow::{Context as _, Result, ensure};
use kube::api::DeleteParams;
use serde_json::json;
use testkit::{ControlPlane, Controller, Options, eventually, wait_gone};

use crate::{
    fixture::{Fixture, TIMEOUT, grant, grant_in, plane},
    gitops::Gitops,
};

const SUCCEEDED: &str = "ReconciliationSucceeded";

impl Gitops {
    /// Starts a controller for a namespace with exactly these rights, and the flag `--namespace`.
    async fn in_namespace(plane: &'static ControlPlane, namespace: String) -> Result<Self> {
        let kubeconfig = plane.service_account_kubeconfig(&namespace, "controller").await?;
        let launch = Controller::named("kluctl-controller")
            .run_by(&kubeconfig)
            .namespace(&namespace)
            .flag(&format!("--namespace={namespace}"))
            .flag(&format!("--command-result-namespace={namespace}"));
        let home = namespace.clone();
        Self::of(Fixture::of(plane, &home, namespace, launch.spawn()?).await?)
    }
}

#[tokio::test]
async fn definitions_that_appear_later_are_found() -> Result<()> {
    let own = ControlPlane::lent(Options::default()).await?;
    let plane = own.get();
    let namespace = plane.namespace("later").await?;
    grant(plane, &namespace, "controller", &namespace).await?;
    let shop = Gitops::in_namespace(plane, namespace).await?;
    shop.push(&[("a", "1")])?;
    let define = async |definition| plane.apply(serde_json::to_value(definition)?).await;
    define(api::crd::gitops_kluctl_deployment()).await?;
    eventually("the first definition to be served", TIMEOUT, || {
        shop.create("new", json!({}))
    })
    .await?;
    shop.ready("new", SUCCEEDED).await?;
    ensure!(shop.value("a").await?.as_deref() == Some("1"));

    for definition in [api::crd::kluctl_deployment(), api::crd::git_repository()] {
        define(definition).await?;
    }
    let files = shop.fixture.other_maps("old", &[("b", "1")]);
    shop.fixture.source("old", &files).await?;
    shop.fixture.deploy("old", json!({})).await?;
    shop.fixture.ready("old", "True", SUCCEEDED).await?;
    shop.fixture.holds("b", "1").await?;
    ensure!(shop.value("a").await?.is_some() && shop.fixture.controller.is_running());
    Ok(())
}

#[tokio::test]
async fn rights_in_one_namespace_suffice_to_deploy_prune_and_delete() -> Result<()> {
    let plane = plane().await?;
    let namespace = plane.namespace("confined").await?;
    // A RoleBinding: there are no rights in other namespaces, or in the cluster.
    grant_in(plane, &namespace, (&namespace, "controller")).await?;
    let mark = plane.audit_mark();
    let shop = Gitops::in_namespace(plane, namespace.clone()).await?;
    shop.push(&[("a", "1"), ("b", "1")])?;
    shop.create("shop", json!({ "prune": true, "delete": true }))
        .await?;
    shop.ready("shop", SUCCEEDED).await?;
    shop.push(&[("a", "2")])?;
    let status = shop.reconcile("shop").await?;
    ensure!(
        json!(status.last_deploy_result)["deletedObjects"] == 1,
        "{status:?}"
    );
    ensure!(shop.value("a").await?.as_deref() == Some("2") && shop.value("b").await?.is_none());
    let api = shop.api();
    api.delete("shop", &DeleteParams::default()).await?;
    wait_gone(&api, "shop", TIMEOUT).await?;
    ensure!(shop.value("a").await?.is_none());

    let source = shop.fixture.running(
        "old",
        &[("c", "1"), ("d", "1")],
        json!({ "prune": true, "delete": true }),
    );
    let source = source.await?;
    let revision = source.offer(&shop.fixture.maps(&[("c", "2")])).await?;
    shop.fixture.deployed("old", &revision).await?;
    shop.fixture.holds("c", "2").await?;
    ensure!(!shop.fixture.has("d").await?);
    shop.fixture.remove("old").await?;
    ensure!(!shop.fixture.has("c").await?);

    // Nothing was written elsewhere, not even in vain.
    let entries = shop.fixture.requests_since(mark)?;
    let elsewhere: Vec<_> = entries
        .iter()
        .filter(|entry| {
            entry.is_write() && entry.namespace != namespace && entry.resource != "selfsubjectaccessreviews"
        })
        .collect();
    ensure!(!entries.is_empty() && elsewhere.is_empty(), "{elsewhere:?}");
    let first = entries.first().context("requests")?;
    ensure!(first.user.contains(&namespace));
    Ok(())
}
