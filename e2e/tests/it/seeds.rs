//! Manifests of earlier API versions, and their output of `kubectl describe`.

use anyhow::Result;
use e2e::{
    cluster::{CONTROLLERS, TestCluster, root},
    demo::{boxed, eras, mesh, shop::example},
    report::Report,
};

async fn play(version: &str, flags: &[&str]) -> Result<(TestCluster, String)> {
    crate::init();
    let mut cluster = TestCluster::bare().await?;
    eras::prepare(&cluster).await?;
    for &name in CONTROLLERS {
        cluster
            .start(name, if name == "source-controller" { flags } else { &[] })
            .await?;
    }
    let (repo, commit) = eras::push(&cluster, &example())?;
    eras::apply_flux(&cluster, version, &repo.url()).await?;
    Ok((cluster, commit))
}

#[tokio::test(flavor = "multi_thread")]
async fn v1beta1_with_legacy_revisions_reads_as_in_2021() -> Result<()> {
    let (cluster, commit) = play("v1beta1", &["--revision-format=legacy"]).await?;
    let resource = "gitrepositories.v1beta1.source.toolkit.fluxcd.io";
    let shown = cluster
        .plane
        .kubectl(&["describe", resource, "microservices-demo", "-n", "flux-system"])
        .await?;
    for line in [
        "Checksum:".to_owned(),
        "Last Update Time:".to_owned(),
        format!("Path:              gitrepository/flux-system/microservices-demo/{commit}.tar.gz"),
        format!("Revision:          main/{commit}"),
        format!("Message:               Fetched revision: main/{commit}"),
        "Reason:                GitOperationSucceed".to_owned(),
        "Observed Generation:  1".to_owned(),
        "gitrepository/flux-system/microservices-demo/latest.tar.gz".to_owned(),
        format!("Fetched revision: main/{commit}"),
    ] {
        let words = |text: &str| text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&shown).contains(&words(&line)), "no {line:?} in:\n{shown}");
    }
    cluster.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn v1beta2_reads_as_in_2022() -> Result<()> {
    let (cluster, commit) = play("v1beta2", &[]).await?;
    let shown = cluster
        .plane
        .kubectl(&[
            "describe",
            "gitrepository",
            "microservices-demo",
            "-n",
            "flux-system",
        ])
        .await?;
    assert!(shown.contains(&format!("main@sha1:{commit}")), "{shown}");
    assert!(shown.contains("stored artifact for revision"), "{shown}");
    let shown = cluster
        .plane
        .kubectl(&[
            "describe",
            "kluctldeployment",
            "microservices-demo-test",
            "-n",
            "flux-system",
        ])
        .await?;
    assert!(shown.contains("deploy: ok, prune: ok, validate: ok"), "{shown}");
    assert!(shown.contains("Reconciliation finished in"), "{shown}");
    cluster.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn kustomizations_of_2021_deploy_a_mesh_and_an_app_in_their_order() -> Result<()> {
    crate::init();
    let mut cluster = TestCluster::bare().await?;
    for name in ["source-controller", "kustomize-controller"] {
        cluster.start(name, &[]).await?;
    }
    let mut report = Report::silent();
    let played = boxed(|| mesh::play(&mut report, &cluster)).await;
    assert!(played.is_ok() && report.all_passed(), "{}", report.table());
    cluster.stop().await
}

/// The project that the manifests were written for; it isn't part of this repository.
#[tokio::test(flavor = "multi_thread")]
async fn microservices_demo_is_deployed_by_three_generations_of_manifests() -> Result<()> {
    crate::init();
    let project = root()
        .join("../shared/examples/kluctl-examples")
        .join(eras::PROJECT);
    if !project.is_dir() {
        testkit::skipped::note(
            "microservices demo",
            "the example of three generations of manifests: it isn't there",
        );
        return Ok(());
    }
    let mut cluster = TestCluster::bare().await?;
    for &name in CONTROLLERS {
        cluster.start(name, &[]).await?;
    }
    let mut report = Report::silent();
    let played = boxed(|| eras::play(&mut report, &cluster, &project)).await;
    assert!(played.is_ok() && report.all_passed(), "{}", report.table());
    cluster.stop().await
}
