//! HelmCharts whose source has no artifact yet.

use api::{
    condition_type as types,
    source::{HelmChart, HelmRepository},
};
use serde_json::json;
use testkit::{GitServer, S3Server};

use super::{
    TestNamespace,
    bucket::BucketNamespace,
    helm_chart::{ChartServer, packed, shop},
    objects::{Objects, artifact, condition, status},
};

fn assert_waits(object: &HelmChart, message: &str) {
    for name in [types::READY, types::FETCH_FAILED] {
        let found = condition(object, name).unwrap_or_else(|| panic!("{name}: {object:?}"));
        assert_eq!(
            (found.reason.as_str(), found.message.as_str()),
            ("NoSourceArtifact", message),
            "{name}"
        );
    }
    let reconciling = condition(object, types::RECONCILING).unwrap();
    assert_eq!(reconciling.reason, "ProgressingWithRetry");
    assert_eq!(condition(object, types::STALLED), None);
    assert_eq!(condition(object, types::BUILD_FAILED), None);
    let status = status(object);
    assert_ne!(status["observedGeneration"].as_i64(), object.metadata.generation);
    assert!(status["artifact"].is_null(), "{status}");
}

/// Charts check their source again after an hour only, so they are woken by its artifact.
#[tokio::test(flavor = "multi_thread")]
async fn charts_wait_for_the_artifact_of_their_source_and_go_on_when_it_appears() {
    let setup = TestNamespace::start_with(|launch| launch.flag("--requeue-dependency=1h")).await;
    let bucket = BucketNamespace::of(setup).await;
    let setup = &bucket.setup;
    let (git, s3) = (GitServer::start().unwrap(), S3Server::start().await.unwrap());
    let repo = git.repo("apps").unwrap();
    let server = ChartServer::start(&[]);
    let repositories = Objects::<HelmRepository>::of(setup).await;
    let charts = Objects::<HelmChart>::of(setup).await;

    // The sources are there, but have failed so far.
    repositories
        .apply("charts", json!({"url": server.0.url("none")}))
        .await;
    repositories
        .wait_failed("charts", "Failed", "was not found")
        .await;
    setup.apply("apps", &repo.url(), json!({})).await;
    setup
        .wait_failed("apps", "EmptyGitRepository", "git repository is empty")
        .await;
    bucket.apply_s3("archives", &s3, json!({})).await;
    bucket
        .wait_failed("archives", "BucketOperationFailed", "bucket 'shop' not found")
        .await;
    let of = |kind: &str, name: &str, chart: &str| json!({"chart": chart, "sourceRef": {"kind": kind, "name": name}});
    charts.apply("helm", shop(&json!({}))).await;
    charts.apply("git", of("GitRepository", "apps", "shop")).await;
    charts.apply("bucket", of("Bucket", "archives", "shop.tgz")).await;
    for (name, message) in [
        ("helm", "no artifact available for HelmRepository source 'charts'"),
        ("git", "no artifact available for GitRepository source 'apps'"),
        ("bucket", "no artifact available for Bucket source 'archives'"),
    ] {
        let object = charts.wait_failed(name, "NoSourceArtifact", message).await;
        assert_waits(&object, message);
        let event = setup.wait_event(name, "NoSourceArtifact").await;
        assert_eq!((event.0.as_str(), event.2.as_str()), ("Normal", message));
    }

    server.offer(&[("1.0.0", &[])]);
    repositories
        .apply("charts", json!({"url": server.0.url("")}))
        .await;
    let metadata = "apiVersion: v2\nname: shop\nversion: 2.0.0\n";
    repo.commit("first", &[("shop/Chart.yaml", metadata)]).unwrap();
    setup.request("apps", "1").await;
    s3.put("shop", &[("shop.tgz", packed("shop", "3.0.0", &[]))])
        .await
        .unwrap();
    bucket.reconcile("archives", "1").await;
    for (name, version) in [("helm", "1.0.0"), ("git", "2.0.0"), ("bucket", "3.0.0")] {
        let object = charts.wait_ready(name).await;
        assert_eq!(artifact(&object).revision, version);
        assert_eq!(condition(&object, types::FETCH_FAILED), None);
    }
}
