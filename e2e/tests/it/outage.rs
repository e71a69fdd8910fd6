//! An outage of the notification-controller, with the rights of a real installation.

use anyhow::{Context as _, Result};
use api::{kluctl::KluctlDeployment, source::GitRepository};
use e2e::{
    cluster::{NAMESPACE, TIMEOUT, TestCluster},
    events::apply_provider,
};
use kube::{Api, Resource, ResourceExt as _};
use serde_json::{Value, json};
use testkit::{Controller, wait_for};

const PENDING: &str = "event.weir.io/pending";

fn is_marked(object: &impl Resource) -> bool {
    object.annotations().contains_key(PENDING)
}

fn controller<'a>(cluster: &'a mut TestCluster, name: &str) -> Result<&'a mut Controller> {
    let found = cluster.controllers.iter_mut().find(|each| each.name() == name);
    found.with_context(|| format!("{name} wasn't started"))
}

/// Waits until both objects have the mark of a pending event, or have none.
async fn wait_marked(cluster: &TestCluster, marked: bool) -> Result<()> {
    let what = format!("a pending event: {marked}");
    let repositories: Api<GitRepository> = cluster.repositories();
    wait_for(&repositories, "app", &what, TIMEOUT, |object| {
        is_marked(object) == marked
    })
    .await?;
    let deployments: Api<KluctlDeployment> = cluster.deployments();
    wait_for(&deployments, "app", &what, TIMEOUT, |object| {
        is_marked(object) == marked
    })
    .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_an_outage_arrive_although_their_senders_were_killed() -> Result<()> {
    crate::init();
    let mut cluster = TestCluster::bare().await?;
    cluster.start("notification-controller", &[]).await?;
    apply_provider(&cluster).await?;
    let sources = ["GitRepository", "KluctlDeployment"].map(|kind| json!({"kind": kind, "name": "*"}));
    let alert = json!({
        "apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Alert",
        "metadata": {"name": "hook", "namespace": NAMESPACE},
        "spec": {"providerRef": {"name": "hook"}, "eventSources": sources},
    });
    cluster.plane.apply(alert).await?;
    let senders = ["source-controller", "kluctl-controller"];
    for name in senders {
        cluster.start(name, &["--enable-leader-election=false"]).await?;
    }
    controller(&mut cluster, "notification-controller")?
        .terminate()
        .await?;

    let repo = cluster.git.repo("app")?;
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app, namespace: flux-system}\n";
    let files = [
        (".kluctl.yml", "discriminator: outage\n"),
        ("deployment.yml", "deployments: [{path: app}]\n"),
        ("app/map.yml", map),
    ];
    let commit = repo.commit("first", &files)?;
    cluster.apply_repository("app", &repo.url(), "1h").await?;
    cluster
        .apply_deployment("app", "app", json!({"interval": "1h"}))
        .await?;
    cluster.ready("app", &commit).await?;
    wait_marked(&cluster, true).await?;
    for name in senders {
        controller(&mut cluster, name)?.kill().await?;
    }
    assert!(cluster.sink.received().is_empty(), "nobody sent anything");

    controller(&mut cluster, "notification-controller")?
        .restart()
        .await?;
    for name in senders {
        controller(&mut cluster, name)?.restart().await?;
    }
    for (kind, group) in [
        ("GitRepository", "source.toolkit.fluxcd.io"),
        ("KluctlDeployment", "flux.kluctl.io"),
    ] {
        let is_about = |event: &Value| event["involvedObject"]["kind"] == kind;
        let what = format!("the event of the {kind}");
        let sent = cluster
            .sink
            .wait_for(&what, TIMEOUT, |each| is_about(&each.json()));
        let event = sent.await?.json();
        assert_eq!(event["severity"], "info", "{event}");
        let revision = event["metadata"]["revision"]
            .as_str()
            .or(event["metadata"][format!("{group}/revision")].as_str());
        assert!(
            revision.is_some_and(|revision| revision.ends_with(&commit)),
            "{event}"
        );
    }
    wait_marked(&cluster, false).await?;
    cluster.stop().await
}
