//! Faults of KluctlDeployments of gitops.kluctl.io, in orders that seeds choose.

use anyhow::{Result, ensure};
use api::kluctl::gitops::KluctlDeploymentStatus;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use testkit::{Fault, Outcome, Registry, eventually, proxy::ApiRequest, registry::Login, wait_gone};

use crate::{
    fixture::{Fixture, TIMEOUT, plane},
    gitops::{Gitops, ready_of},
    gitops_sources::packed,
    waiting::NEVER_READY,
};

/// Seeds of each test.
const SEEDS: u64 = 3;
const SUCCEEDED: &str = "ReconciliationSucceeded";

#[tokio::test]
async fn rejected_object_keeps_no_other_and_what_was_removed_goes_with_its_repair() -> Result<()> {
    const OBJECTS: usize = 5;
    let shop = Gitops::new("gf-rejected").await?;
    shop.push(&[("first", "1")])?;
    shop.create("shop", json!({ "prune": true })).await?;
    for seed in 0..SEEDS {
        let rejected = fastrand::Rng::with_seed(seed).usize(..OBJECTS);
        let name = |number: usize| format!("s{seed}-{number}");
        let removed = format!("s{seed}-removed");
        // The API server refuses to change the value of an immutable ConfigMap.
        let push = |value: &str, of_rejected: &str, more: Option<&str>| {
            let names: Vec<String> = (0..OBJECTS).map(name).collect();
            let mut maps: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), value)).collect();
            maps.extend(more.map(|name| (name, value)));
            let (path, text) = (
                format!("app/{}.yaml", name(rejected)),
                format!(
                    "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {}}}\nimmutable: true\ndata: {{value: '{of_rejected}'}}\n",
                    name(rejected)
                ),
            );
            shop.push_files(&shop.fixture.maps(&maps), &[(&path, &text)])
        };
        let expect = async |value: &str| -> Result<()> {
            for number in 0..OBJECTS {
                let expected = if number == rejected { "1" } else { value };
                let found = shop.value(&name(number)).await?;
                ensure!(
                    found.as_deref() == Some(expected),
                    "seed {seed}, {number}: {found:?}"
                );
            }
            Ok(())
        };
        push("1", "1", Some(&removed))?;
        let (reason, message, _) = shop.outcome("shop").await?;
        ensure!(reason == SUCCEEDED, "seed {seed}: {message}");
        expect("1").await?;

        push("2", "2", None)?;
        let (reason, message, _) = shop.outcome("shop").await?;
        ensure!(reason == "DeployFailed", "seed {seed}: {reason} {message}");
        expect("2").await?;

        push("3", "1", None)?;
        let (reason, message, _) = shop.outcome("shop").await?;
        ensure!(reason == SUCCEEDED, "seed {seed}: {message}");
        expect("3").await?;
        ensure!(shop.value(&removed).await?.is_none(), "seed {seed}");
    }
    Ok(())
}

#[tokio::test]
async fn prune_is_made_up_for_without_a_new_commit() -> Result<()> {
    let shop = Gitops::new("gf-unpruned").await?;
    // The API server refuses to change the value of an immutable ConfigMap.
    let push = |value: &str, more: &[(&str, &str)]| {
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: fixed}}\nimmutable: true\ndata: {{value: '{value}'}}\n"
        );
        let maps = [&[("fixed", value), ("a", value)], more].concat();
        shop.push_files(&shop.fixture.maps(&maps), &[("app/fixed.yaml", &text)])
    };
    push("1", &[("removed", "1")])?;
    shop.create("shop", json!({ "prune": true })).await?;
    let (reason, message, _) = shop.outcome("shop").await?;
    ensure!(reason == SUCCEEDED, "{message}");

    push("2", &[])?;
    for _ in 0..2 {
        let (reason, message, _) = shop.outcome("shop").await?;
        ensure!(reason == "DeployFailed", "{reason} {message}");
        ensure!(shop.value("removed").await?.is_some(), "pruned after errors");
    }
    shop.delete_map("fixed").await?;
    let (reason, message, _) = shop.outcome("shop").await?;
    ensure!(reason == SUCCEEDED, "{reason} {message}");
    ensure!(shop.value("removed").await?.is_none(), "the orphan is left");
    assert_eq!(shop.value("fixed").await?.as_deref(), Some("2"));
    Ok(())
}

#[tokio::test]
async fn source_that_fails_changes_and_prunes_nothing_until_it_mends() -> Result<()> {
    let shop = Gitops::new("gf-source").await?;
    shop.push(&[("a", "0"), ("b0", "0")])?;
    shop.create("shop", json!({ "prune": true })).await?;
    let (reason, message, _) = shop.outcome("shop").await?;
    ensure!(reason == SUCCEEDED, "{message}");
    for seed in 0..SEEDS {
        let mut faults = vec![
            Fault::Status(404),
            Fault::Status(503),
            Fault::Page("<html>".to_owned()),
            Fault::Cut,
            Fault::CutMidPack,
        ];
        fastrand::Rng::with_seed(seed).shuffle(&mut faults);
        let (now, next) = (seed.to_string(), (seed + 1).to_string());
        let (kept, new) = (format!("b{now}"), format!("b{next}"));
        shop.push(&[("a", &next), (&new, &next)])?;
        for fault in faults {
            let shown = format!("seed {seed}, {fault:?}");
            shop.repo.fail(fault);
            let (reason, message, _) = shop.outcome("shop").await?;
            ensure!(reason == "PrepareFailed", "{shown}: {reason} {message}");
            let found = (
                shop.value("a").await?,
                shop.value(&kept).await?,
                shop.value(&new).await?,
            );
            ensure!(
                found == (Some(now.clone()), Some(now.clone()), None),
                "{shown}: {found:?}"
            );
        }
        shop.repo.heal();
        let (reason, message, _) = shop.outcome("shop").await?;
        ensure!(reason == SUCCEEDED, "seed {seed}: {message}");
        let found = (
            shop.value("a").await?,
            shop.value(&kept).await?,
            shop.value(&new).await?,
        );
        ensure!(
            found == (Some(next.clone()), None, Some(next)),
            "seed {seed}: {found:?}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn commit_that_is_no_longer_the_newest_prunes_nothing() -> Result<()> {
    let shop = Gitops::new("gf-stale").await?;
    let push = async |files: Vec<(String, String)>| shop.push_files(&files, &[]).map(drop);
    outdated_source_prunes_nothing(&shop, json!({}), push).await
}

#[tokio::test]
async fn artifact_that_its_tag_no_longer_names_prunes_nothing() -> Result<()> {
    let shop = Gitops::new("gf-stale-oci").await?;
    let registry = Registry::start(Login::Anonymous, None).await?;
    let push = async |files: Vec<(String, String)>| {
        let archive = packed(&files, "");
        let pushed = registry.push_project("org/repo", "latest", &archive, "c0ffee");
        pushed.await.map(drop)
    };
    let url = format!("oci://{}/org/repo", registry.host());
    let spec = json!({ "source": { "oci": { "url": url } } });
    outdated_source_prunes_nothing(&shop, spec, push).await
}

/// Publishes a project anew while the deployment of the one before waits: that one prunes nothing.
async fn outdated_source_prunes_nothing(
    shop: &Gitops,
    mut spec: Value,
    push: impl AsyncFn(Vec<(String, String)>) -> Result<()>,
) -> Result<()> {
    push(shop.fixture.maps(&[("a", "1"), ("b", "1")])).await?;
    spec["interval"] = json!("1s");
    spec["timeout"] = json!("10m");
    spec["prune"] = json!(true);
    shop.create("shop", spec).await?;
    shop.ready("shop", SUCCEEDED).await?;
    let before = shop.fixture.config_maps().get("b").await?.metadata.uid;

    // This project has no `b` any more. Before it prunes, it waits for an object.
    let mut slow = shop.fixture.maps(&[("a", "2"), ("slow", "1")]);
    slow.retain(|(path, _)| path != "app/slow.yaml");
    slow.push(("app/slow.yaml".to_owned(), NEVER_READY.to_owned()));
    push(slow).await?;
    shop.fixture.applied("slow").await?;
    push(shop.fixture.maps(&[("a", "3"), ("b", "3")])).await?;
    let deployments: Api<Deployment> = Api::namespaced(shop.fixture.client.clone(), &shop.fixture.namespace);
    let none = Patch::Merge(json!({ "spec": { "replicas": 0 } }));
    deployments.patch("slow", &PatchParams::default(), &none).await?;

    eventually("the newest project", TIMEOUT, || async {
        ensure!(
            shop.value("b").await?.as_deref() == Some("3") && shop.value("a").await?.as_deref() == Some("3")
        );
        Ok(())
    })
    .await?;
    wait_gone(&deployments, "slow", TIMEOUT).await?;
    shop.ready("shop", SUCCEEDED).await?;
    let after = shop.fixture.config_maps().get("b").await?.metadata.uid;
    ensure!(before == after, "it was deleted, and made again");
    Ok(())
}

#[tokio::test]
async fn search_for_orphans_that_fails_is_repeated_by_the_next_pass() -> Result<()> {
    let flag = "--command-result-namespace=gf-search-results";
    let (fixture, proxy) = Fixture::by_proxy(plane().await?, "gf-search", &[flag]).await?;
    let shop = Gitops::of(fixture)?;
    shop.push(&[("a", "1"), ("removed", "1")])?;
    shop.create("shop", json!({ "prune": true })).await?;
    shop.ready("shop", SUCCEEDED).await?;
    shop.push(&[("a", "2")])?;
    let is_search = |request: &ApiRequest| {
        request.path.ends_with("/configmaps")
            && request.query.contains("labelSelector")
            && !request.is_watch()
    };
    proxy.rule(move |request| match is_search(request) {
        true => Outcome::Status(400, None),
        false => Outcome::Pass,
    });
    let status = shop.reconcile("shop").await?;
    let before = proxy.requests().into_iter().filter(is_search).count();
    ensure!(before > 0, "nothing was searched: {:?}", ready_of(&status));
    ensure!(shop.value("a").await?.as_deref() == Some("2") && shop.value("removed").await?.is_some());
    proxy.heal();
    let status = shop.reconcile("shop").await?;
    ensure!(shop.value("removed").await?.is_none(), "{:?}", ready_of(&status));
    Ok(())
}

#[tokio::test]
async fn reads_of_an_older_revision_deploy_and_prune_nothing() -> Result<()> {
    let flag = "--command-result-namespace=gf-old-results";
    let (fixture, proxy) = Fixture::by_proxy(plane().await?, "gf-old", &[flag]).await?;
    let shop = Gitops::of(fixture)?;
    let deployed = async |shown: &str, value: &str| {
        eventually(shown, TIMEOUT, || async {
            let (a, b) = (shop.value("a").await?, shop.value("b").await?);
            ensure!(a.as_deref() == Some(value) && b.is_none(), "{a:?} {b:?}");
            Ok(())
        })
        .await
    };
    shop.push(&[("a", "old"), ("b", "old")])?;
    shop.create("shop", json!({ "interval": "1s", "prune": true }))
        .await?;
    shop.ready("shop", SUCCEEDED).await?;
    // It is too large to be used as the watch shows it: each pass reads it.
    let large = json!({ "metadata": { "annotations": { "example.com/note": "x".repeat(80_000) } } });
    let params = PatchParams::default();
    shop.api().patch("shop", &params, &Patch::Merge(large)).await?;
    let older = shop.fixture.plane.revision().await?;
    shop.push(&[("a", "new"), ("c", "new")])?;
    deployed("the new commit", "new").await?;

    for seed in 0..SEEDS {
        let mut frozen = ["the object", "everything"];
        fastrand::Rng::with_seed(seed).shuffle(&mut frozen);
        for what in frozen {
            let shown = format!("seed {seed}, {what} is old");
            shop.ready("shop", SUCCEEDED).await?;
            shop.fixture.more_passes(2.0).await?;
            proxy.freeze(older, move |request| {
                what == "everything" || request.path.contains("/kluctldeployments")
            });
            let mark = shop.fixture.plane.audit_mark();
            // The Git server is ahead of the API server.
            let value = format!("{seed} {what}");
            shop.push(&[("a", &value), ("c", "new")])?;
            shop.fixture.more_passes(3.0).await?;
            assert_eq!(shop.fixture.changes_since(mark)?, [], "{shown}");
            ensure!(shop.value("c").await?.is_some(), "{shown}");
            proxy.thaw();
            deployed(&shown, &value).await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn last_of_several_commits_in_quick_succession_is_deployed() -> Result<()> {
    let shop = Gitops::new("gf-succession").await?;
    let deployments: Api<Deployment> = Api::namespaced(shop.fixture.client.clone(), &shop.fixture.namespace);
    shop.push(&[("a", "0")])?;
    shop.create(
        "shop",
        json!({ "interval": "1s", "timeout": "10m", "prune": true }),
    )
    .await?;
    shop.ready("shop", SUCCEEDED).await?;
    for seed in 0..SEEDS {
        let mark = shop.fixture.plane.audit_mark();
        let waiting = shop.fixture.maps(&[("a", "waiting"), ("slow", "1")]);
        shop.push_files(&waiting, &[("app/slow.yaml", NEVER_READY)])?;
        shop.fixture.applied("slow").await?;
        shop.fixture.holds("a", "waiting").await?;
        let commits = fastrand::Rng::with_seed(seed).usize(2..6);
        let value = |number: usize| format!("{seed}-{number}");
        let mut last = String::new();
        for number in 0..commits {
            last = shop.push(&[("a", &value(number))])?;
        }
        let none = Patch::Merge(json!({ "spec": { "replicas": 0 } }));
        deployments.patch("slow", &PatchParams::default(), &none).await?;
        shop.fixture.holds("a", &value(commits - 1)).await?;
        wait_gone(&deployments, "slow", TIMEOUT).await?;
        let shown = format!("seed {seed}, {commits} commits");
        eventually(&shown, TIMEOUT, || async {
            let status = shop.ready("shop", SUCCEEDED).await?;
            ensure!(status.observed_commit.as_ref() == Some(&last), "{status:?}");
            let is_progress = |one: &api::Condition| one.type_ == "Reconciling";
            ensure!(!status.conditions.iter().any(is_progress), "{status:?}");
            Ok(())
        })
        .await?;
        let mut written = shop.fixture.changes_since(mark)?;
        written.retain(|entry| entry.name == "a");
        assert_eq!(
            written.len(),
            2,
            "{shown}: what nobody waits for was deployed: {written:?}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn render_without_objects_prunes_nothing_and_shows_what_is_left() -> Result<()> {
    let shop = Gitops::new("gf-empty").await?;
    let push = |item: &str| {
        let deployment = format!(
            "deployments:\n- path: app\n  tags: [x]\n{item}overrideNamespace: {}\n",
            shop.fixture.namespace
        );
        let files = shop.fixture.maps(&[("a", "1"), ("b", "1")]);
        shop.push_files(&files, &[("deployment.yaml", &deployment)])
    };
    let drift = |status: &KluctlDeploymentStatus| {
        let message = status.last_drift_detection_result_message.clone();
        message.unwrap_or_default()
    };
    for (name, part) in [("all", json!([])), ("part", json!(["x"]))] {
        push("")?;
        shop.create(
            name,
            json!({ "prune": true, "delete": true, "includeTags": part }),
        )
        .await?;
        shop.ready(name, SUCCEEDED).await?;

        push("  when: 1 == 2\n")?;
        for _ in 0..2 {
            let status = shop.reconcile(name).await?;
            let (reason, message) = ready_of(&status);
            ensure!(reason == "EmptyRender", "{name}: {reason} {message}");
            ensure!(message.contains("renders no objects at all"), "{name}: {message}");
            assert_eq!(drift(&status), "2 orp", "{name}");
            ensure!(
                shop.value("a").await?.is_some() && shop.value("b").await?.is_some(),
                "{name}"
            );
        }
        // As with the original, nothing fails while nothing would be pruned.
        shop.change(name, json!({ "prune": false })).await?;
        for _ in 0..2 {
            let status = shop.reconcile(name).await?;
            let (reason, message) = ready_of(&status);
            ensure!(reason == SUCCEEDED, "{name}: {reason} {message}");
            assert_eq!(drift(&status), "2 orp", "{name}");
        }
        shop.change(name, json!({ "prune": true })).await?;
        push("")?;
        let status = shop.reconcile(name).await?;
        ensure!(
            ready_of(&status).0 == SUCCEEDED,
            "{name}: {:?}",
            ready_of(&status)
        );
        assert_eq!(drift(&status), "no drift", "{name}");
        shop.api().delete(name, &DeleteParams::default()).await?;
        wait_gone(&shop.api(), name, TIMEOUT).await?;
    }
    Ok(())
}
