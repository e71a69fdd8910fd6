//! Deployments that wait don't stop others.

use anyhow::{Result, ensure};
use serde_json::json;
use testkit::{eventually, wait_for};

use crate::{
    fixture::{Fixture, TIMEOUT, config_map, for_kind, has_condition, message_of, project},
    source::OfferedSource,
};

/// A Deployment that never becomes ready, and that its project waits for.
pub(crate) const NEVER_READY: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: slow\n  annotations:\n    \
                           kluctl.io/wait-readiness: \"true\"\nspec:\n  selector:\n    matchLabels: {app: slow}\n  template:\n    \
                           metadata:\n      labels: {app: slow}\n    spec:\n      nodeSelector: {no: such-node}\n      containers:\n      \
                           - name: slow\n        image: slow:1\n";

impl Fixture {
    /// A source with a deployment of the same name that waits for readiness, for as long as an hour.
    pub(crate) async fn slow(&self, name: &str) -> Result<OfferedSource> {
        let manifest = NEVER_READY.replace("name: slow\n  anno", &format!("name: {name}\n  anno"));
        let mut files = project(&self.namespace, &[("slow", &manifest)]);
        for (path, text) in &mut files {
            if path == ".kluctl.yaml" {
                *text = text.replace("{{ target.name }}", name);
            }
        }
        let source = self.source(name, &files).await?;
        let deployment = self.deployment(name, name).spec(for_kind());
        let slow = json!({ "timeout": "100h", "prune": false });
        self.plane.apply(deployment.spec(slow)).await?;
        Ok(source)
    }

    /// Waits until the object of a slow deployment is there, so that it is being waited for.
    pub(crate) async fn applied(&self, name: &str) -> Result<()> {
        let deployments: kube::Api<k8s_openapi::api::apps::v1::Deployment> =
            kube::Api::namespaced(self.client.clone(), &self.namespace);
        eventually("the object to be applied", TIMEOUT, || async {
            deployments.get(name).await?;
            Ok(())
        })
        .await
    }
}

#[tokio::test]
async fn deployments_that_wait_for_readiness_do_not_stop_others() -> Result<()> {
    let fixture = Fixture::new("slow", &["--concurrent=1"]).await?;
    let names: Vec<String> = (0..8).map(|i| format!("slow-{i}")).collect();
    for name in &names {
        fixture.slow(name).await?;
    }
    for name in &names {
        fixture.applied(name).await?;
    }
    fixture
        .running("shop", &[("a", "1")], json!({ "prune": false }))
        .await?;

    // Those that wait for long are bounded: the one that is too many ends, and is tried again later.
    fixture.slow("late").await?;
    fixture.applied("late").await?;
    eventually("the last one to end", TIMEOUT, || async {
        fixture.reconcile("shop").await?;
        let late = message_of(&fixture.deployments().get("late").await?);
        ensure!(late.contains("too many objects of namespace"), "{late}");
        ensure!(late.contains("tried again later"), "{late}");
        Ok(())
    })
    .await?;
    fixture
        .running("other", &[("b", "1")], json!({ "prune": false }))
        .await?;
    Ok(())
}

#[tokio::test]
async fn timeout_of_an_object_is_bounded_by_the_flag() -> Result<()> {
    let fixture = Fixture::new("bounded", &["--max-timeout=3s"]).await?;
    fixture.slow("slow").await?;
    let object = fixture.ready("slow", "False", "Timeout").await?;
    assert_eq!(
        message_of(&object),
        "the pass took longer than its timeout of 3 s: --max-timeout of the controller bounds the 360000 s of the object"
    );
    Ok(())
}

#[tokio::test]
async fn new_revision_ends_a_wait_at_once_and_is_named() -> Result<()> {
    let fixture = Fixture::new("newer", &[]).await?;
    let source = fixture.slow("slow").await?;
    fixture.applied("slow").await?;
    let deployments = fixture.deployments();
    let told = wait_for(&deployments, "slow", "the reason", TIMEOUT, |object| {
        message_of(object).starts_with("superseded by revision ")
    });
    let files = fixture.maps(&[("a", "1")]);
    let (told, revision) = futures::try_join!(told, source.offer(&files))?;
    assert_eq!(
        message_of(&told),
        format!("superseded by revision {revision}: starting over")
    );
    fixture.deployed("slow", &revision).await?;
    fixture.holds("a", "1").await?;
    Ok(())
}

#[tokio::test]
async fn last_of_several_revisions_in_quick_succession_is_deployed() -> Result<()> {
    let fixture = Fixture::new("succession", &[]).await?;
    let source = fixture.slow("slow").await?;
    fixture.applied("slow").await?;
    // Each of them would be waited for, for as long as an hour.
    for value in ["1", "2", "3"] {
        let map = config_map("a", value);
        let files = project(&fixture.namespace, &[("slow", NEVER_READY), ("a", &map)]);
        source.offer(&files).await?;
    }
    let revision = source.offer(&fixture.maps(&[("a", "4")])).await?;
    fixture.deployed("slow", &revision).await?;
    fixture.holds("a", "4").await?;
    let object = fixture.ready("slow", "True", "ReconciliationSucceeded").await?;
    ensure!(!has_condition(&object, "Reconciling"), "{object:?}");
    // The same with a revision that comes before the one before was looked at.
    source.offer(&fixture.maps(&[("a", "5")])).await?;
    let revision = source.offer(&fixture.maps(&[("a", "6")])).await?;
    fixture.deployed("slow", &revision).await?;
    fixture.holds("a", "6").await?;
    Ok(())
}

#[tokio::test]
async fn new_revision_lets_an_apply_end_at_its_barrier() -> Result<()> {
    const OBJECTS: usize = 300;
    let fixture = Fixture::new("barrier", &[]).await?;
    let files = |value: &str| {
        let many: Vec<String> = (0..OBJECTS)
            .map(|i| config_map(&format!("first-{i:03}"), value))
            .collect();
        let mut files = project(&fixture.namespace, &[("first", &many.join("---\n"))]);
        for (path, text) in &mut files {
            if path == "deployment.yaml" {
                *text = text.replace("- path: app\n", "- path: app\n- barrier: true\n- path: late\n");
            }
        }
        let late = [
            ("late/kustomization.yaml", "resources:\n- late.yaml\n".to_owned()),
            ("late/late.yaml", config_map("late", value)),
        ];
        files.extend(late.map(|(path, text)| (path.to_owned(), text)));
        files
    };
    let source = fixture.source("shop", &files("1")).await?;
    let mark = fixture.plane.audit_mark();
    fixture.deploy("shop", json!({})).await?;
    fixture.holds("first-000", "1").await?;
    let revision = source.offer(&files("2")).await?;
    fixture.deployed("shop", &revision).await?;
    fixture.holds("late", "2").await?;

    let written: Vec<String> = fixture
        .requests_since(mark)?
        .into_iter()
        .filter(|entry| entry.is_write() && entry.resource == "configmaps" && !entry.uri.contains("dryRun"))
        .map(|entry| entry.name)
        .collect();
    let count = |name: &str| written.iter().filter(|written| *written == name).count();
    for number in 0..OBJECTS {
        let name = format!("first-{number:03}");
        assert_eq!(count(&name), 2, "{name} is not in both revisions");
    }
    assert_eq!(
        count("late"),
        1,
        "what is behind the barrier was applied for the old revision"
    );
    Ok(())
}
