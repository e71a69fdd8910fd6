//! Events and messages.

use anyhow::Result;
use k8s_openapi::api::core::v1::Event;
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;

use crate::fixture::{Fixture, condition, map};

/// Returns the reasons and messages of the Events of a revision, in their order.
async fn events(fixture: &Fixture, name: &str, revision: &str) -> Result<Vec<(String, String)>> {
    let api: Api<Event> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    let list = api.list(&ListParams::default()).await?.into_iter();
    let of_revision = list.filter(|event| {
        let annotations = event.metadata.annotations.as_ref();
        let found = annotations.and_then(|all| all.get("kustomize.toolkit.fluxcd.io/revision"));
        event.involved_object.name.as_deref() == Some(name) && found.is_some_and(|found| found == revision)
    });
    let text = |event: Event| {
        (
            event.reason.unwrap_or_default(),
            event.message.unwrap_or_default(),
        )
    };
    Ok(of_revision.map(text).collect())
}

/// A03, A08: changes, health and the end of a reconciliation are an Event each, in this order; a build that is the same has the last one only.
#[tokio::test(flavor = "multi_thread")]
async fn each_step_has_its_event() -> Result<()> {
    let fixture = Fixture::new("steps", &[]).await?;
    let files = [("a.yaml", map("a", "1"))];
    let first = fixture.offer("shop", &files).await?;
    fixture.deploy("shop", json!({ "wait": true })).await?;
    fixture.applied("shop", &first).await?;
    fixture.told("shop", "Reconciliation finished in ").await?;
    let found = events(&fixture, "shop", &first).await?;
    let starts = [
        (
            "Progressing",
            format!("ConfigMap/{}/a created", fixture.namespace),
        ),
        ("Progressing", "Health check passed in ".to_owned()),
        (
            "ReconciliationSucceeded",
            "Reconciliation finished in ".to_owned(),
        ),
    ];
    assert_eq!(found.len(), starts.len(), "{found:?}");
    for ((reason, message), (expected, start)) in found.iter().zip(&starts) {
        assert!(reason == expected && message.starts_with(start), "{found:?}");
    }
    let second = fixture.offer("shop", &files).await?;
    fixture.applied("shop", &second).await?;
    // The Events of one controller are written in their order.
    let last = fixture.offer("other", &[("b.yaml", map("b", "1"))]).await?;
    fixture.deploy("other", json!({})).await?;
    fixture.applied("other", &last).await?;
    fixture.told("other", "Reconciliation finished in ").await?;
    let found = events(&fixture, "shop", &second).await?;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].1.starts_with("Reconciliation finished in "), "{found:?}");
    let total = |entry: &api::kustomize::Snapshot| entry.total_reconciliations;
    let status = crate::fixture::status(&fixture.objects().get("shop").await?);
    assert_eq!(status.history.iter().map(total).collect::<Vec<_>>(), [2]);
    assert_eq!(status.history[0].metadata["revision"], second);
    Ok(())
}

/// A03: no Event reports the state of a commit if the gate says so.
#[tokio::test(flavor = "multi_thread")]
async fn states_of_commits_are_off_by_a_gate() -> Result<()> {
    let fixture = Fixture::new("quiet", &["--feature-gates=DisableCommitStatusEvent=true"]).await?;
    let first = fixture.offer("shop", &[("a.yaml", map("a", "1"))]).await?;
    fixture.deploy("shop", json!({})).await?;
    fixture.applied("shop", &first).await?;
    let second = fixture.offer("shop", &[("a.yaml", map("a", "2"))]).await?;
    fixture.applied("shop", &second).await?;
    fixture.told("shop", " configured").await?;
    let found = events(&fixture, "shop", &first).await?;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].1.ends_with("a created"), "{found:?}");
    Ok(())
}

/// A32: the values of Secrets are not in messages.
#[tokio::test(flavor = "multi_thread")]
async fn secret_variables_are_not_told() -> Result<()> {
    let fixture = Fixture::new("redacted", &[]).await?;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "vars", "namespace": fixture.namespace },
        "stringData": { "token": "Hunter_Two" },
    });
    fixture.plane.apply(secret).await?;
    fixture.offer("shop", &[("a.yaml", map("${token}", "1"))]).await?;
    let variables = json!({ "substituteFrom": [{ "kind": "Secret", "name": "vars" }] });
    fixture.deploy("shop", json!({ "postBuild": variables })).await?;
    let failed = fixture.ready("shop", "False", "ReconciliationFailed").await?;
    let message = condition(&failed, "Ready")["message"].to_string();
    assert!(
        message.contains("*****") && !message.contains("Hunter_Two"),
        "{message}"
    );
    let event = fixture.told("shop", "*****").await?.message.unwrap_or_default();
    assert!(!event.contains("Hunter_Two"), "{event}");
    Ok(())
}

/// A24: before it compares, a pass takes over the fields of the managers of the flag, and leaves others.
#[tokio::test(flavor = "multi_thread")]
async fn fields_of_overridden_managers_are_drift() -> Result<()> {
    let flag = "--override-manager-before-dry-run=node-fetch";
    let fixture = Fixture::new("overridden", &[flag]).await?;
    let revision = fixture.offer("shop", &[("a.yaml", map("a", "1"))]).await?;
    fixture.deploy("shop", json!({})).await?;
    fixture.applied("shop", &revision).await?;
    let write = async |manager: &str, data: serde_json::Value, applies: bool| {
        let object =
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": data });
        let params = match applies {
            true => PatchParams::apply(manager).force(),
            false => PatchParams {
                field_manager: Some(manager.to_owned()),
                ..PatchParams::default()
            },
        };
        let patch = match applies {
            true => Patch::Apply(object),
            false => Patch::Merge(object),
        };
        fixture.maps().patch("a", &params, &patch).await.map(drop)
    };
    for (manager, data, applies) in [
        ("node-fetch", json!({ "added": "x" }), false),
        ("node-fetch", json!({ "value": "2" }), false),
        ("node-fetch", json!({ "applied": "x" }), true),
        // Another name that begins like it is another manager.
        ("node-fetcher", json!({ "other": "y" }), false),
    ] {
        write(manager, data, applies).await?;
    }
    fixture.reconcile("shop").await?;
    let data = fixture.maps().get("a").await?.data.unwrap_or_default();
    let expected = [("other", "y"), ("value", "1")];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(data, expected.into());
    Ok(())
}

/// A53: the columns that kubectl prints, by version.
#[tokio::test(flavor = "multi_thread")]
async fn columns_show_readiness_and_message() -> Result<()> {
    let fixture = Fixture::new("columns", &[]).await?;
    let revision = fixture.offer("shop", &[("a.yaml", map("a", "1"))]).await?;
    fixture.deploy("shop", json!({})).await?;
    fixture.applied("shop", &revision).await?;
    for (resource, header) in [
        ("ks", "NAME AGE READY STATUS"),
        (
            "kustomizations.v1beta2.kustomize.toolkit.fluxcd.io",
            "NAME AGE READY STATUS",
        ),
        (
            "kustomizations.v1beta1.kustomize.toolkit.fluxcd.io",
            "NAME READY STATUS AGE",
        ),
    ] {
        let printed = fixture
            .plane
            .kubectl(&["get", resource, "-n", &fixture.namespace])
            .await?;
        let (head, row) = printed.split_once('\n').unwrap_or_default();
        let words: Vec<&str> = head.split_whitespace().collect();
        assert_eq!(words.join(" "), header, "{resource}");
        let text = format!("True    Applied revision: {revision}");
        assert!(row.starts_with("shop") && row.contains(&text), "{printed}");
    }
    Ok(())
}
