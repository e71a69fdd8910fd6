//! Removal of a deployment, with or without its objects.

use anyhow::{Result, ensure};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Namespace, ServiceAccount},
};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use testkit::{eventually, wait_for, wait_gone};

use crate::{
    fixture::{Fixture, TIMEOUT, for_kind, grant_in, message_of},
    waiting::NEVER_READY,
};

#[tokio::test]
async fn removal_deletes_or_keeps_objects_as_the_spec_says() -> Result<()> {
    let fixture = Fixture::new("remove", &[]).await?;
    let cases = [
        ("pruned", json!({ "prune": true }), false),
        ("deleted", json!({ "prune": false, "delete": true }), false),
        ("kept", json!({ "prune": true, "delete": false }), true),
        ("neither", json!({ "prune": false }), true),
        ("suspended", json!({ "prune": true, "delete": true }), true),
    ];
    for (name, spec, stays) in cases {
        // Each has a discriminator of its own.
        let files = [
            (
                ".kluctl.yaml",
                format!("discriminator: {}-{name}\n", fixture.namespace),
            ),
            (
                "deployment.yaml",
                format!(
                    "deployments:\n- path: app\noverrideNamespace: {}\n",
                    fixture.namespace
                ),
            ),
            ("app/kustomization.yaml", "resources:\n- map.yaml\n".to_owned()),
            ("app/map.yaml", crate::fixture::config_map(name, "1")),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), text));
        fixture.source(name, &files).await?;
        fixture
            .plane
            .apply(fixture.deployment(name, name).spec(spec))
            .await?;
        fixture.ready(name, "True", "ReconciliationSucceeded").await?;
        if name == "suspended" {
            fixture.edit(name, json!({ "suspend": true })).await?;
        }
        fixture.remove(name).await?;
        let there = fixture
            .config_maps()
            .get_opt(name)
            .await?
            .is_some_and(|map| map.metadata.deletion_timestamp.is_none());
        ensure!(
            there == stays,
            "{name}: the object is {}",
            if there { "there" } else { "gone" }
        );
    }
    fixture
        .told("pruned", "delete succeeded. 1 deleted objects.")
        .await?;
    Ok(())
}

#[tokio::test]
async fn removal_retries_an_unreachable_cluster_until_suspended() -> Result<()> {
    let fixture = Fixture::new("lost", &[]).await?;
    let kubeconfig = fixture.account("remote").await?;
    fixture.store("value", &kubeconfig).await?;
    let remote = json!({ "kubeConfig": { "secretRef": { "name": "remote" } } });
    fixture.running("shop", &[("a", "1")], remote).await?;
    let server = fixture.plane.server().to_owned();
    fixture
        .store("value", &kubeconfig.replace(&server, "https://127.0.0.1:1"))
        .await?;
    fixture
        .deployments()
        .delete("shop", &DeleteParams::default())
        .await?;
    let object = wait_for(&fixture.deployments(), "shop", "a reason", TIMEOUT, |object| {
        message_of(object).starts_with("cannot delete what was deployed: ")
    })
    .await?;
    ensure!(
        message_of(&object).contains("suspend the object to give up now"),
        "{}",
        message_of(&object)
    );
    fixture.edit("shop", json!({ "suspend": true })).await?;
    wait_gone(&fixture.deployments(), "shop", TIMEOUT).await?;
    ensure!(fixture.has("a").await?);
    Ok(())
}

#[tokio::test]
async fn removal_of_an_undeployed_object_is_immediate() -> Result<()> {
    let fixture = Fixture::new("never", &[]).await?;
    fixture
        .plane
        .apply(fixture.deployment("shop", "no-such-source").spec(for_kind()))
        .await?;
    fixture.ready("shop", "False", "ArtifactFailed").await?;
    fixture.remove("shop").await
}

/// A ConfigMap of a namespace.
pub(crate) fn map_in(namespace: &str, name: &str) -> String {
    crate::fixture::config_map(name, "1").replace(
        &format!("  name: {name}\n"),
        &format!("  name: {name}\n  namespace: {namespace}\n"),
    )
}

#[tokio::test]
async fn removal_gives_up_in_a_terminating_namespace_without_rights() -> Result<()> {
    let fixture = Fixture::apart("dying", &["--default-service-account=tenant"]).await?;
    let plane = fixture.plane;
    let other = plane.namespace("other").await?;
    let tenant = (fixture.namespace.as_str(), "tenant");
    plane.service_account_kubeconfig(tenant.0, tenant.1).await?;
    grant_in(plane, &fixture.namespace, tenant).await?;
    let rights = grant_in(plane, &other, tenant).await?;
    let files = [
        (".kluctl.yaml", format!("discriminator: {}\n", fixture.namespace)),
        ("deployment.yaml", "deployments:\n- path: app\n".to_owned()),
        (
            "app/kustomization.yaml",
            "resources:\n- own.yaml\n- left.yaml\n".to_owned(),
        ),
        ("app/own.yaml", map_in(&fixture.namespace, "own")),
        ("app/left.yaml", map_in(&other, "left")),
    ];
    let files = files.map(|(path, text)| (path.to_owned(), text));
    fixture.source("shop", &files).await?;
    plane
        .apply(fixture.deployment("shop", "shop").spec(json!({ "prune": true })))
        .await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;

    // Without rights in the other namespace the removal can't be completed, and is retried.
    rights.delete("tenant", &DeleteParams::default()).await?;
    fixture
        .deployments()
        .delete("shop", &DeleteParams::default())
        .await?;
    let object = wait_for(&fixture.deployments(), "shop", "a reason", TIMEOUT, |object| {
        message_of(object).starts_with("cannot delete what was deployed: not all objects could be searched")
    })
    .await?;
    let message = message_of(&object);
    ensure!(message.contains("s, then given up (suspend"), "{message}");
    // When its own namespace goes, nothing will ever complete it.
    let namespaces: Api<Namespace> = Api::all(fixture.client.clone());
    namespaces
        .delete(&fixture.namespace, &DeleteParams::default())
        .await?;
    wait_gone(&namespaces, &fixture.namespace, TIMEOUT).await?;
    let told = |entry: &Value| {
        let message = entry["message"]
            .as_str()
            .or(entry["msg"].as_str())
            .unwrap_or_default();
        message.contains("is being deleted") && message.contains("/ConfigMap/left")
    };
    fixture.controller.wait_log("what is left", TIMEOUT, told).await?;
    let left: Api<ConfigMap> = Api::namespaced(fixture.client.clone(), &other);
    ensure!(
        left.get_opt("left").await?.is_some(),
        "it was deleted without rights"
    );
    Ok(())
}

#[tokio::test]
async fn removal_of_a_large_deployment_remembers_every_kind() -> Result<()> {
    let fixture = Fixture::new("large", &["--default-service-account=tenant"]).await?;
    let plane = fixture.plane;
    let other = plane.namespace("other").await?;
    let tenant = (fixture.namespace.as_str(), "tenant");
    plane.service_account_kubeconfig(tenant.0, tenant.1).await?;
    grant_in(plane, &fixture.namespace, tenant).await?;
    let rights = grant_in(plane, &other, tenant).await?;
    // Enough objects that the stored result lists only the first of them.
    let names: Vec<String> = (0..900)
        .map(|i| format!("a-config-map-with-a-long-name-{i:04}"))
        .collect();
    let maps: String = names
        .iter()
        .map(|name| format!("{}---\n", map_in(&fixture.namespace, name)))
        .collect();
    let last = "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: zz\n  namespace: ";
    let files = [
        (".kluctl.yaml", format!("discriminator: {}\n", fixture.namespace)),
        (
            "deployment.yaml",
            "deployments:\n- path: a\n- barrier: true\n- path: b\n".to_owned(),
        ),
        ("a/kustomization.yaml", "resources:\n- maps.yaml\n".to_owned()),
        ("a/maps.yaml", maps),
        ("b/kustomization.yaml", "resources:\n- last.yaml\n".to_owned()),
        ("b/last.yaml", format!("{last}{other}\n")),
    ];
    let files = files.map(|(path, text)| (path.to_owned(), text));
    fixture.source("shop", &files).await?;
    plane
        .apply(
            fixture
                .deployment("shop", "shop")
                .spec(json!({ "prune": true, "interval": "1h" })),
        )
        .await?;
    let object = fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    let result = object
        .status
        .and_then(|status| status.last_deploy_result?.raw_result)
        .unwrap_or_default();
    ensure!(
        result.contains("truncatedObjects") && !result.contains("name: zz"),
        "the result is whole"
    );

    rights.delete("tenant", &DeleteParams::default()).await?;
    fixture
        .deployments()
        .delete("shop", &DeleteParams::default())
        .await?;
    wait_for(&fixture.deployments(), "shop", "a reason", TIMEOUT, |object| {
        let message = message_of(object);
        message.contains("not all objects could be searched") && message.contains("Kind=ServiceAccount")
    })
    .await?;
    grant_in(plane, &other, tenant).await?;
    wait_gone(&fixture.deployments(), "shop", TIMEOUT).await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(fixture.client.clone(), &other);
    ensure!(accounts.get_opt("zz").await?.is_none(), "it was forgotten");
    Ok(())
}

#[tokio::test]
async fn removal_after_an_interrupted_first_deployment_deletes_what_it_applied() -> Result<()> {
    let mut fixture = Fixture::new("cut", &["--default-service-account=tenant"]).await?;
    let plane = fixture.plane;
    let other = plane.namespace("other").await?;
    let tenant = (fixture.namespace.as_str(), "tenant");
    plane.service_account_kubeconfig(tenant.0, tenant.1).await?;
    grant_in(plane, &fixture.namespace, tenant).await?;
    grant_in(plane, &other, tenant).await?;
    let in_own = format!("metadata:\n  namespace: {}\n  name: slow\n", fixture.namespace);
    let files = [
        (".kluctl.yaml", format!("discriminator: {}\n", fixture.namespace)),
        (
            "deployment.yaml",
            "deployments:\n- path: first\n- barrier: true\n- path: late\n".to_owned(),
        ),
        (
            "first/kustomization.yaml",
            "resources:\n- map.yaml\n- account.yaml\n- slow.yaml\n".to_owned(),
        ),
        ("first/map.yaml", map_in(&fixture.namespace, "own")),
        (
            "first/account.yaml",
            format!("apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: zz\n  namespace: {other}\n"),
        ),
        (
            "first/slow.yaml",
            NEVER_READY.replace("metadata:\n  name: slow\n", &in_own),
        ),
        ("late/kustomization.yaml", "resources:\n- map.yaml\n".to_owned()),
        ("late/map.yaml", map_in(&fixture.namespace, "late")),
    ];
    let files = files.map(|(path, text)| (path.to_owned(), text));
    fixture.source("shop", &files).await?;
    plane
        .apply(fixture.deployment("shop", "shop").spec(json!({ "prune": true })))
        .await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(fixture.client.clone(), &other);
    let slow: Api<Deployment> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    eventually("the first objects", TIMEOUT, || async {
        accounts.get("zz").await?;
        slow.get("slow").await?;
        fixture.config_maps().get("own").await?;
        Ok(())
    })
    .await?;
    fixture.controller.kill().await?;
    let shop = fixture.deployments().get("shop").await?;
    ensure!(
        shop.status
            .is_some_and(|status| status.last_deploy_result.is_none()),
        "the deployment was not interrupted"
    );
    fixture
        .deployments()
        .delete("shop", &DeleteParams::default())
        .await?;
    fixture.controller.restart().await?;
    wait_gone(&fixture.deployments(), "shop", TIMEOUT).await?;
    ensure!(
        accounts.get_opt("zz").await?.is_none(),
        "the ServiceAccount is left"
    );
    ensure!(!fixture.has("own").await?, "the ConfigMap is left");
    let deployment = slow.get_opt("slow").await?;
    ensure!(
        deployment.is_none_or(|one| one.metadata.deletion_timestamp.is_some()),
        "the Deployment is left"
    );
    Ok(())
}

#[tokio::test]
async fn kind_that_may_not_be_listed_is_remembered_by_later_revisions() -> Result<()> {
    let fixture = Fixture::new("remembered", &["--default-service-account=tenant"]).await?;
    let plane = fixture.plane;
    let other = plane.namespace("other").await?;
    let tenant = (fixture.namespace.as_str(), "tenant");
    plane.service_account_kubeconfig(tenant.0, tenant.1).await?;
    grant_in(plane, &fixture.namespace, tenant).await?;
    let rights = grant_in(plane, &other, tenant).await?;
    let files = |resources: &str| {
        let last =
            format!("apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: zz\n  namespace: {other}\n");
        [
            (".kluctl.yaml", format!("discriminator: {}\n", fixture.namespace)),
            ("deployment.yaml", "deployments:\n- path: app\n".to_owned()),
            (
                "app/kustomization.yaml",
                format!("resources:\n- own.yaml\n{resources}"),
            ),
            ("app/own.yaml", map_in(&fixture.namespace, "own")),
            ("app/last.yaml", last),
        ]
        .map(|(path, text)| (path.to_owned(), text))
    };
    let source = fixture.source("shop", &files("- last.yaml\n")).await?;
    plane
        .apply(fixture.deployment("shop", "shop").spec(json!({ "prune": true })))
        .await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    rights.delete("tenant", &DeleteParams::default()).await?;
    source.offer(&files("")).await?;
    // Not only the first pass after the change knows the objects.
    fixture.ready("shop", "False", "DeployFailed").await?;
    fixture.more_passes(3.0).await?;
    let object = fixture.ready("shop", "False", "DeployFailed").await?;
    ensure!(
        message_of(&object).contains("Kind=ServiceAccount"),
        "{}",
        message_of(&object)
    );
    grant_in(plane, &other, tenant).await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(fixture.client.clone(), &other);
    ensure!(accounts.get_opt("zz").await?.is_none(), "it was forgotten");
    Ok(())
}

impl Fixture {
    /// Deletes an object and removes its finalizer, as users do who are tired of waiting, and waits until it is gone.
    async fn vanish(&self, name: &str) -> Result<()> {
        let deployments = self.deployments();
        deployments.delete(name, &DeleteParams::default()).await?;
        let patch = json!({ "metadata": { "finalizers": null } });
        deployments
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        wait_gone(&deployments, name, TIMEOUT).await
    }

    /// Waits until the controller has no series of an object, and has done another pass since.
    async fn has_no_series(&self, name: &str, other: &str) -> Result<()> {
        eventually("the series to go", TIMEOUT, || async {
            let series = self.controller.metrics().await?;
            ensure!(!series.contains(name), "{series}");
            Ok(())
        })
        .await?;
        self.reconcile(other).await?;
        let series = self.controller.metrics().await?;
        ensure!(!series.contains(name), "{series}");
        ensure!(series.contains(&format!("name=\"{other}\"")), "{series}");
        Ok(())
    }
}

#[tokio::test]
async fn deployment_that_vanishes_without_its_finalizer_leaves_no_series() -> Result<()> {
    let fixture = Fixture::new("vanish", &[]).await?;
    fixture
        .running("staying", &[("a", "1")], json!({ "prune": false }))
        .await?;
    fixture
        .running("vanishing", &[("b", "1")], json!({ "prune": false }))
        .await?;
    let series = fixture.controller.metrics().await?;
    ensure!(series.contains("name=\"vanishing\""), "{series}");
    // Nobody cleans up while the controller stands still.
    fixture.controller.pause()?;
    fixture.vanish("vanishing").await?;
    fixture.controller.resume()?;
    fixture.has_no_series("vanishing", "staying").await
}

#[tokio::test]
async fn deployment_that_vanishes_during_its_pass_leaves_no_series() -> Result<()> {
    let fixture = Fixture::new("vanish-pass", &[]).await?;
    fixture
        .running("staying", &[("a", "1")], json!({ "prune": false }))
        .await?;
    fixture.slow("vanishing").await?;
    fixture.applied("vanishing").await?;
    fixture.vanish("vanishing").await?;
    fixture.has_no_series("vanishing", "staying").await
}

#[tokio::test]
async fn removal_that_failed_is_repeated_once_it_can_succeed() -> Result<()> {
    let fixture = Fixture::new("again", &["--default-service-account=tenant"]).await?;
    let (plane, namespace) = (fixture.plane, fixture.namespace.as_str());
    plane.service_account_kubeconfig(namespace, "tenant").await?;
    let bindings = grant_in(plane, namespace, (namespace, "tenant")).await?;
    fixture.source("shop", &fixture.maps(&[("a", "1")])).await?;
    let spec = json!({ "prune": true, "delete": true, "interval": "1s" });
    fixture.deploy("shop", spec).await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    // Passes that find nothing to do end early; one that failed must not.
    fixture.more_passes(3.0).await?;
    bindings.delete("tenant", &DeleteParams::default()).await?;
    fixture
        .deployments()
        .delete("shop", &DeleteParams::default())
        .await?;
    fixture.told("shop", "cannot delete what was deployed").await?;
    grant_in(plane, namespace, (namespace, "tenant")).await?;
    wait_gone(&fixture.deployments(), "shop", TIMEOUT).await?;
    ensure!(!fixture.has("a").await?, "the ConfigMap is left");
    Ok(())
}
