//! Events as the notification-controller receives them.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use api::{Event, Severity, kluctl::gitops::KluctlDeploymentStatus};
use kube::ResourceExt as _;
use serde_json::json;
use testkit::{WebhookSink, sink::Received};

use crate::{
    fixture::{Fixture, TIMEOUT, config_map, project},
    gitops::Gitops,
};

const SUCCEEDED: &str = "ReconciliationSucceeded";

/// The expected subject of events.
struct Subject {
    group: &'static str,
    version: &'static str,
    namespace: String,
    uid: String,
}

impl Subject {
    /// Waits for an event about the object `shop` whose message begins with a string, and checks all its fields but the message.
    async fn told(
        &self,
        sink: &WebhookSink,
        text: &str,
        (severity, reason): &(Severity, &str),
        metadata: &[(&str, &str)],
    ) -> Result<()> {
        let event = |received: &Received| serde_json::from_slice::<Event>(&received.body).ok();
        let begins = |event: &Event| {
            event.involved_object.name.as_deref() == Some("shop") && event.message.starts_with(text)
        };
        let received = sink.wait_for(text, TIMEOUT, |received| {
            event(received).is_some_and(|it| begins(&it))
        });
        let event = event(&received.await?).context("an event")?;
        let object = &event.involved_object;
        let of = [&object.api_version, &object.kind, &object.namespace, &object.uid];
        let version = format!("{}/{}", self.group, self.version);
        assert_eq!(
            of.map(|text| text.as_deref().unwrap_or_default()),
            [&version, "KluctlDeployment", &self.namespace, &self.uid],
            "{text}"
        );
        assert_eq!(
            (&event.severity, event.reason.as_str()),
            (severity, *reason),
            "{text}"
        );
        // Alerts take the keys that begin with the group of the object.
        let expected: BTreeMap<String, String> = metadata
            .iter()
            .map(|(key, value)| (format!("{}/{key}", self.group), (*value).to_owned()))
            .collect();
        assert_eq!(event.metadata, expected, "{text}");
        assert_eq!(event.reporting_controller, "flux-kluctl-controller");
        Ok(())
    }
}

/// A project with an object that the API server refuses.
fn refused(fixture: &Fixture) -> Vec<(String, String)> {
    let map = config_map("Not_A_Name", "1");
    project(
        &fixture.namespace,
        &[("a", &config_map("a", "2")), ("refused", &map)],
    )
}

#[tokio::test]
async fn events_of_a_deployment_from_a_source_name_object_revision_and_outcome() -> Result<()> {
    let sink = WebhookSink::start()?;
    let fixture = Fixture::new("alerts", &[&format!("--events-addr={}", sink.url("/"))]).await?;
    let source = fixture.source("shop", &fixture.maps(&[("a", "1")])).await?;
    fixture.deploy("shop", json!({})).await?;
    let object = fixture.ready("shop", "True", SUCCEEDED).await?;
    let shop = Subject {
        group: "flux.kluctl.io",
        version: "v1alpha1",
        namespace: fixture.namespace.clone(),
        uid: object.uid().unwrap_or_default(),
    };
    let revision = object
        .status
        .and_then(|status| status.last_attempted_revision)
        .context("a revision")?;
    let (info, error) = ((Severity::Info, SUCCEEDED), (Severity::Error, "DeployFailed"));
    let named = ("revision", revision.as_str());
    shop.told(&sink, "deploy succeeded. 1 new objects.", &info, &[named])
        .await?;
    let finished = [named, ("commit_status", "update")];
    shop.told(&sink, "Reconciliation finished in ", &info, &finished)
        .await?;
    let (kind, _) = fixture.told("shop", "Reconciliation finished in ").await?;
    assert_eq!(kind, "Normal");

    let revision = source.offer(&refused(&fixture)).await?;
    shop.told(&sink, "deploy failed. ", &error, &[("revision", &revision)])
        .await?;
    let (kind, _) = fixture.told("shop", "deploy failed. ").await?;
    assert_eq!(kind, "Warning");
    Ok(())
}

#[tokio::test]
async fn events_of_a_deployment_that_is_fetched_name_object_revision_and_outcome() -> Result<()> {
    let sink = WebhookSink::start()?;
    let shop = Gitops::with("g-alerts", &[&format!("--events-addr={}", sink.url("/"))]).await?;
    let commit = shop.push(&[("a", "1")])?;
    shop.create("shop", json!({})).await?;
    let status: KluctlDeploymentStatus = shop.ready("shop", SUCCEEDED).await?;
    assert_eq!(status.observed_commit.as_ref(), Some(&commit));
    let subject = Subject {
        group: "gitops.kluctl.io",
        version: "v1beta1",
        namespace: shop.fixture.namespace.clone(),
        uid: shop.api().get("shop").await?.uid().unwrap_or_default(),
    };
    let info = (Severity::Info, SUCCEEDED);
    let named = ("revision", commit.as_str());
    subject
        .told(&sink, "deploy succeeded. 1 new objects.", &info, &[named])
        .await?;
    let finished = [named, ("commit_status", "update")];
    subject
        .told(&sink, "Reconciliation finished in ", &info, &finished)
        .await?;
    let (kind, _) = shop.fixture.told("shop", "Reconciliation finished in ").await?;
    assert_eq!(kind, "Normal");

    let commit = shop.push_files(&refused(&shop.fixture), &[])?;
    shop.reconcile("shop").await?;
    let error = (Severity::Error, "DeployFailed");
    for text in ["deploy failed. ", "deploy failed with 1 errors."] {
        subject
            .told(&sink, text, &error, &[("revision", &commit)])
            .await?;
        let (kind, _) = shop.fixture.told("shop", text).await?;
        assert_eq!(kind, "Warning", "{text}");
    }

    let commit = shop.push_files(&shop.fixture.maps(&[("a", "{{ 1 / 0 }}")]), &[])?;
    shop.reconcile("shop").await?;
    let text = shop.api().get("shop").await?.status.context("a status")?;
    let text = text.last_prepare_error.context("an error")?;
    let error = (Severity::Error, "PrepareFailed");
    subject.told(&sink, &text, &error, &[("revision", &commit)]).await
}
