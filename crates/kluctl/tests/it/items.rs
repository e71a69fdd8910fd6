//! Settings of items other than their objects.

use kluctl::{Inclusion, ObjectSelector, Request};
use objects::rules::ConflictAction;
use yaml::Value;

use crate::support::{names, render_files};

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n";

#[test]
fn items_carry_their_deployment_settings() {
    let root = "ignoreForDiff: [{fieldPath: data.a, kind: X}]\nconflictResolution: [{manager: [a, 'b.*'], action: force-apply}]\n\
        deployments:\n- include: inner\n- deleteObjects: [{group: apps, kind: Deployment, name: x, namespace: ns}]\n  waitReadinessObjects: [{kind: Job, name: j}]\n";
    let inner = "ignoreForDiff: [{fieldPathRegex: '.*', name: n}]\nconflictResolution: [{fieldPath: spec, action: ignore}]\ndeployments: [{path: app, skipDeleteIfTags: true}]\n";
    let files = [
        ("deployment.yaml", root),
        ("inner/deployment.yaml", inner),
        ("inner/app/m.yaml", MAP),
    ];
    let rendered = render_files(&files, &Request::default()).unwrap();
    let [app, pure] = rendered.items.as_slice() else {
        panic!("{} items", rendered.items.len());
    };
    let rules = &app.rules;
    assert_eq!(
        rules.ignore_for_diff[0].path_patterns,
        [".*"],
        "those of the project come first"
    );
    assert_eq!(rules.ignore_for_diff[1].objects.kind.as_deref(), Some("X"));
    assert_eq!(rules.conflict_resolution[0].action, ConflictAction::Ignore);
    assert_eq!(rules.conflict_resolution[1].managers, ["a", "b.*"]);
    let annotation = ["metadata", "annotations", "kluctl.io/skip-delete-if-tags"];
    assert_eq!(app.objects[0].pointer(&annotation), Some(&Value::from("true")));
    let selector = |group: Option<&str>, kind: &str, name: &str, namespace: Option<&str>| ObjectSelector {
        group: group.map(str::to_owned),
        kind: Some(kind.to_owned()),
        name: name.to_owned(),
        namespace: namespace.map(str::to_owned),
    };
    assert_eq!(
        pure.delete_objects,
        [selector(Some("apps"), "Deployment", "x", Some("ns"))]
    );
    assert_eq!(pure.wait_readiness_objects, [selector(None, "Job", "j", None)]);
}

#[test]
fn common_annotations_are_inherited_by_list_items() {
    let files = [
        (
            "deployment.yaml",
            "commonAnnotations: {a: root, b: root}\ncommonLabels: {l: x}\ndeployments: [{include: inner}]",
        ),
        (
            "inner/deployment.yaml",
            "commonAnnotations: {b: inner}\ndeployments: [{path: app}]",
        ),
        ("inner/app/m.yaml", MAP),
        (
            "inner/app/ignored.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: i, annotations: {kluctl.io/ignore: 'true'}}\n",
        ),
    ];
    let rendered = render_files(&files, &Request::default()).unwrap();
    assert_eq!(names(&rendered), ["ConfigMap/-/m"]);
    let found = |name: &str| {
        let object = rendered.objects().next().unwrap();
        object
            .pointer(&["metadata", "annotations", name])
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    assert_eq!(
        (found("a").as_deref(), found("b").as_deref()),
        (Some("root"), Some("inner"))
    );
}

#[test]
fn recursive_items_include_subdirectories() {
    let files = [
        ("deployment.yaml", "deployments: [{path: app, recursive: true}]"),
        ("app/z.yaml", MAP),
        ("app/a/b/m.yml", &MAP.replace("name: m", "name: deep")),
        ("app/a/note.txt", "x"),
    ];
    let rendered = render_files(&files, &Request::default()).unwrap();
    assert_eq!(names(&rendered), ["ConfigMap/-/deep", "ConfigMap/-/m"]);
    for (file, expected) in [
        ("app/kustomization.yaml", "already exists in app"),
        (
            "app/a/kustomization.yml",
            "nested kustomization.yaml/yml already exists in app/a",
        ),
    ] {
        let mut files = files.to_vec();
        files.push((file, "resources: []"));
        let error = render_files(&files, &Request::default()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn excluded_items_are_not_rendered() {
    let files = [
        (
            "deployment.yaml",
            "deployments:\n- path: a\n- path: b\n- path: a\n  tags: [again]\n- path: c\n  onlyRender: true\n- path: d\n  alwaysDeploy: true\n",
        ),
        ("a/m.yaml", MAP),
        ("b/m.yaml", "{{ broken }}"),
        ("c/m.yaml", MAP),
        ("d/m.yaml", MAP),
    ];
    let request = Request {
        inclusion: Inclusion {
            include_tags: vec!["again".to_owned()],
            ..Inclusion::default()
        },
        keep_files: true,
        discriminator: Some("mine".to_owned()),
        ..Request::default()
    };
    let rendered = render_files(&files, &request).unwrap();
    let dirs: Vec<String> = rendered
        .items
        .iter()
        .map(|item| item.dir.as_ref().unwrap().to_string())
        .collect();
    assert_eq!(dirs, ["a", "c", "d"]);
    assert_eq!(rendered.objects().count(), 2);
    assert_eq!(rendered.target.discriminator.as_deref(), Some("mine"));
    // The number of an item doesn't depend on the selection.
    let files = rendered.files.unwrap();
    assert!(tree::Tree::is_file(
        &*files,
        &tree::TreePath::parse("0/a-1/m.yaml").unwrap()
    ));
}
