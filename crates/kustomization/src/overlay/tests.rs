//! Generated and changed kustomizations.

use tree::Mem;

use super::*;

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n";

fn spec(change: &Json) -> KustomizationSpec {
    let mut spec = json!({
        "interval": "5m", "prune": true, "sourceRef": { "kind": "GitRepository", "name": "a" },
    });
    for (field, value) in change.as_object().unwrap() {
        spec[field] = value.clone();
    }
    serde_json::from_value(spec).unwrap()
}

fn made(files: &[(&str, &str)], change: &Json) -> Result<(String, Json), String> {
    let tree = Mem::from_files(files.iter().map(|(path, text)| (*path, (*text).to_owned()))).unwrap();
    let (budget, dir) = (Budget::default(), TreePath::parse("app").unwrap());
    let (file, text) =
        kustomization(&tree, &dir, &spec(change), &budget).map_err(|error| error.to_string())?;
    let value = yaml::read::kustomize(&text, &budget).unwrap().value;
    Ok((file.to_string(), value.to_json()))
}

#[test]
fn missing_kustomization_lists_manifests_and_directories_with_one() {
    let files = [
        ("app/b.yaml", MAP),
        ("app/a.yml", MAP),
        ("app/note.txt", "no: manifest"),
        ("app/base/kustomization.yaml", "resources: [x.yaml]"),
        ("app/base/x.yaml", "not: read"),
        ("app/deep/er/c.yaml", MAP),
        ("other/d.yaml", MAP),
    ];
    let (file, made) = made(&files, &json!({})).unwrap();
    assert_eq!(file, "app/kustomization.yaml");
    assert_eq!(
        made["resources"],
        json!(["a.yml", "b.yaml", "base", "deep/er/c.yaml"])
    );
    assert_eq!(made["namespace"], Json::Null);
}

#[test]
fn directory_without_manifests_has_a_kustomization_that_builds_nothing() {
    let (_, empty) = made(&[("app/note.txt", "")], &json!({})).unwrap();
    assert_eq!(
        (&empty["resources"], &empty["namespace"]),
        (&json!([]), &json!(PLACEHOLDER))
    );
    let existing = made(&[("app/kustomization.yaml", "resources: []\n")], &json!({}));
    assert_eq!(existing.unwrap().1["buildMetadata"], json!(["originAnnotations"]));
}

#[test]
fn files_that_are_not_manifests_are_named() {
    for (text, why) in [
        (
            "a: b\n",
            "failed to decode Kubernetes YAML from app/x.yaml: missing Resource metadata",
        ),
        (
            "kind: A\n",
            "failed to decode Kubernetes YAML from app/x.yaml: A has no metadata.name",
        ),
        ("a: [", "failed to decode Kubernetes YAML from app/x.yaml: "),
    ] {
        let error = made(&[("app/x.yaml", text)], &json!({})).unwrap_err();
        assert!(error.starts_with(why), "{error}");
    }
    assert!(made(&[("app/x.yaml", "---\n---\n")], &json!({})).is_ok());
}

#[test]
fn components_outside_of_the_directory_are_refused() {
    let made = |path: &str| made(&[("app/a.yaml", MAP)], &json!({ "components": [path] }));
    for path in ["../a", "/a", "a/../../b", "https://example.com/a", ""] {
        let error = made(path).unwrap_err();
        assert_eq!(
            error,
            format!("component path '{path}' must be local and relative")
        );
    }
    for path in ["a", "./a", "a/../b"] {
        assert!(made(path).is_ok(), "{path}");
    }
}

#[test]
fn fields_of_the_spec_replace_and_append() {
    let file = "namePrefix: old-\nnamespace: old\nresources: [a.yaml]\npatches: [{ patch: first }]\n\
                components: [./x]\nimages: [{ name: a, newTag: v1 }, { name: b, newName: c, digest: d }]\n";
    let files = [
        ("app/Kustomization", file),
        ("app/y/kustomization.yaml", "kind: Component"),
    ];
    let change = json!({
        "targetNamespace": "new", "namePrefix": "new-", "nameSuffix": "-end",
        "patches": [{ "patch": "second", "target": { "kind": "Deployment", "labelSelector": "a=b" } }],
        "components": ["./y", "./missing"], "ignoreMissingComponents": true,
        "patchesStrategicMerge": [{ "kind": "A" }],
        "patchesJson6902": [{ "patch": [{ "op": "remove", "path": "/a" }], "target": { "kind": "B" } }],
        "images": [{ "name": "a", "newName": "n" }, { "name": "b", "newTag": "v2" }, { "name": "z", "newTag": "v3" }],
        "buildMetadata": ["transformerAnnotations"],
    });
    let (file, made) = made(&files, &change).unwrap();
    assert_eq!(file, "app/Kustomization");
    let expected = json!({
        "namePrefix": "new-", "nameSuffix": "-end", "namespace": "new", "resources": ["a.yaml"],
        "patches": [
            { "patch": "first" },
            { "patch": "second", "target": { "kind": "Deployment", "labelSelector": "a=b" } },
        ],
        "components": ["./x", "./y"],
        "patchesStrategicMerge": ["{\"kind\":\"A\"}"],
        "patchesJson6902": [{ "patch": "[{\"op\":\"remove\",\"path\":\"/a\"}]", "target": { "kind": "B" } }],
        "images": [
            { "name": "a", "newName": "n", "newTag": "v1" },
            { "name": "b", "newName": "c", "newTag": "v2" },
            { "name": "z", "newTag": "v3" },
        ],
        "buildMetadata": ["transformerAnnotations"],
    });
    assert_eq!(made, expected);
}
