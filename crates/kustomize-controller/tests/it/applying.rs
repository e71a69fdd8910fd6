//! Objects that are applied, changed, pruned and corrected.

use anyhow::Result;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;
use testkit::{eventually, wait_for, wait_gone};

use crate::fixture::{Fixture, TIMEOUT, condition, grant, ids, map, status};

/// A05 in part, A22, A23, A27, A49: the whole life of a small Kustomization.
#[tokio::test(flavor = "multi_thread")]
async fn objects_follow_their_source() -> Result<()> {
    let fixture = Fixture::new("applying", &[]).await?;
    let files = [("a.yaml", map("a", "1")), ("b.yaml", map("b", "1"))];
    let first = fixture.offer("shop", &files).await?;
    fixture.deploy("shop", json!({})).await?;
    let applied = fixture.applied("shop", &first).await?;
    let (namespace, status) = (&fixture.namespace, status(&applied));
    assert_eq!(
        ids(&applied),
        [
            format!("{namespace}_a__ConfigMap"),
            format!("{namespace}_b__ConfigMap")
        ]
    );
    assert_eq!(
        condition(&applied, "Ready")["message"],
        format!("Applied revision: {first}")
    );
    assert_eq!(status.last_attempted_revision.as_deref(), Some(first.as_str()));
    assert_eq!(status.last_applied_origin_revision.as_deref(), Some("v1.0.0"));
    assert!(applied.finalizers().contains(&"finalizers.fluxcd.io".to_owned()));
    let history = &status.history[0];
    assert!(history.digest.starts_with("sha256:"));
    assert_eq!(history.last_reconciled_status, "ReconciliationSucceeded");
    let created = format!("ConfigMap/{namespace}/a created\nConfigMap/{namespace}/b created");
    let event = fixture.told("shop", &created).await?;
    assert_eq!(event.reason.as_deref(), Some("Progressing"));
    let event = fixture.told("shop", "Reconciliation finished in ").await?;
    assert_eq!(event.reason.as_deref(), Some("ReconciliationSucceeded"));
    let annotations = event.metadata.annotations.unwrap_or_default();
    assert_eq!(annotations["kustomize.toolkit.fluxcd.io/revision"], first);
    assert_eq!(
        annotations["kustomize.toolkit.fluxcd.io/originRevision"],
        "v1.0.0"
    );
    assert_eq!(annotations["kustomize.toolkit.fluxcd.io/commit_status"], "update");
    let labels = fixture.maps().get("a").await?.labels().clone();
    assert_eq!(labels["kustomize.toolkit.fluxcd.io/name"], "shop");
    assert_eq!(labels["kustomize.toolkit.fluxcd.io/namespace"], *namespace);

    let second = fixture.offer("shop", &[("a.yaml", map("a", "2"))]).await?;
    let applied = fixture.applied("shop", &second).await?;
    assert_eq!(ids(&applied), [format!("{namespace}_a__ConfigMap")]);
    assert_eq!(
        fixture.values("shop").await?,
        [("a".to_owned(), "2".to_owned())].into()
    );
    fixture
        .told("shop", &format!("ConfigMap/{namespace}/a configured"))
        .await?;
    fixture
        .told("shop", &format!("ConfigMap/{namespace}/b deleted"))
        .await?;

    // Drift is corrected when somebody asks for a pass.
    let patch = Patch::Merge(json!({ "data": { "value": "by hand" } }));
    fixture.maps().patch("a", &PatchParams::default(), &patch).await?;
    fixture.reconcile("shop").await?;
    assert_eq!(
        fixture.values("shop").await?,
        [("a".to_owned(), "2".to_owned())].into()
    );

    fixture.remove("shop").await?;
    assert!(fixture.values("shop").await?.is_empty());
    Ok(())
}

/// A15, A52: fields of kubectl that the source lacks are removed, and so is the metadata of early releases; nothing is created again.
#[tokio::test(flavor = "multi_thread")]
async fn objects_of_earlier_tools_are_taken_over() -> Result<()> {
    let fixture = Fixture::new("takeover", &["--override-manager=node-fetch"]).await?;
    let earlier = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "a", "namespace": fixture.namespace,
            "annotations": { "kustomize.toolkit.fluxcd.io/checksum": "00", "note": "kept" },
        },
        "data": { "value": "0", "old": "x" },
    });
    let params = PatchParams::apply("kubectl").force();
    let before = fixture
        .maps()
        .patch("a", &params, &Patch::Apply(&earlier))
        .await?;
    let mut by_node = earlier.clone();
    by_node["data"] = json!({ "node": "y" });
    let params = PatchParams::apply("node-fetch").force();
    fixture
        .maps()
        .patch("a", &params, &Patch::Apply(&by_node))
        .await?;
    let revision = fixture.offer("shop", &[("a.yaml", map("a", "1"))]).await?;
    fixture.deploy("shop", json!({})).await?;
    fixture.applied("shop", &revision).await?;
    let after = fixture.maps().get("a").await?;
    assert_eq!(after.uid(), before.uid());
    assert_eq!(after.data, Some([("value".to_owned(), "1".to_owned())].into()));
    assert!(
        !after
            .annotations()
            .contains_key("kustomize.toolkit.fluxcd.io/checksum")
    );
    Ok(())
}

/// A30 and others: annotations that exempt objects.
#[tokio::test(flavor = "multi_thread")]
async fn annotations_exempt_objects() -> Result<()> {
    let fixture = Fixture::new("exempt", &[]).await?;
    let annotated = |name: &str, key: &str, value: &str, data: &str| {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": { "value": data },
            "metadata": {
                "name": name,
                "annotations": { format!("kustomize.toolkit.fluxcd.io/{key}"): value },
            },
        });
        object.to_string()
    };
    let files = |data: &str| {
        [
            ("once.yaml", annotated("once", "ssa", "ifnotpresent", data)),
            ("stays.yaml", annotated("stays", "prune", "disabled", data)),
            ("never.yaml", annotated("never", "ssa", "Ignore", data)),
            ("plain.yaml", map("plain", data)),
        ]
    };
    let first = fixture.offer("shop", &files("1")).await?;
    fixture.deploy("shop", json!({})).await?;
    fixture.applied("shop", &first).await?;
    let second = fixture.offer("shop", &files("2")).await?;
    fixture.applied("shop", &second).await?;
    let values = fixture.values("shop").await?;
    let expected = [("once", "1"), ("plain", "2"), ("stays", "2")];
    assert_eq!(
        values,
        expected
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    );
    // An applied object that is exempt later is left as it is, and stays when its file or its Kustomization goes.
    let exempt = |name: &str| {
        (
            if name == "late" { "late.yaml" } else { "later.yaml" },
            annotated(name, "ssa", "Ignore", "3"),
        )
    };
    let late = [
        files("2").to_vec(),
        vec![("late.yaml", map("late", "2")), ("later.yaml", map("later", "2"))],
    ];
    let third = fixture.offer("shop", &late.concat()).await?;
    fixture.applied("shop", &third).await?;
    let now_exempt = [files("2").to_vec(), vec![exempt("late"), exempt("later")]];
    let fourth = fixture.offer("shop", &now_exempt.concat()).await?;
    fixture.applied("shop", &fourth).await?;
    let annotate = Patch::Merge(
        json!({ "metadata": { "annotations": { "kustomize.toolkit.fluxcd.io/ssa": "Ignore" } } }),
    );
    for name in ["late", "later"] {
        fixture
            .maps()
            .patch(name, &PatchParams::default(), &annotate)
            .await?;
    }
    let [_, stays, never, plain] = files("2");
    let fifth = fixture
        .offer("shop", &[stays, never, plain, exempt("later")])
        .await?;
    fixture.applied("shop", &fifth).await?;
    let values = fixture.values("shop").await?;
    let expected = [("late", "2"), ("later", "2"), ("plain", "2"), ("stays", "2")];
    assert_eq!(
        values,
        expected
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    );
    let sixth = fixture.offer("shop", &now_exempt.concat()).await?;
    fixture.applied("shop", &sixth).await?;
    assert!(fixture.values("shop").await?.contains_key("once"));
    fixture.remove("shop").await?;
    let values = fixture.values("shop").await?;
    assert_eq!(values.into_keys().collect::<Vec<_>>(), ["late", "later", "stays"]);
    let skipped = format!("ConfigMap/{}/stays skipped", fixture.namespace);
    let event = fixture.told("shop", &skipped).await?.message.unwrap_or_default();
    assert!(event.contains("/plain deleted\n"), "{event}");
    Ok(())
}

/// A29: an object that moved to another Kustomization stays.
#[tokio::test(flavor = "multi_thread")]
async fn objects_that_moved_to_another_owner_stay() -> Result<()> {
    let fixture = Fixture::new("moved", &[]).await?;
    let both = [("a.yaml", map("a", "1")), ("b.yaml", map("moved", "1"))];
    let first = fixture.offer("one", &both).await?;
    fixture.deploy("one", json!({})).await?;
    fixture.applied("one", &first).await?;
    let taken = fixture.offer("two", &[("b.yaml", map("moved", "2"))]).await?;
    fixture.deploy("two", json!({})).await?;
    fixture.applied("two", &taken).await?;
    let without = fixture.offer("one", &[("a.yaml", map("a", "1"))]).await?;
    fixture.applied("one", &without).await?;
    assert_eq!(
        fixture.values("two").await?,
        [("moved".to_owned(), "2".to_owned())].into()
    );
    // An inventory that names the objects of others deletes nothing of them.
    let forged = json!({ "status": { "inventory": { "entries": [
        { "id": format!("{}_moved__ConfigMap", fixture.namespace), "v": "v1" },
    ] } } });
    fixture
        .objects()
        .patch_status("one", &PatchParams::default(), &Patch::Merge(forged))
        .await?;
    fixture.remove("one").await?;
    assert_eq!(
        fixture.values("two").await?,
        [("moved".to_owned(), "2".to_owned())].into()
    );
    Ok(())
}

/// An object that two Kustomizations list belongs to the one that applied it last, and the removal of the other one leaves it.
#[tokio::test(flavor = "multi_thread")]
async fn object_of_two_lists_belongs_to_its_last_owner() -> Result<()> {
    let fixture = Fixture::new("shared", &[]).await?;
    for (name, value) in [("one", "1"), ("two", "2")] {
        let revision = fixture.offer(name, &[("a.yaml", map("shared", value))]).await?;
        fixture.deploy(name, json!({})).await?;
        fixture.applied(name, &revision).await?;
    }
    let shared = |value: &str| [("shared".to_owned(), value.to_owned())].into();
    assert_eq!(fixture.values("two").await?, shared("2"));
    fixture.reconcile("one").await?;
    assert_eq!(fixture.values("one").await?, shared("1"));
    fixture.remove("two").await?;
    assert_eq!(fixture.values("one").await?, shared("1"));
    // The other order of a move: the object leaves the first list before it is in the second one.
    let empty = fixture.offer("one", &[("b.yaml", map("b", "1"))]).await?;
    fixture.applied("one", &empty).await?;
    assert!(!fixture.values("one").await?.contains_key("shared"));
    let revision = fixture.offer("three", &[("a.yaml", map("shared", "3"))]).await?;
    fixture.deploy("three", json!({})).await?;
    fixture.applied("three", &revision).await?;
    fixture.remove("one").await?;
    assert_eq!(fixture.values("three").await?, shared("3"));
    Ok(())
}

/// A29: an object whose owner labels name another owner is not pruned, though the inventory has it.
#[tokio::test(flavor = "multi_thread")]
async fn relabelled_objects_are_not_pruned() -> Result<()> {
    let fixture = Fixture::new("relabelled", &[]).await?;
    let three = [
        ("a.yaml", map("a", "1")),
        ("b.yaml", map("b", "1")),
        ("c.yaml", map("c", "1")),
    ];
    let first = fixture.offer("shop", &three).await?;
    fixture.deploy("shop", json!({})).await?;
    fixture.applied("shop", &first).await?;
    // Suspended, it corrects no label.
    fixture.edit("shop", json!({ "suspend": true })).await?;
    for (name, label) in [("b", "name"), ("c", "namespace")] {
        let labels = json!({ format!("kustomize.toolkit.fluxcd.io/{label}"): "other" });
        let patch = Patch::Merge(json!({ "metadata": { "labels": labels } }));
        fixture
            .maps()
            .patch(name, &PatchParams::default(), &patch)
            .await?;
    }
    let without = fixture.offer("shop", &[("d.yaml", map("d", "1"))]).await?;
    fixture.edit("shop", json!({ "suspend": false })).await?;
    let applied = fixture.applied("shop", &without).await?;
    let mut left = Vec::new();
    for name in ["a", "b", "c", "d"] {
        left.extend(fixture.maps().get_opt(name).await?.map(|_| name));
    }
    assert_eq!(left, ["b", "c", "d"]);
    assert_eq!(ids(&applied), [format!("{}_d__ConfigMap", fixture.namespace)]);
    Ok(())
}

/// A05, A43: a definition, its namespace and an object of the new kind are applied in one pass. Other objects of the kind are, too, until the
/// definition is gone.
#[tokio::test(flavor = "multi_thread")]
async fn definitions_are_applied_before_their_objects() -> Result<()> {
    let fixture = Fixture::new("staged", &[]).await?;
    let (namespace, group) = (
        format!("{}-new", fixture.namespace),
        format!("{}.test", fixture.namespace),
    );
    let anything = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("things.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": { "kind": "Thing", "plural": "things", "singular": "thing" },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": anything },
            }],
        },
    });
    let thing = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Thing",
        "metadata": { "name": "a", "namespace": namespace },
    });
    let space = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
    let files = [
        ("a.yaml", thing.to_string()),
        ("d.yaml", definition.to_string()),
        ("n.yaml", space.to_string()),
    ];
    let revision = fixture.offer("shop", &files).await?;
    fixture.deploy_unbound("shop").await?;
    let applied = fixture.applied("shop", &revision).await?;
    assert_eq!(
        ids(&applied),
        [
            format!("_things.{group}_apiextensions.k8s.io_CustomResourceDefinition"),
            format!("_{namespace}__Namespace"),
            format!("{namespace}_a_{group}_Thing"),
        ]
    );
    let other = |value: &str| {
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "Thing", "value": value,
            "metadata": { "name": "b", "namespace": namespace },
        })
        .to_string()
    };
    let revision = fixture.offer("cart", &[("b.yaml", other("1"))]).await?;
    fixture.deploy_unbound("cart").await?;
    fixture.applied("cart", &revision).await?;
    fixture.edit("shop", json!({ "suspend": true })).await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(fixture.client.clone());
    let name = format!("things.{group}");
    definitions.delete(&name, &DeleteParams::default()).await?;
    wait_gone(&definitions, &name, TIMEOUT).await?;
    fixture.offer("cart", &[("b.yaml", other("2"))]).await?;
    let failed = fixture.ready("cart", "False", "ReconciliationFailed").await?;
    let message = condition(&failed, "Ready")["message"].to_string();
    assert!(message.contains("no matches for kind"), "{message}");
    Ok(())
}

/// A20: a ServiceAccount without rights fails, one with rights applies; without the account, the object goes and its objects stay.
#[tokio::test(flavor = "multi_thread")]
async fn objects_are_applied_as_the_service_account() -> Result<()> {
    let fixture = Fixture::new("accounts", &["--default-service-account=default"]).await?;
    let revision = fixture.offer("shop", &[("a.yaml", map("a", "1"))]).await?;
    fixture.deploy("shop", json!({})).await?;
    let failed = fixture.ready("shop", "False", "ReconciliationFailed").await?;
    let message = condition(&failed, "Ready")["message"].to_string();
    assert!(message.contains("forbidden"), "{message}");
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": { "name": "deployer", "namespace": fixture.namespace },
    });
    fixture.plane.apply(account).await?;
    grant(fixture.plane, &fixture.namespace, "deployer").await?;
    fixture
        .edit("shop", json!({ "serviceAccountName": "deployer" }))
        .await?;
    fixture.applied("shop", &revision).await?;
    let namespace = &fixture.namespace;
    fixture
        .plane
        .kubectl(&["delete", "serviceaccount", "deployer", "-n", namespace])
        .await?;
    fixture.remove("shop").await?;
    fixture
        .told("shop", "unable to prune objects: \nConfigMap/")
        .await?;
    assert_eq!(fixture.values("shop").await?.len(), 1);
    Ok(())
}

/// A50: a suspended object is left alone. Its status says that requests are handled, and keeps all else.
#[tokio::test(flavor = "multi_thread")]
async fn suspended_objects_are_left_alone() -> Result<()> {
    let fixture = Fixture::new("suspended", &[]).await?;
    let first = fixture.offer("shop", &[("a.yaml", map("a", "1"))]).await?;
    fixture.deploy("shop", json!({})).await?;
    fixture.applied("shop", &first).await?;
    fixture.edit("shop", json!({ "suspend": true })).await?;
    let second = fixture.offer("shop", &[("a.yaml", map("a", "2"))]).await?;
    // Another object that is created later has its turn after the suspended one.
    let other = fixture.offer("other", &[("b.yaml", map("b", "1"))]).await?;
    fixture.deploy("other", json!({})).await?;
    fixture.applied("other", &other).await?;
    let suspended = fixture.objects().get("shop").await?;
    assert_eq!(status(&suspended).last_applied_revision, Some(first));
    assert_eq!(
        status(&suspended).observed_generation,
        suspended.metadata.generation
    );
    let asked = status(&fixture.reconcile("shop").await?);
    assert_eq!(asked.history, status(&suspended).history);
    assert_eq!(
        asked.last_attempted_revision,
        status(&suspended).last_attempted_revision
    );
    fixture.edit("shop", json!({ "suspend": false })).await?;
    fixture.applied("shop", &second).await?;
    Ok(())
}

/// A19: a change of an immutable field fails, and with force the object is created again.
#[tokio::test(flavor = "multi_thread")]
async fn force_creates_immutable_objects_again() -> Result<()> {
    let fixture = Fixture::new("force", &[]).await?;
    let secret = |value: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" }, "immutable": true,
            "stringData": { "key": value },
        })
        .to_string()
    };
    let first = fixture.offer("shop", &[("s.yaml", secret("1"))]).await?;
    fixture.deploy("shop", json!({})).await?;
    fixture.applied("shop", &first).await?;
    let second = fixture.offer("shop", &[("s.yaml", secret("2"))]).await?;
    let failed = fixture.ready("shop", "False", "ReconciliationFailed").await?;
    let message = condition(&failed, "Ready")["message"].to_string();
    let start = format!("Secret/{}/s dry-run failed (Invalid): ", fixture.namespace);
    assert!(
        message.contains(&start) && message.contains("because of data"),
        "{message}"
    );
    fixture.told("shop", &start).await?;
    fixture.edit("shop", json!({ "force": true })).await?;
    fixture.applied("shop", &second).await?;
    fixture
        .told("shop", &format!("Secret/{}/s created", fixture.namespace))
        .await?;
    Ok(())
}

/// A28: an empty source prunes everything, and a full one brings it back.
#[tokio::test(flavor = "multi_thread")]
async fn empty_source_prunes_everything() -> Result<()> {
    let fixture = Fixture::new("empty", &[]).await?;
    let files = [("app/a.yaml", map("a", "1"))];
    let first = fixture.offer("shop", &files).await?;
    fixture.deploy("shop", json!({ "path": "./app" })).await?;
    fixture.applied("shop", &first).await?;
    let empty = fixture.offer("shop", &[("app/note.txt", String::new())]).await?;
    let applied = fixture.applied("shop", &empty).await?;
    assert_eq!(ids(&applied), [] as [String; 0]);
    assert!(fixture.values("shop").await?.is_empty());
    let again = fixture.offer("shop", &files).await?;
    fixture.applied("shop", &again).await?;
    assert_eq!(fixture.values("shop").await?.len(), 1);
    Ok(())
}

/// A11, A12: dependencies are waited for, by their conditions and by expressions.
#[tokio::test(flavor = "multi_thread")]
async fn dependencies_come_first() -> Result<()> {
    let fixture = Fixture::new("dependencies", &[]).await?;
    fixture.offer("base", &[("a.yaml", map("a", "1"))]).await?;
    let revision = fixture.offer("shop", &[("b.yaml", map("b", "1"))]).await?;
    fixture
        .deploy(
            "shop",
            json!({ "dependsOn": [{ "name": "base" }, { "name": "other" }] }),
        )
        .await?;
    let waits = fixture.ready("shop", "False", "DependencyNotReady").await?;
    let reasons = condition(&waits, "Ready")["message"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert!(
        reasons.contains("/base'") && reasons.contains("/other'"),
        "{reasons}"
    );
    let event = format!("Dependencies do not meet ready condition, retrying in 1s: {reasons}");
    fixture.told("shop", &event).await?;
    let depends = json!({ "dependsOn": [{ "name": "base" }] });
    fixture.edit("shop", depends).await?;
    assert!(fixture.values("shop").await?.is_empty());
    fixture.deploy("base", json!({})).await?;
    fixture.applied("shop", &revision).await?;

    let expression = "dep.metadata.labels['go'] == 'yes'";
    let depends = json!({ "dependsOn": [{ "name": "base", "readyExpr": expression }] });
    fixture.edit("shop", depends).await?;
    let waits = fixture.ready("shop", "False", "DependencyNotReady").await?;
    assert!(
        condition(&waits, "Stalled").is_null(),
        "a value that isn't there yet may come"
    );
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "go": "yes" } } }));
    fixture
        .objects()
        .patch("base", &PatchParams::default(), &patch)
        .await?;
    fixture.applied("shop", &revision).await?;
    let invalid = json!({ "dependsOn": [{ "name": "base", "readyExpr": "dep." }] });
    fixture.edit("shop", invalid).await?;
    let stalled = fixture.ready("shop", "False", "InvalidCELExpression").await?;
    assert_eq!(condition(&stalled, "Stalled")["status"], "True");
    assert_eq!(status(&stalled).observed_generation, stalled.metadata.generation);
    Ok(())
}

/// Sources of all kinds.
#[tokio::test(flavor = "multi_thread")]
async fn sources_of_all_kinds_are_applied() -> Result<()> {
    let fixture = Fixture::new("kinds", &["--feature-gates=ExternalArtifact=true"]).await?;
    for kind in ["OCIRepository", "Bucket", "ExternalArtifact"] {
        let name = kind.to_lowercase();
        let revision = fixture
            .offer_of(kind, &name, &[("a.yaml", map(&name, "1"))])
            .await?;
        let source = json!({ "sourceRef": { "kind": kind, "name": name } });
        fixture.deploy(&name, source).await?;
        fixture.applied(&name, &revision).await?;
        // A new revision is applied at once.
        let files = [("a.yaml", map(&name, "2"))];
        let revision = fixture.offer_of(kind, &name, &files).await?;
        fixture.applied(&name, &revision).await?;
        assert_eq!(
            fixture.values(&name).await?,
            [(name.clone(), "2".to_owned())].into()
        );
    }
    eventually("the objects", TIMEOUT, || async {
        anyhow::ensure!(fixture.maps().get_opt("bucket").await?.is_some());
        Ok(())
    })
    .await?;
    wait_for(&fixture.maps(), "externalartifact", "the object", TIMEOUT, |_| {
        true
    })
    .await?;
    Ok(())
}
