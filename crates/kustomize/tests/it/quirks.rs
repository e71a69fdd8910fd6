//! Tests of the quirks that outputs depend on.

use kustomize::{Options, build};
use tree::{Budget, Mem, TreePath};

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n";

/// Builds a directory with two files, and prints the objects or the error.
fn built(kustomization: &str, objects: &str) -> String {
    let kustomization = format!("resources: [objects.yaml]\n{kustomization}");
    let files = [
        ("kustomization.yaml", kustomization),
        ("objects.yaml", objects.to_owned()),
    ];
    let tree = Mem::from_files(files).unwrap();
    match build(&tree, &TreePath::root(), &Options::default(), &Budget::default()) {
        Ok(built) => built.to_yaml(),
        Err(error) => format!("Error: {error}"),
    }
}

#[test]
fn json_patches_find_annotations_and_leave_texts_in_them() {
    let patch = "
patches:
- target: {kind: ConfigMap}
  patch: |
    - {op: add, path: /metadata/annotations/one, value: 1}
    - {op: add, path: /metadata/annotations/none, value: null}
    - {op: add, path: /metadata/labels, value: {one: 1}}
";
    assert_eq!(
        built(patch, MAP),
        "apiVersion: v1
kind: ConfigMap
metadata:
  annotations:
    none: \"null\"
    one: \"1\"
  labels:
    one: 1
  name: a
"
    );
    let legacy = "
patchesJson6902:
- target: {version: v1, kind: ConfigMap, name: a}
  patch: |
    - {op: add, path: /metadata/annotations/one, value: 1}
";
    assert!(built(legacy, MAP).contains("doc is missing path: \"/metadata/annotations/one\""));
    assert!(built(&format!("namePrefix: p-\n{legacy}"), MAP).contains("    one: \"1\"\n"));
}

#[test]
fn scalars_are_patched_in_the_style_of_the_old_ones() {
    let object = format!("{MAP}data: {{text: '1', number: 1, word: a}}\n");
    let patch = "
patches:
- patch: |
    {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {text: 2, number: '2', word: 2}}
";
    let expected = "data:\n  number: \"2\"\n  text: \"2\"\n  word: 2\n";
    let text = built(patch, &object);
    assert!(text.contains(expected), "{text}");
}

#[test]
fn objects_that_become_the_same_are_refused() {
    let objects = format!("{MAP}---\n{}", MAP.replace("name: a", "name: b"));
    let replacement = "
replacements:
- sourceValue: a
  targets: [{select: {name: b}, fieldPaths: [metadata.name]}]
";
    let text = built(replacement, &objects);
    let expected = "may not add resource with an already registered id: ConfigMap.v1.[noGrp]/a.[noNs]";
    assert!(text.starts_with("Error: ") && text.ends_with(expected), "{text}");
}

#[test]
fn namespaces_are_first_only_if_the_order_lists_them() {
    let objects = format!("{MAP}---\napiVersion: v2\nkind: Namespace\nmetadata:\n  name: n\n");
    let sorted = |options: &str| built(&format!("sortOptions: {options}\n"), &objects);
    assert!(sorted("{order: legacy}").starts_with("apiVersion: v2"));
    assert!(sorted("{order: legacy, legacySortOptions: {}}").starts_with("apiVersion: v1"));
}

#[test]
fn annotations_of_patches_with_options_are_texts() {
    let patch = "
patches:
- options: {allowNameChange: true}
  patch: |
    {apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {none: null}}}
";
    let text = built(patch, MAP);
    assert!(text.contains("  annotations:\n    none: \"null\"\n"), "{text}");
}

#[test]
fn errors_hide_passwords_in_addresses() {
    for entry in [
        "https://u:secret@h/x?y",
        "ssh://u:secret@h/x",
        "git::https://secret@h/x",
    ] {
        for field in [
            "resources",
            "components",
            "patchesStrategicMerge",
            "crds",
            "transformers",
        ] {
            let text = built(
                &format!("{field}: ['{entry}']\n").replace("resources:", "bases:"),
                MAP,
            );
            assert!(
                text.starts_with("Error: ") && !text.contains("secret"),
                "{field}: {text}"
            );
        }
    }
}

#[test]
fn empty_nulls_in_flow_collections_become_strings() {
    let object = |spec: &str| format!("apiVersion: v1\nkind: A\nmetadata: {{name: a}}\n{spec}\n");
    let printed = |spec: &str| {
        let printed = built("", &object(spec));
        let spec = printed.split_once("spec:").map(|(_, spec)| spec.to_owned());
        spec.unwrap_or(printed)
    };
    assert_eq!(
        printed("spec: {a: , b: null, c: [d: ]}"),
        "\n  a: \"\"\n  b: null\n  c:\n  - d: \"\"\n"
    );
    assert_eq!(printed("spec:\n  a:\n  b: null"), "\n  a: null\n  b: null\n");
}
