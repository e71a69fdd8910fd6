//! Bad days of the API server: it lags behind, forgets, and answers late.

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::{
    ResourceExt as _,
    api::{DeleteParams, PostParams},
};
use serde_json::json;
use testkit::{Options, Outcome, eventually, proxy::ApiRequest, wait_gone};

use crate::fixture::{Fixture, TIMEOUT, own_plane, plane};

impl Fixture {
    /// Returns the writes of the controller to ConfigMaps since a mark.
    pub(crate) fn changes_since(&self, mark: testkit::audit::Mark) -> Result<Vec<testkit::audit::Entry>> {
        let mut entries = self.requests_since(mark)?;
        entries.retain(|entry| {
            entry.is_write() && entry.resource == "configmaps" && !entry.uri.contains("dryRun=All")
        });
        Ok(entries)
    }
}

#[tokio::test]
async fn reads_of_an_older_revision_deploy_and_prune_nothing() -> Result<()> {
    let (fixture, proxy) = Fixture::by_proxy(plane().await?, "stale", &[]).await?;
    let source = fixture
        .running("shop", &[("a", "1"), ("b", "1")], json!({ "interval": "1s" }))
        .await?;
    let older = fixture.plane.revision().await?;
    let revision = source.offer(&fixture.maps(&[("a", "2"), ("c", "1")])).await?;
    fixture.deployed("shop", &revision).await?;
    ensure!(!fixture.has("b").await?);

    for what in ["sources", "everything"] {
        fixture.more_passes(2.0).await?;
        let mark = fixture.plane.audit_mark();
        proxy.freeze(older, move |request| {
            what == "everything" || request.path.contains("/gitrepositories")
        });
        fixture.more_passes(3.0).await?;
        assert_eq!(fixture.changes_since(mark)?, [], "{what} was old");
        proxy.thaw();
        let next = fixture.maps(&[("a", what), ("c", "1")]);
        let revision = source.offer(&next).await?;
        fixture.deployed("shop", &revision).await?;
        fixture.holds("a", what).await?;
        ensure!(fixture.has("c").await? && !fixture.has("b").await?, "{what}");
    }
    Ok(())
}

#[tokio::test]
async fn list_of_5000_objects_that_is_gone_halfway_deletes_nothing() -> Result<()> {
    const OBJECTS: usize = 5_000;
    // Its lists come from etcd page by page, so that a compaction ends them.
    let own = own_plane(Options {
        api_server_flags: vec!["--feature-gates=ListFromCacheSnapshot=false".to_owned()],
        ..Options::default()
    });
    let own = own.await?;
    let (fixture, proxy) = Fixture::by_proxy(own.get(), "gone", &[]).await?;
    let source = fixture
        .running("shop", &[("a", "1"), ("b", "1")], json!({}))
        .await?;
    // They have the discriminator, so that a prune lists them, and must stay.
    let labels = json!({ "kluctl.io/discriminator": format!("{}-test", fixture.namespace) });
    let kept = (0..OBJECTS).map(|i| {
        let object = json!({
            "metadata": {
                "name": format!("kept-{i:04}"), "labels": labels, "annotations": { "kluctl.io/skip-delete": "true" },
            },
        });
        let maps = fixture.config_maps();
        async move {
            let object = serde_json::from_value(object)?;
            maps.create(&PostParams::default(), &object).await?;
            anyhow::Ok(())
        }
    });
    stream::iter(kept)
        .buffer_unordered(64)
        .try_collect::<()>()
        .await?;
    let revision = source.offer(&fixture.maps(&[("a", "2"), ("b", "1")])).await?;
    fixture.deployed("shop", &revision).await?;
    let steady = fixture.controller.usage()?.peak;

    let pages = |request: &ApiRequest| request.path.ends_with("/configmaps") && request.is_next_page();
    let outcomes = [Outcome::Pass, Outcome::Pass, Outcome::Pass, Outcome::Compacted];
    let before = proxy.answers().len();
    proxy.outcomes(pages, outcomes);
    // The object that goes now is pruned after a complete list only.
    let revision = source.offer(&fixture.maps(&[("a", "3")])).await?;
    fixture.deployed("shop", &revision).await?;
    ensure!(!fixture.has("b").await?);
    let answers = proxy.answers().split_off(before);
    let position = |found: &dyn Fn(&ApiRequest, u16) -> bool| {
        answers.iter().position(|(request, code)| found(request, *code))
    };
    let gone = position(&|request, code| pages(request) && code == 410).context("no list was gone")?;
    let deleted = position(&|request, _| request.method == "DELETE").context("nothing was pruned")?;
    let complete = answers
        .iter()
        .take(deleted)
        .skip(gone + 1)
        .filter(|(request, code)| pages(request) && *code == 200)
        .count();
    ensure!(
        gone < deleted && complete >= OBJECTS / 500,
        "an object was deleted after {complete} pages"
    );
    let deletions = answers.iter().filter(|(request, _)| request.method == "DELETE");
    let names: Vec<&str> = deletions
        .filter_map(|(request, _)| request.path.rsplit('/').next())
        .collect();
    assert_eq!(names, ["b"]);
    let peak = fixture.controller.usage()?.peak;
    ensure!(peak < 2 * steady, "{} MiB after {} MiB", peak >> 20, steady >> 20);
    let left = fixture.config_maps().list_metadata(&Default::default()).await?;
    let kept = left.iter().filter(|map| map.name_any().starts_with("kept-"));
    assert_eq!(kept.count(), OBJECTS);
    Ok(())
}

#[tokio::test]
async fn deletion_during_an_apply_ends_it_and_leaves_nothing() -> Result<()> {
    const OBJECTS: usize = 40;
    let (fixture, proxy) = Fixture::by_proxy(plane().await?, "cancelled", &[]).await?;
    // Each write takes a while, so that the deletion comes in their middle.
    proxy.rule(|request| {
        let is_write = request.method == "PATCH" && request.path.contains("/configmaps/");
        match is_write && !request.is_dry_run() {
            true => Outcome::Delay(std::time::Duration::from_millis(300)),
            false => Outcome::Pass,
        }
    });
    let names: Vec<String> = (0..OBJECTS).map(|i| format!("map-{i:02}")).collect();
    let maps: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
    fixture.source("shop", &fixture.maps(&maps)).await?;
    fixture
        .deploy("shop", json!({ "prune": true, "delete": true }))
        .await?;
    let mine = async || -> Result<usize> {
        let listed = fixture.config_maps().list(&Default::default()).await?;
        let named = |name: &Option<String>| name.as_deref().is_some_and(|name| name.starts_with("map-"));
        Ok(listed.iter().filter(|map| named(&map.metadata.name)).count())
    };
    eventually("the first objects", TIMEOUT, || async {
        let count = mine().await?;
        ensure!(count > 0, "there is none");
        Ok(())
    })
    .await?;
    fixture
        .deployments()
        .delete("shop", &DeleteParams::default())
        .await?;
    wait_gone(&fixture.deployments(), "shop", TIMEOUT).await?;
    assert_eq!(mine().await?, 0);

    // Nothing comes back later: a deployment that ends after this one had time to.
    let mark = fixture.plane.audit_mark();
    fixture
        .running("other", &[("other", "1")], json!({ "prune": false }))
        .await?;
    let names: Vec<String> = fixture
        .changes_since(mark)?
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(names, ["other"]);
    assert_eq!(mine().await?, 0);
    Ok(())
}
