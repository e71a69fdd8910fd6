//! Artifacts that arrive broken, and sources that are made to do harm. The last good state stays, and others keep their pace.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use testkit::{WebServer, wait_for, web::Page};

use crate::fixture::{Fixture, TIMEOUT, condition, ids, map, server, set_artifact, status, tarball};

/// Offers a revision whose artifact is this page, and which should have this digest.
async fn offer_page(
    fixture: &Fixture,
    name: &str,
    page: Option<Page>,
    digest: &str,
) -> Result<(String, String)> {
    let server: &WebServer = server();
    let path = format!(
        "/gitrepository/{}/{name}/{:x}.tar.gz",
        fixture.namespace,
        fastrand::u128(..)
    );
    if let Some(page) = page {
        server.page(&path, page);
    }
    let revision = format!("main@sha1:{:040x}", fastrand::u128(..));
    let object = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": { "name": name, "namespace": fixture.namespace },
    });
    let (api, _) = fixture.plane.api_for(object).await?;
    let artifact = json!({
        "url": server.url(&path), "revision": revision, "digest": digest, "path": path,
        "lastUpdateTime": "2026-01-01T00:00:00Z",
    });
    set_artifact(&api, name, artifact).await?;
    Ok((path, revision))
}

/// Faults 18 and 19: no part of a broken artifact is applied, nothing is pruned, and the object recovers as soon as the artifact does.
#[tokio::test(flavor = "multi_thread")]
async fn broken_artifacts_leave_the_last_good_state() -> Result<()> {
    let flags = [
        "--http-retry=0",
        "--min-retry-delay=200ms",
        "--max-retry-delay=1s",
    ];
    let fixture = Fixture::new("broken", &flags).await?;
    let first = [("a.yaml", map("a", "1")), ("b.yaml", map("b", "1"))];
    let revision = fixture.offer("shop", &first).await?;
    fixture.deploy("shop", json!({ "timeout": "5s" })).await?;
    let mut good = ids(&fixture.applied("shop", &revision).await?);
    let mut values = fixture.values("shop").await?;
    for (number, fault) in ["missing", "cut", "silent", "altered", "endless", "no archive"]
        .into_iter()
        .enumerate()
    {
        let value = format!("{number}-{fault}");
        let (bytes, digest) = tarball(&[("a.yaml", map("a", &value))])?;
        let half = bytes.get(..bytes.len() / 2).context("half of it")?.to_vec();
        let page = match fault {
            "missing" => None,
            "cut" => Some(Page::Cut(half.into())),
            "silent" => Some(Page::Stalled(half.into())),
            "altered" => Some(Page::Content(tarball(&[("a.yaml", map("a", "other"))])?.0.into())),
            "endless" => Some(Page::Endless(bytes.clone().into())),
            _ => Some(Page::Content(b"<html>".as_slice().into())),
        };
        let (path, revision) = offer_page(&fixture, "shop", page, &digest).await?;
        let failed = wait_for(&fixture.objects(), "shop", fault, TIMEOUT, |object| {
            condition(object, "Ready")["status"] == "False"
        })
        .await?;
        assert_eq!(ids(&failed), good, "{fault}");
        assert_eq!(fixture.values("shop").await?, values, "{fault}");
        ensure!(status(&failed).last_applied_revision.as_deref() != Some(revision.as_str()));
        server().page(&path, Page::Content(bytes.into()));
        good = ids(&fixture.applied("shop", &revision).await.context(fault)?);
        values = fixture.values("shop").await?;
        assert_eq!(values["a"], value);
    }
    Ok(())
}

/// A newer artifact while the download of the one before hangs.
#[tokio::test(flavor = "multi_thread")]
async fn newer_artifact_ends_a_download_that_hangs() -> Result<()> {
    let fixture = Fixture::new("hanging", &["--http-retry=0"]).await?;
    let first = fixture.offer("shop", &[("a.yaml", map("a", "1"))]).await?;
    fixture.deploy("shop", json!({ "timeout": "10m" })).await?;
    fixture.applied("shop", &first).await?;
    let (bytes, digest) = tarball(&[("a.yaml", map("a", "2"))])?;
    let half = bytes.get(..bytes.len() / 2).context("half of it")?.to_vec();
    let (path, _) = offer_page(&fixture, "shop", Some(Page::Stalled(half.into())), &digest).await?;
    testkit::eventually("the download to begin", TIMEOUT, || async {
        ensure!(server().asked().iter().any(|asked| asked.path == path));
        Ok(())
    })
    .await?;
    let last = fixture.offer("shop", &[("a.yaml", map("a", "3"))]).await?;
    fixture.applied("shop", &last).await?;
    assert_eq!(fixture.values("shop").await?["a"], "3");
    Ok(())
}

/// Fault 17: sources without end fail with the limit's name, within their time, and another object keeps its pace.
#[tokio::test(flavor = "multi_thread")]
async fn sources_without_end_fail_by_a_limit() -> Result<()> {
    let fixture = Fixture::new("endless", &[]).await?;
    let cycle = [
        ("kustomization.yaml", "resources: [other]\n".to_owned()),
        ("other/kustomization.yaml", "resources: [..]\n".to_owned()),
    ];
    let mut bomb =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\na0: &a0 [x, x, x, x, x, x, x, x]\n"
            .to_owned();
    for level in 1..12 {
        let before = format!("*a{}, ", level - 1).repeat(8);
        bomb += &format!("a{level}: &a{level} [{}]\n", before.trim_end_matches(", "));
    }
    let growth = format!("value: '{}'\n", "${x}".repeat(20_000));
    let grown = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: grown}}\ndata:\n  {growth}");
    let variable = json!({ "substitute": { "x": "y".repeat(20_000) } });
    let process = fixture.controller.process();
    for (name, files, spec) in [
        ("cycle", cycle.to_vec(), json!({})),
        ("bomb", vec![("a.yaml", bomb)], json!({})),
        (
            "growth",
            vec![("a.yaml", grown)],
            json!({ "postBuild": variable }),
        ),
    ] {
        fixture.offer(name, &files).await?;
        fixture.deploy(name, spec).await?;
    }
    let good = fixture.offer("good", &[("a.yaml", map("good", "1"))]).await?;
    fixture.deploy("good", json!({})).await?;
    fixture.applied("good", &good).await?;
    for (name, part) in [
        ("cycle", "cycle detected"),
        (
            "bomb",
            "the limit of 10485760 bytes expanded from YAML aliases was reached",
        ),
        (
            "growth",
            "the limit of 67108864 bytes of rendered output was reached",
        ),
    ] {
        let failed = fixture.ready(name, "False", "BuildFailed").await?;
        let message = condition(&failed, "Ready")["message"].to_string();
        assert!(message.contains(part), "{name}: {message}");
    }
    ensure!(
        fixture.controller.process().pid == process.pid,
        "it was started again"
    );
    let peak = fixture.controller.usage()?.peak >> 20;
    ensure!(peak < 700, "{peak} MiB");
    Ok(())
}

/// Expressions that take nearly all steps of an evaluation, for 100 objects, fail by the limit of a pass. Meanwhile others are applied in time,
/// and the liveness probe succeeds.
#[tokio::test(flavor = "multi_thread")]
async fn costly_health_checks_of_100_objects_fail_by_a_limit_and_delay_nobody() -> Result<()> {
    const IN_TIME: Duration = Duration::from_secs(60);
    let fixture = Fixture::new("costly", &[]).await?;
    let numbers: Vec<String> = (0..250).map(|number| number.to_string()).collect();
    let numbers = format!("[{}]", numbers.join(","));
    let costly = format!("{numbers}.all(x, {numbers}.all(y, x + y >= 0))");
    let checks = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "current": costly,
        "inProgress": format!("!{costly}"), "failed": format!("!{costly}"),
    }]);
    let maps: Vec<String> = (0..100)
        .map(|number| map(&format!("map-{number}"), "1"))
        .collect();
    let process = fixture.controller.process();
    fixture
        .offer("many", &[("maps.yaml", maps.join("\n---\n"))])
        .await?;
    // It is tried again every second.
    let spec = json!({ "wait": true, "timeout": "10m", "healthCheckExprs": checks });
    fixture.deploy("many", spec).await?;
    for value in ["1", "2", "3", "4", "5"] {
        let (good, begun) = (
            fixture.offer("good", &[("a.yaml", map("good", value))]).await?,
            Instant::now(),
        );
        fixture.deploy("good", json!({})).await?;
        fixture.applied("good", &good).await?;
        ensure!(begun.elapsed() < IN_TIME, "{value}: {:?}", begun.elapsed());
        fixture.controller.check_liveness().await?;
    }
    let failed = fixture.ready("many", "False", "HealthCheckFailed").await?;
    let message = condition(&failed, "Ready")["message"].to_string();
    assert!(message.contains("ConfigMap/"), "{message}");
    assert!(
        message.contains("together take more than 20000000 steps"),
        "{message}"
    );
    fixture.controller.check_liveness().await?;
    ensure!(
        fixture.controller.process().pid == process.pid,
        "it was started again"
    );
    Ok(())
}

/// Fault 17: an artifact of 100,000 objects fails with the limit's name, not by its time, in little memory, and other objects keep their pace.
#[tokio::test(flavor = "multi_thread")]
async fn artifact_of_100_000_objects_fails_by_a_limit_in_little_memory() -> Result<()> {
    const FILES: usize = 20;
    const OBJECTS: usize = 5_000;
    const MOST_MIB: u64 = 400;
    let fixture = Fixture::new("crowded", &[]).await?;
    let object = |file: usize, number: usize| {
        format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: map-{file}-{number}}}\n")
    };
    let files = (0..FILES).map(|file| {
        let text: String = (0..OBJECTS).map(|number| object(file, number)).collect();
        (format!("maps-{file:02}.yaml"), text)
    });
    let files: Vec<(String, String)> = files.collect();
    let files: Vec<(&str, String)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.clone()))
        .collect();
    let process = fixture.controller.process();
    fixture.offer("crowd", &files).await?;
    fixture.deploy("crowd", json!({ "timeout": "10m" })).await?;
    // It is tried again every second.
    for value in ["1", "2", "3"] {
        let good = fixture.offer("good", &[("a.yaml", map("good", value))]).await?;
        fixture.deploy("good", json!({})).await?;
        fixture.applied("good", &good).await?;
        let failed = fixture.ready("crowd", "False", "BuildFailed").await?;
        let message = condition(&failed, "Ready")["message"].to_string();
        assert!(
            message.contains("the limit of 20000 objects was reached"),
            "{message}"
        );
        assert!(ids(&failed).is_empty());
    }
    ensure!(
        fixture.controller.process().pid == process.pid,
        "it was started again"
    );
    let peak = fixture.controller.usage()?.peak >> 20;
    ensure!(peak < MOST_MIB, "{peak} MiB");
    assert!(fixture.values("crowd").await?.is_empty());
    Ok(())
}
