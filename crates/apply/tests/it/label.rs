//! Owners with a label.

use anyhow::Result;
use apply::{
    BatchOptions, Confirmation, DeletionOptions, Drift, OrphanSearch, Owner, Query, ReconcileOptions,
};
use cluster::Cluster;
use objects::{ObjectRef, rules::Rules};
use serde_json::json;
use yaml::Value;

use crate::{Fixture, PATIENCE, example::owner};

/// Makes the cluster equal to the manifests; returns the printed lines.
async fn reconcile(cluster: &Cluster, owner: &Owner, manifests: &[Value]) -> Result<Vec<String>> {
    let reconciled = apply::reconcile(cluster, owner, manifests, ReconcileOptions::default()).await?;
    Ok(reconciled.to_string().lines().map(str::to_owned).collect())
}

#[tokio::test]
async fn the_example_applies_corrects_and_prunes() -> Result<()> {
    let fixture = Fixture::new("example").await?;
    let owner = owner(&fixture.namespace);
    let (a, b) = (
        fixture.config_map("a", json!({"key": "1"})),
        fixture.config_map("b", json!({})),
    );
    let mut kept = fixture.config_map("kept", json!({}));
    objects::meta::annotate(&mut kept, "example.com/prune", "disabled");
    let (cluster, namespace) = (&fixture.cluster, &fixture.namespace);
    let line = |name: &str, action: &str| format!("{namespace}/ConfigMap/{name}: {action}");

    let all = [a.clone(), b.clone(), kept.clone()];
    let expected = ["a", "b", "kept"].map(|name| line(name, "created"));
    assert_eq!(reconcile(cluster, &owner, &all).await?, expected);
    let expected = ["a", "b", "kept"].map(|name| line(name, "unchanged"));
    assert_eq!(reconcile(cluster, &owner, &all).await?, expected);

    let patch = [
        "patch",
        "configmap/a",
        "-n",
        namespace,
        "--type=merge",
        "-p",
        r#"{"data":{"key":"2"}}"#,
    ];
    fixture.plane.kubectl(&patch).await?;
    let lines = reconcile(cluster, &owner, std::slice::from_ref(&a)).await?;
    assert_eq!(lines, [line("a", "configured"), line("b", "deleted")]);
    assert_eq!(fixture.live(&a).await?.unwrap()["data"], json!({"key": "1"}));
    assert!(
        fixture.live(&kept).await?.is_some(),
        "its annotation forbids the deletion"
    );
    let managers = fixture.live(&a).await?.unwrap()["metadata"]["managedFields"].to_string();
    assert!(managers.contains(r#""manager":"example""#), "{managers}");
    Ok(())
}

#[tokio::test]
async fn reconcile_deletes_nothing_if_a_manifest_is_refused() -> Result<()> {
    let fixture = Fixture::new("reconcile-refused").await?;
    let (cluster, owner, namespace) = (&fixture.cluster, owner(&fixture.namespace), &fixture.namespace);
    let old = fixture.config_map("old", json!({}));
    reconcile(cluster, &owner, std::slice::from_ref(&old)).await?;

    let refused = fixture.config_map("refused", json!({"key": 1}));
    let wanted = [fixture.config_map("new", json!({})), refused];
    let reconciled = apply::reconcile(cluster, &owner, &wanted, ReconcileOptions::default()).await?;
    assert!(!reconciled.is_complete() && reconciled.pruned.is_none());
    let lines = reconciled.to_string();
    assert!(
        lines.contains(&format!("{namespace}/ConfigMap/new: created")),
        "{lines}"
    );
    assert!(
        lines.contains(&format!("{namespace}/ConfigMap/refused: it can't be applied: ")),
        "{lines}"
    );
    assert!(lines.ends_with("not all manifests could be applied\n"), "{lines}");
    assert!(fixture.live(&old).await?.is_some());
    assert!(
        apply::reconcile(cluster, &owner, &[], ReconcileOptions::default())
            .await
            .is_err()
    );
    Ok(())
}

#[tokio::test]
async fn compare_finds_missing_and_changed_objects() -> Result<()> {
    let fixture = Fixture::new("drift").await?;
    let (cluster, owner) = (&fixture.cluster, owner(&fixture.namespace));
    let manifests = ["same", "changed", "missing"].map(|name| fixture.config_map(name, json!({"key": "1"})));
    let applied = apply::apply_all(cluster, &owner, &manifests[..2], BatchOptions::default()).await?;
    assert!(applied.is_complete(), "{applied:?}");
    let namespace = fixture.namespace.as_str();
    let patch = [
        "patch",
        "configmap/changed",
        "-n",
        namespace,
        "--type=merge",
        "-p",
        r#"{"data":{"key":"2"}}"#,
    ];
    fixture.plane.kubectl(&patch).await?;

    let refs: Vec<ObjectRef> = manifests.iter().map(ObjectRef::of).collect::<Result<_, _>>()?;
    let query = Query {
        refs: &refs,
        all: &refs,
        orphans: None,
        renamed: &Default::default(),
        seen: None,
        assumes: None,
    };
    let live = apply::fetch(cluster, &owner, query).await?;
    let rules = Rules::default();
    let desired: Vec<_> = manifests
        .iter()
        .zip(&refs)
        .map(|(manifest, reference)| apply::Desired {
            manifest,
            reference,
            rules: &rules,
        })
        .collect();
    let compared = apply::compare(cluster, &owner, &live, desired, None, false).await;
    assert_eq!(compared.len(), 3);
    for one in compared {
        let drift = one.drift.unwrap();
        match one.desired.reference.name.as_str() {
            "same" => assert!(matches!(drift, Drift::None(_)), "{drift:?}"),
            "changed" => assert_eq!(drift, Drift::Changed),
            _ => assert_eq!(drift, Drift::Missing),
        }
    }
    Ok(())
}

#[tokio::test]
async fn prune_keeps_objects_of_other_managers_and_owners() -> Result<()> {
    let fixture = Fixture::new("foreign").await?;
    let (cluster, owner) = (&fixture.cluster, owner(&fixture.namespace));
    let ours = fixture.config_map("ours", json!({}));
    let foreign = fixture.config_map("foreign", json!({}));
    fixture.plane.apply(foreign.to_json()).await?;
    apply::apply_all(
        cluster,
        &owner,
        std::slice::from_ref(&ours),
        BatchOptions::default(),
    )
    .await?;

    let (search, options) = (
        OrphanSearch::default(),
        DeletionOptions {
            confirmation: Confirmation::Each(PATIENCE),
            ..DeletionOptions::default()
        },
    );
    assert!(
        apply::prune(cluster, &owner, &[], search, options).await.is_err(),
        "nothing is desired"
    );
    let deleted = apply::delete_all(cluster, &owner, search, options).await?;
    let names: Vec<&str> = deleted
        .outcomes
        .iter()
        .map(|one| one.reference.name.as_str())
        .collect();
    assert_eq!(names, ["ours"]);
    assert!(deleted.completeness.is_complete(), "{:?}", deleted.completeness);
    assert!(fixture.live(&ours).await?.is_none() && fixture.live(&foreign).await?.is_some());
    Ok(())
}
