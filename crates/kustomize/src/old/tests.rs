//! Builds of small trees.

use tree::{Budget, Limits, Mem, TreePath};
use yaml::Value;

use crate::build;

fn built(files: &[(&str, &str)], dir: &str) -> Result<Vec<Value>, String> {
    let files = files.iter().map(|(path, text)| (*path, text.to_string()));
    let tree = Mem::from_files(files).unwrap();
    let dir = TreePath::parse(dir).unwrap();
    build(&tree, &dir, &Budget::default()).map_err(|error| error.to_string())
}

/// `Kind/namespace/name` of each object, in order.
fn names(files: &[(&str, &str)], dir: &str) -> Vec<String> {
    let text = |object: &Value, path: &[&str]| {
        object
            .pointer(path)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let name = |object: &Value| {
        let namespace = text(object, &["metadata", "namespace"]);
        format!(
            "{}/{namespace}/{}",
            text(object, &["kind"]),
            text(object, &["metadata", "name"])
        )
    };
    built(files, dir).unwrap().iter().map(name).collect()
}

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

#[test]
fn resources_accumulate_in_order() {
    let two = "---\n\n---\napiVersion: v1\nkind: Service\nmetadata: {name: s}\n---\n# nothing\n---\n\
               apiVersion: v1\nkind: Secret\nmetadata: {name: t}\n";
    let files = [
        ("app/kustomization.yaml", "resources: [two.yaml, ../base, a.yaml]"),
        ("app/two.yaml", two),
        ("app/a.yaml", MAP),
        ("base/kustomization.yml", "resources:\n- b.yaml\n"),
        (
            "base/b.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: x}\n",
        ),
    ];
    assert_eq!(
        names(&files, "app"),
        ["Service//s", "Secret//t", "ConfigMap/x/b", "ConfigMap//a"]
    );
}

#[test]
fn lists_are_taken_apart_behind_the_other_documents() {
    let list = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A, metadata: {name: i1}}\n\
                - {apiVersion: v1, kind: A, metadata: {name: i2}}\n---\n\
                apiVersion: v1\nkind: A\nmetadata: {name: after}\n";
    let files = [("kustomization.yaml", "resources: [l.yaml]"), ("l.yaml", list)];
    assert_eq!(names(&files, ""), ["A//after", "A//i1", "A//i2"]);
}

#[test]
fn a_namespace_moves_what_is_namespaced() {
    let all = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: old}\n---\n\
               apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\n---\n\
               apiVersion: v1\nkind: Namespace\nmetadata: {name: n}\n---\n\
               apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n";
    let files = [
        ("kustomization.yaml", "namespace: new\nresources: [all.yaml]"),
        ("all.yaml", all),
    ];
    let expected = [
        "ConfigMap/new/a",
        "ClusterRole//r",
        "Namespace//new",
        "Widget/new/w",
    ];
    assert_eq!(names(&files, ""), expected);
}

#[test]
fn subjects_follow_their_service_accounts() {
    let all = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: robot}\n---\n\
               apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: b}\nsubjects:\n\
               - {kind: ServiceAccount, name: robot}\n\
               - {kind: ServiceAccount, name: default, namespace: x}\n\
               - {kind: ServiceAccount, name: stranger, namespace: x}\n\
               - {kind: User, name: robot}\n";
    let files = [
        ("kustomization.yaml", "namespace: new\nresources: [all.yaml]"),
        ("all.yaml", all),
    ];
    let objects = built(&files, "").unwrap();
    let subjects = objects[1].get("subjects").and_then(Value::as_seq).unwrap();
    let namespaces: Vec<Option<&str>> = subjects
        .iter()
        .map(|subject| subject.get("namespace").and_then(Value::as_str))
        .collect();
    assert_eq!(namespaces, [Some("new"), Some("new"), Some("x"), None]);
}

#[test]
fn what_is_wrong_is_told_with_file_and_line() {
    let one = |text: &str| {
        built(
            &[
                ("k/kustomization.yaml", text),
                ("k/a.yaml", MAP),
                ("k/sub/a.yaml", MAP),
            ],
            "k",
        )
        .unwrap_err()
    };
    let cases = [
        (
            "resources: [a.yaml]\n\nimages:\n- name: x\n",
            "k/kustomization.yaml:3: the field images of a kustomization",
        ),
        (
            "resources: [a.yaml]\nfoo: 1\n",
            "k/kustomization.yaml:2: unknown field \"foo\"",
        ),
        (
            "resources: a.yaml\n",
            "k/kustomization.yaml:1: resources is a list of text, not",
        ),
        ("namespace: 1\n", "k/kustomization.yaml:1: namespace is text, not"),
        (
            "kind: Component\n",
            "k/kustomization.yaml:1: kind for Kustomization should be Kustomization",
        ),
        (
            "resources: [nope.yaml]\n",
            "k/kustomization.yaml:1: the resource \"nope.yaml\" is neither",
        ),
        ("resources: [sub]\n", "k/sub: has no kustomization.yaml"),
        (
            "resources: [a.yaml, a.yaml]\n",
            "k/a.yaml:1: may not add resource with an already registered id: ConfigMap.v1",
        ),
        (
            "resources: [../../x]\n",
            "k/kustomization.yaml:1: \"../../x\": leads outside",
        ),
        (
            "resources: [/etc]\n",
            "k/kustomization.yaml:1: \"/etc\": absolute",
        ),
        (
            "resources: [.]\n",
            "k/kustomization.yaml:1: cycle detected: k contains",
        ),
        (
            "resources: [..]\n",
            "k/kustomization.yaml:1: cycle detected: . contains",
        ),
        ("", "k/kustomization.yaml: is empty"),
        ("- a\n", "k/kustomization.yaml:1: a kustomization is a map"),
        ("a: [\n", "k/kustomization.yaml: line "),
    ];
    for (text, expected) in cases {
        let error = one(text);
        assert!(error.starts_with(expected), "{text:?}: {error}");
    }
}

#[test]
fn broken_objects_are_told_with_file_and_line() {
    let one = |text: &str| {
        let files = [("kustomization.yaml", "resources: [a.yaml]"), ("a.yaml", text)];
        built(&files, "").unwrap_err()
    };
    let cases = [
        ("\n\nfoo: 1\n", "a.yaml:3: missing kind"),
        ("kind: A\nmetadata: {name: a}\n", "a.yaml:1: missing apiVersion"),
        ("apiVersion: v1\nkind: A\n", "a.yaml:1: missing metadata"),
        (
            "apiVersion: v1\nkind: A\nmetadata: {name: ''}\n",
            "a.yaml:1: missing metadata.name",
        ),
        (
            "apiVersion: v1\nkind: A\nmetadata: {name: a}\nx: {y: [1, null]}\n",
            "a.yaml:1: empty item at [x y]",
        ),
        ("- 1\n", "a.yaml:1: an object is a map"),
        ("a: b: c\n", "a.yaml: line 1"),
    ];
    for (text, expected) in cases {
        let error = one(text);
        assert!(error.starts_with(expected), "{text:?}: {error}");
    }
}

#[test]
fn remote_resources_are_refused_without_their_credentials() {
    for entry in [
        "https://user:pass@example.com/x?token=1",
        "git@github.com:a/b.git",
        "github.com/a/b",
        "git::https://x/y",
    ] {
        let text = format!("resources: ['{entry}']");
        let error = built(&[("kustomization.yaml", &text)], "").unwrap_err();
        assert!(error.contains("remote resource"), "{error}");
        assert!(!error.contains("pass") && !error.contains("token"), "{error}");
    }
}

#[test]
fn namespaces_that_make_objects_equal_are_refused() {
    let all = "apiVersion: v1\nkind: A\nmetadata: {name: a, namespace: x}\n---\n\
               apiVersion: v1\nkind: A\nmetadata: {name: a, namespace: y}\n";
    let files = [
        ("kustomization.yaml", "namespace: new\nresources: [all.yaml]"),
        ("all.yaml", all),
    ];
    assert!(
        built(&files, "")
            .unwrap_err()
            .contains("namespace transformation produces ID conflict")
    );
}

#[test]
fn empty_fields_and_local_objects_leave_nothing() {
    let local = "apiVersion: v1\nkind: A\nmetadata:\n  name: a\n  annotations:\n    \
                 config.kubernetes.io/local-config: 'true'\n";
    let files = [
        (
            "kustomization.yaml",
            "resources: [a.yaml]\nimages: []\npatches:\n",
        ),
        ("a.yaml", local),
    ];
    assert_eq!(built(&files, "").unwrap(), []);
}

#[test]
fn deep_nesting_ends_with_the_limit() {
    let mut files: Vec<(String, String)> = Vec::new();
    for level in 0..60 {
        files.push((
            format!("d{level}/kustomization.yaml"),
            format!("resources: [../d{}]", level + 1),
        ));
    }
    let tree = Mem::from_files(files).unwrap();
    let limits = Limits {
        include_depth: 10,
        ..Limits::default()
    };
    let error = build(&tree, &TreePath::parse("d0").unwrap(), &Budget::new(limits)).unwrap_err();
    assert!(error.to_string().contains("10 nested includes"), "{error}");
}
