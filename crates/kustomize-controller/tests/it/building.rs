//! The changes that a Kustomization makes to the objects of its source.

use anyhow::Result;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::fixture::{Fixture, map};

const AGE_KEY: &str = include_str!("../../../secrets/fixtures/age.txt");
/// A key that decrypts nothing.
const OTHER_AGE_KEY: &str = "AGE-SECRET-KEY-1QYPQXPQ9QCRSSZG2PVXQ6RS0ZQG3YYC5Z5TPWXQERGD3C8G7RUSQGPQYEE";
const AGE_FILE: &str = include_str!("../../../secrets/fixtures/secret.yaml");

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

/// A07 in part, A08, A09: values of Secrets and files of generators are decrypted, with the key of the Secret or of the controller. The same
/// files again change nothing.
#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_decrypted() -> Result<()> {
    let fixture = Fixture::new("decryption", &["--sops-age-secret=global"]).await?;
    let key = |name: &str, entry: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "namespace": fixture.namespace },
            "stringData": { entry: AGE_KEY },
        })
    };
    fixture.plane.apply(key("keys", "a.agekey")).await?;
    fixture.plane.apply(key("global", "a.agekey")).await?;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "plain" },
        "data": { "s.yaml": STANDARD.encode(AGE_FILE) },
    });
    let kustomization = "resources: [secret.yaml]\nsecretGenerator: [{ name: made, files: [s.yaml] }]\n\
                         generatorOptions: { disableNameSuffixHash: true }\n";
    let files = [
        ("kustomization.yaml", kustomization.to_owned()),
        ("s.yaml", AGE_FILE.to_owned()),
        ("secret.yaml", secret.to_string()),
    ];
    let secrets: Api<Secret> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    for (name, decryption) in [
        (
            "own",
            json!({ "provider": "sops", "secretRef": { "name": "keys" } }),
        ),
        ("shared", json!({ "provider": "sops" })),
    ] {
        let revision = fixture.offer(name, &files).await?;
        let prefix = format!("{name}-");
        fixture
            .deploy(name, json!({ "decryption": decryption, "namePrefix": prefix }))
            .await?;
        fixture.applied(name, &revision).await?;
        for secret in ["plain", "made"] {
            let found = secrets.get(&format!("{name}-{secret}")).await?;
            let content = &found.data.unwrap()["s.yaml"].0;
            assert!(content.ends_with(b"password: hunter2\n"), "{name} {secret}");
        }
    }
    let versions = async || -> Result<Vec<Option<String>>> {
        let (plain, made) = tokio::try_join!(secrets.get("own-plain"), secrets.get("own-made"))?;
        Ok(vec![plain.resource_version(), made.resource_version()])
    };
    let before = versions().await?;
    let again = fixture.offer("own", &files).await?;
    fixture.applied("own", &again).await?;
    assert_eq!(versions().await?, before);
    // The key of the controller would decrypt the files, but the object names another one.
    let other = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "keys", "namespace": fixture.namespace },
        "stringData": { "a.agekey": OTHER_AGE_KEY },
    });
    fixture.plane.apply(other).await?;
    let changed: Vec<_> = files
        .iter()
        .cloned()
        .chain([("note.txt", "changed".to_owned())])
        .collect();
    fixture.offer("own", &changed).await?;
    let failed = fixture.ready("own", "False", "BuildFailed").await?;
    let message = crate::fixture::condition(&failed, "Ready")["message"].to_string();
    assert!(message.contains("decrypt"), "{message}");
    let told = crate::fixture::messages(&fixture, "own").await?;
    assert!(
        !told.iter().any(|message| message.contains("configured")),
        "{told:?}"
    );
    let missing = json!({ "decryption": { "provider": "sops", "secretRef": { "name": "no-keys" } } });
    fixture.edit("own", missing).await?;
    let failed = fixture.ready("own", "False", "BuildFailed").await?;
    let message = crate::fixture::condition(&failed, "Ready")["message"].to_string();
    assert!(message.contains("cannot get sops decryption Secret"), "{message}");
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
