//! Removal of KluctlDeployments of gitops.kluctl.io.

use anyhow::{Context as _, Result, ensure};
use api::kluctl::gitops::{KluctlDeployment, KluctlDeploymentStatus};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Namespace, Secret, ServiceAccount},
};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use testkit::{Outcome, eventually, proxy::ApiRequest, wait_for, wait_gone};

use crate::{
    fixture::{Fixture, TIMEOUT, grant_in, plane},
    gitops::{Gitops, ready_of},
    requests::left_by_hand,
    waiting::NEVER_READY,
};

const SUCCEEDED: &str = "ReconciliationSucceeded";

/// A choice of requests.
type Selection = fn(&ApiRequest) -> bool;

impl Gitops {
    /// Waits until a removal has failed and will be tried again, and returns the reason.
    async fn retried(&self, name: &str) -> Result<String> {
        let reason = |object: &KluctlDeployment| {
            let message = ready_of(object.status.as_ref()?).1;
            message
                .strip_prefix("cannot delete what was deployed: ")
                .map(str::to_owned)
        };
        let api = self.api();
        let found = wait_for(&api, name, "the reason", TIMEOUT, |object| {
            reason(object).is_some()
        });
        reason(&found.await?).context("a reason")
    }
}

/// Returns the summaries of the stored results of a command.
async fn stored(shop: &Gitops, results: &str, command: &str) -> Result<Vec<Value>> {
    let store: Api<Secret> = Api::namespaced(shop.fixture.client.clone(), results);
    let labelled = ListParams::default().labels("kluctl.io/result=true");
    let secrets = store.list(&labelled).await?.items.into_iter();
    let texts = secrets.filter_map(|secret| {
        let annotations = secret.metadata.annotations?;
        annotations.get("kluctl.io/command-result-summary").cloned()
    });
    let summaries = texts.map(|text| serde_json::from_str::<Value>(&text));
    let mut summaries = summaries.collect::<Result<Vec<Value>, _>>()?;
    summaries.retain(|summary| summary["commandInfo"]["command"] == command);
    Ok(summaries)
}

#[tokio::test]
async fn removal_stores_its_result_until_the_object_is_gone() -> Result<()> {
    let shop = Gitops::new("gk-result").await?;
    shop.push(&[("a", "1"), ("b", "1")])?;
    let spec = json!({ "delete": true, "includeDeploymentDirs": ["app"] });
    shop.create("shop", spec).await?;
    shop.ready("shop", SUCCEEDED).await?;
    // Somebody else keeps the object, and so its results.
    let finalizers = |list: Value| Patch::Merge(json!({ "metadata": { "finalizers": list } }));
    let params = PatchParams::default();
    let both = json!(["finalizers.gitops.kluctl.io", "example.com/keep"]);
    let object = shop.api().patch("shop", &params, &finalizers(both)).await?;
    let status = object.status.context("a status")?;
    shop.api().delete("shop", &DeleteParams::default()).await?;
    let (kind, message) = shop.fixture.told("shop", "delete succeeded.").await?;
    assert_eq!(
        (kind.as_str(), message.as_str()),
        ("Normal", "delete succeeded. 2 deleted objects.")
    );
    let found = eventually("the result", TIMEOUT, || async {
        let mut found = stored(&shop, "gk-result-results", "delete").await?;
        found.pop().context("no result is stored")
    });
    let summary = found.await?;
    let counts = ["deletedObjects", "newObjects", "changedObjects"].map(|name| summary[name].as_u64());
    assert_eq!(counts[0], Some(2), "{summary}");
    ensure!(
        counts[1..].iter().all(|count| count.unwrap_or_default() == 0),
        "{summary}"
    );
    let info = &summary["commandInfo"];
    assert_eq!(info["initiator"], "KluctlDeployment", "{info}");
    assert_eq!(info["includeDeploymentDirs"], json!(["app"]), "{info}");
    assert_eq!(summary["projectKey"], json!(status.project_key), "{summary}");
    assert_eq!(summary["targetKey"], json!(status.target_key), "{summary}");
    assert_eq!(summary["kluctlDeployment"]["name"], "shop", "{summary}");
    ensure!(shop.value("a").await?.is_none() && shop.value("b").await?.is_none());

    shop.api().patch("shop", &params, &finalizers(json!([]))).await?;
    wait_gone(&shop.api(), "shop", TIMEOUT).await?;
    eventually("its results to go with the object", TIMEOUT, || async {
        let left = stored(&shop, "gk-result-results", "delete").await?;
        ensure!(left.is_empty(), "{left:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn removal_deletes_what_was_deployed_and_no_target_that_was_only_rendered() -> Result<()> {
    let shop = Gitops::new("gk-targets").await?;
    let own = shop.fixture.namespace.clone();
    let config = format!(
        "discriminator: {own}-{{{{ target.name }}}}\ntargets:\n- name: test\n- name: prod\n- name: next\n"
    );
    shop.push_files(&shop.fixture.maps(&[("a", "1")]), &[(".kluctl.yaml", &config)])?;
    shop.create("shop", json!({ "manual": true, "delete": true }))
        .await?;
    let (status, _) = shop.request("shop", "deploy", Value::Null).await?;
    let target = |status: &KluctlDeploymentStatus| {
        let key = status.target_key.clone();
        key.and_then(|key| key.discriminator).unwrap_or_default()
    };
    assert_eq!(target(&status), format!("{own}-test"));
    // A command line deployed the other targets.
    let prod = left_by_hand(&shop.fixture, "prod", &format!("{own}-prod")).await?;
    let next = left_by_hand(&shop.fixture, "next", &format!("{own}-next")).await?;

    for kind in ["diff", "validate"] {
        let (status, result) = shop.request("shop", kind, json!({ "target": "prod" })).await?;
        assert_eq!(target(&status), format!("{own}-test"), "{kind}: {result:?}");
    }
    shop.change("shop", json!({ "target": "next" })).await?;
    let (_, message, _) = shop.outcome("shop").await?;
    let status = shop.api().get("shop").await?.status.context("a status")?;
    assert_eq!(target(&status), format!("{own}-test"), "unapproved: {message}");

    shop.api().delete("shop", &DeleteParams::default()).await?;
    wait_gone(&shop.api(), "shop", TIMEOUT).await?;
    ensure!(shop.value("a").await?.is_none(), "the deployed object is left");
    for (name, api) in [("prod", prod), ("next", next)] {
        ensure!(
            api.get_opt(name).await?.is_some(),
            "{name} was never deployed by it"
        );
    }
    Ok(())
}

#[tokio::test]
async fn objects_of_a_previous_discriminator_stay_and_are_named() -> Result<()> {
    let shop = Gitops::new("gk-previous").await?;
    let own = shop.fixture.namespace.clone();
    let config = |name: &str| format!("discriminator: {own}-{name}\ntargets:\n- name: test\n");
    let files = |map: &str| shop.fixture.maps(&[(map, "1")]);
    shop.push_files(&files("a"), &[(".kluctl.yaml", &config("old"))])?;
    shop.create("shop", json!({ "prune": true, "delete": true }))
        .await?;
    shop.ready("shop", SUCCEEDED).await?;
    shop.push_files(&files("b"), &[(".kluctl.yaml", &config("new"))])?;
    let (reason, message, _) = shop.outcome("shop").await?;
    assert_eq!(reason, SUCCEEDED, "{message}");
    let told = format!("objects with the previous discriminator {own}-old may be left");
    let (kind, _) = shop.fixture.told("shop", &told).await?;
    assert_eq!(kind, "Warning");
    ensure!(shop.value("a").await?.is_some() && shop.value("b").await?.is_some());

    // As with the original, a removal deletes the objects with the present one.
    shop.api().delete("shop", &DeleteParams::default()).await?;
    wait_gone(&shop.api(), "shop", TIMEOUT).await?;
    ensure!(shop.value("a").await?.is_some() && shop.value("b").await?.is_none());
    Ok(())
}

#[tokio::test]
async fn removal_after_an_interrupted_first_deployment_deletes_what_it_applied() -> Result<()> {
    let mut shop = Gitops::with("gk-cut", &["--default-service-account=tenant"]).await?;
    let plane = shop.fixture.plane;
    let (own, other) = (shop.fixture.namespace.clone(), plane.namespace("gk-other").await?);
    // The account may list objects in two namespaces only, and nothing in the cluster.
    let tenant = (own.as_str(), "tenant");
    plane.service_account_kubeconfig(tenant.0, tenant.1).await?;
    grant_in(plane, &own, tenant).await?;
    grant_in(plane, &other, tenant).await?;
    let slow = NEVER_READY.replacen("metadata:\n", &format!("metadata:\n  namespace: {own}\n"), 1);
    let account =
        format!("apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: zz\n  namespace: {other}\n");
    shop.push_files(
        &[],
        &[
            (
                ".kluctl.yaml",
                &format!("discriminator: {own}\ntargets:\n- name: test\n"),
            ),
            (
                "deployment.yaml",
                "deployments:\n- path: first\n- barrier: true\n",
            ),
            (
                "first/kustomization.yaml",
                "resources:\n- account.yaml\n- slow.yaml\n",
            ),
            ("first/account.yaml", &account),
            ("first/slow.yaml", &slow),
        ],
    )?;
    shop.create("shop", json!({ "delete": true, "context": null }))
        .await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(shop.fixture.client.clone(), &other);
    let slow: Api<Deployment> = Api::namespaced(shop.fixture.client.clone(), &own);
    eventually("the first objects", TIMEOUT, || async {
        accounts.get("zz").await?;
        slow.get("slow").await?;
        Ok(())
    })
    .await?;
    shop.fixture.controller.kill().await?;
    let status = shop.api().get("shop").await?.status.context("a status")?;
    ensure!(
        status.last_deploy_result.is_none(),
        "the deployment was not interrupted"
    );
    shop.api().delete("shop", &DeleteParams::default()).await?;
    shop.fixture.controller.restart().await?;
    wait_gone(&shop.api(), "shop", TIMEOUT).await?;
    ensure!(
        accounts.get_opt("zz").await?.is_none(),
        "the ServiceAccount is left"
    );
    ensure!(slow.get_opt("slow").await?.is_none(), "the Deployment is left");
    Ok(())
}

#[tokio::test]
async fn removal_is_repeated_while_its_checks_fail_and_leaves_nothing() -> Result<()> {
    let flag = "--command-result-namespace=gk-checks-results";
    let (fixture, proxy) = Fixture::by_proxy(plane().await?, "gk-checks", &[flag]).await?;
    let shop = Gitops::of(fixture)?;
    // Others with the same discriminator are listed, and the object itself is read again, without a query.
    let lists = |request: &ApiRequest| {
        request
            .query
            .contains("fieldSelector=status.targetKey.discriminator")
    };
    let reads =
        |request: &ApiRequest| request.path.ends_with("/kluctldeployments/shop") && request.query.is_empty();
    let cases: [(&str, Selection, Outcome); 4] = [
        ("list", lists, Outcome::Status(500, None)),
        ("list", lists, Outcome::Cut),
        ("read", reads, Outcome::Status(500, None)),
        ("read", reads, Outcome::Cut),
    ];
    for (what, selects, outcome) in cases {
        let shown = format!("{what}, {outcome:?}");
        shop.push(&[("a", "1")])?;
        shop.create("shop", json!({ "delete": true })).await?;
        shop.ready("shop", SUCCEEDED).await.context(shown.clone())?;
        proxy.rule(move |request| match request.method == "GET" && selects(request) {
            true => outcome.clone(),
            false => Outcome::Pass,
        });
        shop.api().delete("shop", &DeleteParams::default()).await?;
        let message = shop.retried("shop").await.context(shown.clone())?;
        ensure!(
            message.contains("tried again until that is known"),
            "{shown}: {message}"
        );
        ensure!(
            shop.value("a").await?.is_some(),
            "{shown}: it was deleted unchecked"
        );
        proxy.heal();
        wait_gone(&shop.api(), "shop", TIMEOUT)
            .await
            .context(shown.clone())?;
        ensure!(shop.value("a").await?.is_none(), "{shown}: the object is left");
    }
    Ok(())
}

#[tokio::test]
async fn removal_ends_at_once_without_deleting_what_another_owner_may_have_deployed() -> Result<()> {
    let shop = Gitops::new("gk-shared").await?;
    shop.push(&[("a", "1")])?;
    for name in ["shop", "other"] {
        shop.create(name, json!({ "delete": true })).await?;
        shop.ready(name, SUCCEEDED).await?;
    }
    shop.api().delete("shop", &DeleteParams::default()).await?;
    let own = &shop.fixture.namespace;
    let told = format!(
        "nothing is deleted: the discriminator '{own}-test' is also used by KluctlDeployment.gitops.kluctl.io {own}/other"
    );
    let (kind, _) = shop.fixture.told("shop", &told).await?;
    assert_eq!(kind, "Warning");
    wait_gone(&shop.api(), "shop", TIMEOUT).await?;
    ensure!(
        shop.value("a").await?.is_some(),
        "the object of another owner is gone"
    );
    shop.api().delete("other", &DeleteParams::default()).await?;
    wait_gone(&shop.api(), "other", TIMEOUT).await?;
    ensure!(shop.value("a").await?.is_none(), "nobody else owns it any more");
    Ok(())
}

#[tokio::test]
async fn removal_is_repeated_while_the_cluster_of_another_owner_is_unknown() -> Result<()> {
    let shop = Gitops::new("gk-unknown").await?;
    shop.push(&[("a", "1")])?;
    shop.create("shop", json!({ "delete": true })).await?;
    let status = shop.ready("shop", SUCCEEDED).await?;
    let lost = json!({ "secretRef": { "name": "missing" } });
    shop.create("other", json!({ "suspend": true, "kubeConfig": lost }))
        .await?;
    // The status of the first pass would replace the claim.
    let observed = |object: &KluctlDeployment| {
        object
            .status
            .as_ref()
            .is_some_and(|status| status.observed_generation.is_some())
    };
    wait_for(&shop.api(), "other", "its first pass", TIMEOUT, observed).await?;
    let claim = json!({ "status": { "targetKey": status.target_key } });
    let params = PatchParams::default();
    shop.api()
        .patch_status("other", &params, &Patch::Merge(claim))
        .await?;
    shop.api().delete("shop", &DeleteParams::default()).await?;
    let why = shop.retried("shop").await?;
    let unknown = format!(
        "the cluster of KluctlDeployment.gitops.kluctl.io {}/other, which has the same discriminator, is unknown",
        shop.fixture.namespace
    );
    ensure!(why.starts_with(&unknown), "{why}");
    ensure!(shop.value("a").await?.is_some(), "it was deleted unchecked");
    shop.api().delete("other", &DeleteParams::default()).await?;
    wait_gone(&shop.api(), "shop", TIMEOUT).await?;
    ensure!(shop.value("a").await?.is_none(), "the object is left");
    Ok(())
}

#[tokio::test]
async fn removal_gives_up_in_a_terminating_namespace_without_rights() -> Result<()> {
    let fixture = Fixture::apart("gk-dying", &["--command-result-namespace=gk-dying-results"]).await?;
    let plane = fixture.plane;
    let other = plane.namespace("gk-other").await?;
    let shop = Gitops::of(fixture)?;
    let own = shop.fixture.namespace.clone();
    let tenant = (own.as_str(), "tenant");
    plane.service_account_kubeconfig(tenant.0, tenant.1).await?;
    grant_in(plane, &own, tenant).await?;
    let rights = grant_in(plane, &other, tenant).await?;
    let maps = shop.fixture.maps(&[("own", "1")]);
    let left = crate::removing::map_in(&other, "left");
    let more = [
        ("deployment.yaml", "deployments:\n- path: app\n- path: left\n"),
        ("left/kustomization.yaml", "resources:\n- left.yaml\n"),
        ("left/left.yaml", left.as_str()),
        ("app/own.yaml", &crate::removing::map_in(&own, "own")),
    ];
    shop.push_files(&maps, &more)?;
    shop.create("shop", json!({ "delete": true, "serviceAccountName": "tenant" }))
        .await?;
    shop.ready("shop", SUCCEEDED).await?;
    rights.delete("tenant", &DeleteParams::default()).await?;
    let namespaces: Api<Namespace> = Api::all(shop.fixture.client.clone());
    namespaces.delete(&own, &DeleteParams::default()).await?;
    // Attempts would go on for five minutes.
    wait_gone(&namespaces, &own, TIMEOUT).await?;
    let named = |entry: &Value| {
        let text = entry["message"].as_str().or(entry["msg"].as_str());
        text.is_some_and(|text| text.contains("is being deleted, and the rights to delete the rest are gone"))
    };
    shop.fixture
        .controller
        .wait_log("the objects that are left", TIMEOUT, named)
        .await?;
    Ok(())
}
