//! The transformers of kustomize, as documents in a kustomization and as files.

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use crate::fixture::{Fixture, map};

const TRANSFORMERS: usize = 12;

/// Returns the configuration of each transformer. Those that change names come last.
fn transformers(namespace: &str) -> [Value; TRANSFORMERS] {
    let of_kind = |kind: &str, fields: Value| {
        let mut config = json!({ "apiVersion": "builtin", "kind": kind, "metadata": { "name": "t" } });
        for (field, value) in fields.as_object().into_iter().flatten() {
            config[field] = value.clone();
        }
        config
    };
    let everywhere = |path: &str| json!([{ "path": path, "create": true }]);
    let deployment = json!({ "group": "apps", "version": "v1", "kind": "Deployment", "name": "app" });
    let strategic =
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: app }\nspec: { paused: true }\n";
    let copied = json!({
        "source": { "kind": "ConfigMap", "name": "a", "fieldPath": "data.value" },
        "targets": [{
            "select": { "kind": "Deployment" }, "fieldPaths": ["metadata.annotations.copied"], "options": { "create": true },
        }],
    });
    [
        of_kind(
            "AnnotationsTransformer",
            json!({ "annotations": { "note": "x" }, "fieldSpecs": everywhere("metadata/annotations") }),
        ),
        of_kind(
            "LabelTransformer",
            json!({ "labels": { "tier": "web" }, "fieldSpecs": everywhere("metadata/labels") }),
        ),
        of_kind(
            "ImageTagTransformer",
            json!({ "imageTag": { "name": "nginx", "newName": "example.com/web" } }),
        ),
        of_kind(
            "ReplicaCountTransformer",
            json!({
                "replica": { "name": "app", "count": 3 },
                "fieldSpecs": [{ "path": "spec/replicas", "create": true, "kind": "Deployment" }],
            }),
        ),
        of_kind(
            "PatchTransformer",
            json!({
                "patch": "- { op: add, path: /data/patched, value: 'yes' }", "target": { "kind": "ConfigMap" },
            }),
        ),
        of_kind(
            "PatchJson6902Transformer",
            json!({
                "target": deployment, "jsonOp": "- { op: replace, path: /spec/minReadySeconds, value: 7 }",
            }),
        ),
        of_kind("PatchStrategicMergeTransformer", json!({ "patches": strategic })),
        of_kind("ReplacementTransformer", json!({ "replacements": [copied] })),
        of_kind(
            "ValueAddTransformer",
            json!({
                "value": "added",
                "targets": [{ "selector": { "kind": "ConfigMap" }, "fieldPath": "data/added" }],
            }),
        ),
        of_kind(
            "NamespaceTransformer",
            json!({
                "metadata": { "name": "t", "namespace": namespace }, "fieldSpecs": everywhere("metadata/namespace"),
            }),
        ),
        of_kind(
            "PrefixTransformer",
            json!({ "prefix": "one-", "fieldSpecs": [{ "path": "metadata/name" }] }),
        ),
        of_kind(
            "SuffixTransformer",
            json!({ "suffix": "-two", "fieldSpecs": [{ "path": "metadata/name" }] }),
        ),
    ]
}

fn deployment() -> String {
    let pod = json!({
        "metadata": { "labels": { "app": "app" } },
        "spec": { "containers": [{ "name": "web", "image": "nginx:1.0" }] },
    });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "app" },
        "spec": { "minReadySeconds": 1, "selector": { "matchLabels": { "app": "app" } }, "template": pod },
    })
    .to_string()
}

/// A35: the transformers change the objects, whether they are documents or files; the images of the spec come before them.
#[tokio::test(flavor = "multi_thread")]
async fn transformers_work_as_documents_and_as_files() -> Result<()> {
    let fixture = Fixture::new("transformers", &[]).await?;
    let configs = transformers(&fixture.namespace).map(|config| config.to_string());
    let names: Vec<_> = (0..TRANSFORMERS).map(|at| format!("t{at}.yaml")).collect();
    let deployments: Api<Deployment> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    for (name, entries) in [("documents", json!(configs)), ("files", json!(names))] {
        let kustomization = json!({ "resources": ["a.yaml", "d.yaml"], "transformers": entries });
        let mut files = vec![
            ("kustomization.yaml", kustomization.to_string()),
            ("a.yaml", map("a", "1")),
            ("d.yaml", deployment()),
        ];
        if name == "files" {
            files.extend(names.iter().map(String::as_str).zip(configs.clone()));
        }
        let revision = fixture.offer(name, &files).await?;
        let images = json!([{ "name": "nginx", "newTag": "v3" }]);
        fixture.deploy(name, json!({ "images": images })).await?;
        fixture.applied(name, &revision).await?;

        let map = fixture.maps().get("one-a-two").await?;
        let data = map.data.clone().unwrap_or_default();
        assert_eq!((&*data["patched"], &*data["added"]), ("yes", "added"), "{name}");
        let app = deployments.get("one-app-two").await?;
        for (labels, annotations) in [
            (map.labels(), map.annotations()),
            (app.labels(), app.annotations()),
        ] {
            assert_eq!((&*labels["tier"], &*annotations["note"]), ("web", "x"), "{name}");
        }
        assert_eq!(app.annotations()["copied"], "1", "{name}");
        let spec = app.spec.unwrap_or_default();
        let image = spec
            .template
            .spec
            .and_then(|pod| pod.containers.into_iter().next()?.image);
        assert_eq!(image.as_deref(), Some("example.com/web:v3"), "{name}");
        assert_eq!(
            (spec.replicas, spec.paused, spec.min_ready_seconds),
            (Some(3), Some(true), Some(7)),
            "{name}"
        );
        fixture.remove(name).await?;
        assert!(deployments.get_opt("one-app-two").await?.is_none(), "{name}");
    }
    Ok(())
}
