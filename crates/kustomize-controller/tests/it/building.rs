//! The changes that a Kustomization makes to the objects of its source.

use anyhow::Result;
use kube::ResourceExt as _;
use serde_json::json;

use crate::fixture::{Fixture, map};

/// A33, A34, A35 in part.
#[tokio::test(flavor = "multi_thread")]
async fn spec_changes_the_built_objects() -> Result<()> {
    let fixture = Fixture::new("overlay", &[]).await?;
    let component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n\
                     commonAnnotations: { component: 'yes' }\n";
    let files = [
        (
            "app/kustomization.yaml",
            "namePrefix: old-\nresources: [a.yaml]\n".to_owned(),
        ),
        ("app/a.yaml", map("a", "1")),
        ("app/part/kustomization.yaml", component.to_owned()),
    ];
    let revision = fixture.offer("shop", &files).await?;
    let spec = json!({
        "path": "./app", "namePrefix": "new-", "nameSuffix": "-end", "components": ["part"],
        "commonMetadata": { "labels": { "team": "shop" }, "annotations": { "note": "x" } },
        "patches": [{ "patch": "- { op: replace, path: /data/value, value: patched }", "target": { "kind": "ConfigMap" } }],
    });
    fixture.deploy("shop", spec).await?;
    fixture.applied("shop", &revision).await?;
    let map = fixture.maps().get("new-a-end").await?;
    assert_eq!(map.data.as_ref().unwrap()["value"], "patched");
    assert_eq!(map.labels()["team"], "shop");
    assert_eq!(
        (
            map.annotations()["note"].as_str(),
            map.annotations()["component"].as_str()
        ),
        ("x", "yes")
    );
    let other = json!({ "commonMetadata": { "labels": { "team": "cart" }, "annotations": null } });
    fixture.edit("shop", other).await?;
    fixture.applied("shop", &revision).await?;
    let map = fixture.maps().get("new-a-end").await?;
    assert_eq!(map.labels()["team"], "cart");
    assert!(!map.annotations().contains_key("note"));
    // Metadata that leaves the spec is removed.
    fixture.edit("shop", json!({ "commonMetadata": null })).await?;
    fixture.applied("shop", &revision).await?;
    assert!(
        !fixture
            .maps()
            .get("new-a-end")
            .await?
            .labels()
            .contains_key("team")
    );
    Ok(())
}

/// A38, A39: variables of the spec, ConfigMaps and Secrets; a change of a source of variables is applied at the next pass.
#[tokio::test(flavor = "multi_thread")]
async fn variables_are_substituted() -> Result<()> {
    let fixture = Fixture::new("variables", &[]).await?;
    let object = |kind: &str, name: &str, field: &str, data: serde_json::Value| {
        json!({
            "apiVersion": "v1", "kind": kind, "metadata": { "name": name, "namespace": fixture.namespace }, field: data,
        })
    };
    let vars = json!({ "one": "map", "two": "map\n" });
    fixture
        .plane
        .apply(object("ConfigMap", "vars", "data", vars))
        .await?;
    fixture
        .plane
        .apply(object(
            "Secret",
            "secret-vars",
            "stringData",
            json!({ "two": "secret" }),
        ))
        .await?;
    let value = "${one} ${two} ${three} ${four:=default} $$(x)";
    let revision = fixture.offer("shop", &[("a.yaml", map("a", value))]).await?;
    let from = json!([
        { "kind": "ConfigMap", "name": "vars" }, { "kind": "Secret", "name": "secret-vars" },
        { "kind": "ConfigMap", "name": "missing", "optional": true },
    ]);
    let post_build = json!({ "substitute": { "three": "inline" }, "substituteFrom": from });
    fixture.deploy("shop", json!({ "postBuild": post_build })).await?;
    fixture.applied("shop", &revision).await?;
    let values = fixture.values("shop").await?;
    assert_eq!(values["a"], "map secret inline default $(x)");

    fixture
        .plane
        .apply(object(
            "ConfigMap",
            "vars",
            "data",
            json!({ "one": "new", "two": "x" }),
        ))
        .await?;
    fixture.reconcile("shop").await?;
    assert_eq!(
        fixture.values("shop").await?["a"],
        "new secret inline default $(x)"
    );

    fixture
        .offer("shop", &[("a.yaml", map("a", "${unknown}"))])
        .await?;
    let failed = fixture.ready("shop", "False", "BuildFailed").await?;
    let message = crate::fixture::condition(&failed, "Ready")["message"].to_string();
    assert!(message.contains("variable not set (strict mode)"), "{message}");
    Ok(())
}

/// A commit elsewhere in a repository applies nothing, and its revision is applied all the same.
#[tokio::test(flavor = "multi_thread")]
async fn changes_elsewhere_in_a_repository_build_nothing() -> Result<()> {
    let fixture = Fixture::new("monorepo", &[]).await?;
    let files = |other: &str| [("app/a.yaml", map("a", "1")), ("other/b.yaml", map("b", other))];
    let first = fixture.offer("shop", &files("1")).await?;
    fixture.deploy("shop", json!({ "path": "app" })).await?;
    fixture.applied("shop", &first).await?;
    let version = fixture.maps().get("a").await?.resource_version();
    let second = fixture.offer("shop", &files("2")).await?;
    fixture.applied("shop", &second).await?;
    assert_eq!(fixture.maps().get("a").await?.resource_version(), version);
    Ok(())
}
