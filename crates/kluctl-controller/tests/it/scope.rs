//! Definitions and rights that a controller finds in its cluster.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api,
    api::{DeleteParams, ListParams},
};
use serde_json::{Value, json};
use testkit::{ControlPlane, Controller, Options, eventually, wait_gone};

use crate::{
    fixture::{Fixture, TIMEOUT, grant, grant_in, message_of, plane},
    gitops::Gitops,
    orphans,
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

/// Returns the names of the results that name this object.
async fn results_of(secrets: &Api<Secret>, name: &str) -> Result<Vec<String>> {
    let listed = secrets
        .list(&ListParams::default().labels("kluctl.io/result=true"))
        .await?;
    let is_of = |secret: &Secret| {
        let summary = secret
            .metadata
            .annotations
            .as_ref()?
            .get("kluctl.io/command-result-summary")?;
        let summary: Value = serde_json::from_str(summary).ok()?;
        Some(summary["kluctlDeployment"]["name"] == name)
    };
    let named = listed.into_iter().filter(|secret| is_of(secret) == Some(true));
    Ok(named.filter_map(|secret| secret.metadata.name).collect())
}

#[tokio::test]
async fn results_of_objects_that_are_gone_are_deleted_without_rights_in_the_cluster() -> Result<()> {
    let plane = plane().await?;
    let namespace = plane.namespace("confined-results").await?;
    grant_in(plane, &namespace, (&namespace, "controller")).await?;
    let of = |namespace: &str, cluster: &str| json!({"name": "gone", "namespace": namespace, "clusterId": cluster});
    for (id, deployment) in [
        ("of-gone", of(&namespace, "")),
        ("elsewhere", of(&namespace, "another-cluster")),
        ("other-namespace", of("other", "")),
    ] {
        orphans::store(plane, &namespace, id, deployment).await?;
    }
    let mark = plane.audit_mark();
    let shop = Gitops::in_namespace(plane, namespace.clone()).await?;
    let secrets: Api<Secret> = Api::namespaced(plane.client().await?, &namespace);
    wait_gone(&secrets, "of-gone", TIMEOUT).await?;

    shop.push(&[("a", "1")])?;
    shop.create("shop", json!({ "prune": true, "delete": true }))
        .await?;
    shop.ready("shop", SUCCEEDED).await?;
    for _ in 0..3 {
        shop.reconcile("shop").await?;
    }
    ensure!(!results_of(&secrets, "shop").await?.is_empty());
    shop.api().delete("shop", &DeleteParams::default()).await?;
    eventually("the results to go", TIMEOUT, || async {
        let left = results_of(&secrets, "shop").await?;
        ensure!(left.is_empty(), "{left:?}");
        Ok(())
    })
    .await?;
    // Results of other clusters and of other controllers stay.
    for name in ["elsewhere", "other-namespace"] {
        ensure!(secrets.get_opt(name).await?.is_some(), "{name} is gone");
    }
    // A denial is remembered: it takes one read and one list to find out.
    let reads: Vec<_> = shop
        .fixture
        .requests_since(mark)?
        .into_iter()
        .filter(|entry| entry.resource == "namespaces" && entry.name == "kube-system")
        .collect();
    ensure!(
        reads.len() == 2 && reads.iter().all(|entry| entry.is_denied()),
        "{reads:?}"
    );
    Ok(())
}

#[tokio::test]
async fn denied_identity_of_a_remote_cluster_is_not_asked_for_in_each_pass() -> Result<()> {
    let shop = Gitops::new("confined-remote").await?;
    let (plane, own) = (shop.fixture.plane, shop.fixture.namespace.clone());
    let kubeconfig = plane.service_account_kubeconfig(&own, "remote").await?;
    let kubeconfig = std::fs::read_to_string(kubeconfig)?;
    grant_in(plane, &own, (&own, "remote")).await?;
    shop.fixture.store("value", &kubeconfig).await?;
    shop.push(&[("a", "1")])?;
    let user = format!("system:serviceaccount:{own}:remote");
    let asked = |mark: testkit::audit::Mark| -> Result<usize> {
        let entries = plane.audit_since(mark)?.into_iter();
        let reads = entries.filter(|entry| entry.user == user && entry.name == "kube-system");
        Ok(reads.count())
    };
    let mark = plane.audit_mark();
    let remote = json!({ "kubeConfig": { "secretRef": { "name": "remote" } } });
    shop.create("shop", remote).await?;
    shop.ready("shop", SUCCEEDED).await?;
    for _ in 0..3 {
        shop.reconcile("shop").await?;
    }
    // It takes one read and one list to find out.
    assert_eq!(asked(mark)?, 2);

    // Another version of the Secret may have more rights.
    shop.fixture.store("value", &format!("{kubeconfig}\n")).await?;
    shop.reconcile("shop").await?;
    assert_eq!(asked(mark)?, 4);
    Ok(())
}

#[tokio::test]
async fn dependency_that_may_not_be_read_is_named_with_the_reason() -> Result<()> {
    let plane = plane().await?;
    let namespace = plane.namespace("confined-depends").await?;
    grant_in(plane, &namespace, (&namespace, "controller")).await?;
    let fixture = Gitops::in_namespace(plane, namespace).await?.fixture;
    fixture.source("shop", &fixture.maps(&[("a", "1")])).await?;
    let elsewhere = json!({ "dependsOn": [{ "name": "db", "namespace": "default" }] });
    fixture.deploy("shop", elsewhere).await?;
    let object = fixture.ready("shop", "False", "DependencyNotReady").await?;
    let message = message_of(&object);
    ensure!(
        message.starts_with("unable to get 'default/db' dependency: ") && message.contains("forbidden"),
        "{message}"
    );
    Ok(())
}
