//! Rendering of whole projects.

use kluctl::{Contexts, Rendered, Request, Scope, fix_namespaces};
use tree::TreePath;
use yaml::{Map, Value};

use crate::support::{names, render_files};

fn config_map(name: &str, text: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  v: \"{text}\"\n")
}

fn request(target: &str, args: &[(&str, Value)]) -> Request {
    let args: Map = args
        .iter()
        .map(|(key, value)| ((*key).to_owned(), value.clone()))
        .collect();
    let target = (!target.is_empty()).then(|| target.to_owned());
    Request {
        target,
        args,
        ..Request::default()
    }
}

/// Returns `data.v` of each object.
fn values(rendered: &Rendered) -> Vec<&str> {
    let value = |object| Value::pointer(object, &["data", "v"]).and_then(Value::as_str);
    rendered.objects().filter_map(value).collect()
}

fn label<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object
        .pointer(&["metadata", "labels", name])
        .and_then(Value::as_str)
}

const TARGETS: &str = "
discriminator: 'd-{{ target.name }}'
args:
  - name: size
    default: 1
  - name: who
targets:
  - name: a
    context: ctx-{{ args.env }}
    args: {env: '{{ target.name }}x', who: me}
  - name: b
    discriminator: own
    args: {who: '{{ args.env }}'}
  - name: c
";

#[test]
fn targets_may_refer_to_themselves_and_arguments_merge() {
    let map = config_map(
        "m",
        "{{ target.name }} {{ args.env | default('-') }} {{ args.who }} {{ args.size + 1 }}",
    );
    let files = [
        (".kluctl.yaml", TARGETS),
        ("deployment.yaml", "deployments: [{path: app}]"),
        ("app/m.yaml", &map),
    ];
    let rendered = render_files(&files, &request("a", &[("size", Value::from(4))])).unwrap();
    assert_eq!(values(&rendered), ["a ax me 5"]);
    assert_eq!(rendered.target.discriminator.as_deref(), Some("d-a"));
    // Results and templates see the arguments of the target itself.
    assert_ne!(rendered.target.args.get("size"), Some(&Value::from(4)));
    assert_eq!(rendered.target.context, None);
    // The third target lacks an argument: that is an error only if it is chosen.
    assert_eq!(
        rendered.warnings,
        [
            "Failed to load target b: failed rendering target b: File \"<template>\", line 1, in \
        top-level template code\nUndefinedError: 'dict object' has no attribute 'env'",
            "Failed to load target c: required argument who not set"
        ]
    );
    let args = [("env", Value::from("prod")), ("who", Value::from("you"))];
    let rendered = render_files(&files, &request("b", &args)).unwrap();
    assert_eq!(values(&rendered), ["b prod you 2"]);
    assert_eq!(rendered.target.discriminator.as_deref(), Some("own"));
}

#[test]
fn target_is_selected_by_name() {
    let files = [(".kluctl.yaml", TARGETS), ("deployment.yaml", "deployments: []")];
    let error = |target: &str| {
        render_files(&files, &request(target, &[]))
            .unwrap_err()
            .to_string()
    };
    assert!(error("").starts_with("a target must be explicitly selected"));
    assert_eq!(error("nope"), "target nope not existent in kluctl project config");
    let missing =
        "target c not existent in kluctl project config: failed to load it: required argument who not set";
    assert_eq!(error("c"), missing);
    let rendered = render_files(&[("deployment.yaml", "deployments: []")], &Request::default()).unwrap();
    assert_eq!(
        (rendered.target.name.as_str(), rendered.target.discriminator),
        ("", None)
    );
    let unknown = render_files(&[("deployment.yaml", "")], &request("x", &[])).unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "target x not existent in kluctl project config"
    );
}

#[test]
fn context_override_wins_over_target_and_current_context() {
    let map = config_map("m", "{{ target.context }}");
    let contexts = || Contexts {
        current: Some("now".to_owned()),
        names: vec!["ctx-ax".to_owned(), "other".to_owned()],
    };
    let files = [
        (".kluctl.yaml", TARGETS),
        ("deployment.yaml", "deployments: [{path: app}]"),
        ("app/m.yaml", &map),
    ];
    let context = |target: &str, over: Option<&str>| {
        let over = over.map(str::to_owned);
        let args = [("who", Value::from("x")), ("env", Value::from(""))];
        let args = if target == "a" { &args[..1] } else { &args[..] };
        let request = Request {
            context_override: over,
            contexts: contexts(),
            ..request(target, args)
        };
        let rendered = render_files(&files, &request).map_err(|error| error.to_string())?;
        assert_eq!(
            values(&rendered),
            [rendered.target.context.as_deref().unwrap_or_default()]
        );
        Ok::<_, String>(rendered.target.context.unwrap_or_default())
    };
    assert_eq!(context("a", None).unwrap(), "ctx-ax");
    assert_eq!(context("a", Some("other")).unwrap(), "other");
    assert_eq!(context("c", None).unwrap(), "now");
    assert_eq!(
        context("a", Some("gone")).unwrap_err(),
        "context \"gone\" does not exist"
    );
}

#[test]
fn target_name_override_applies_after_target_rendering() {
    let map = config_map("m", "{{ target.name }} {{ target.discriminator }}");
    let files = [
        (".kluctl.yaml", TARGETS),
        ("deployment.yaml", "deployments: [{path: app}]"),
        ("app/m.yaml", &map),
    ];
    let request = Request {
        target_name_override: Some("z".to_owned()),
        ..request("a", &[])
    };
    let rendered = render_files(&files, &request).unwrap();
    assert_eq!(
        (values(&rendered), rendered.target.name.as_str()),
        (vec!["z d-a"], "z")
    );
}

#[test]
fn nested_projects_inherit_settings() {
    let map = config_map("m", "{{ one }}{{ two | default('-') }}");
    let files = [
        (
            "deployment.yaml",
            "vars: [{values: {one: 1}}]\ncommonLabels: {a: root, b: root}\noverrideNamespace: outer\ntags: [top]\n\
             deployments:\n- path: x\n- include: sub\n  tags: [t1, t2]\n  barrier: true\n  vars: [{values: {two: 2}}]\n- path: x\n",
        ),
        ("x/m.yaml", &map),
        (
            "sub/deployment.yaml",
            "commonLabels: {b: leaf}\noverrideNamespace: inner\ntags: [t2, own]\nvars: [{values: {one: '{{ two }}'}}]\n\
             deployments:\n- path: why\n  tags: [y1, top]\n- path: ../x\n",
        ),
        ("sub/why/m.yaml", &map),
    ];
    let rendered = render_files(&files, &Request::default()).unwrap();
    let outline: Vec<_> = rendered
        .items
        .iter()
        .map(|item| {
            (
                item.dir.as_ref().map(TreePath::to_string),
                item.tags.join(" "),
                item.barrier,
            )
        })
        .collect();
    let dir = |dir: &str| Some(dir.to_owned());
    assert_eq!(
        outline,
        [
            (dir("x"), "top x".to_owned(), false),
            (dir("sub/why"), "t2 own t1 top y1".to_owned(), false),
            (dir("x"), "t2 own t1 top x".to_owned(), false),
            (None, "top t1 t2".to_owned(), true),
            (dir("x"), "top x".to_owned(), false),
        ]
    );
    assert_eq!(values(&rendered), ["1-", "22", "22", "1-"]);
    let expected = [
        "ConfigMap/outer/m",
        "ConfigMap/inner/m",
        "ConfigMap/inner/m",
        "ConfigMap/outer/m",
    ];
    assert_eq!(names(&rendered), expected);
    let y = rendered.objects().nth(1).unwrap();
    assert_eq!(
        (label(y, "a"), label(y, "b"), label(y, "kluctl.io/tag-3")),
        (Some("root"), Some("leaf"), Some("top"))
    );
    let annotation = ["metadata", "annotations", "kluctl.io/deployment-item-dir"];
    assert_eq!(y.pointer(&annotation).and_then(Value::as_str), Some("sub/why"));
}

#[test]
fn when_disables_items_and_projects() {
    // A disabled item may name missing directories.
    let map = config_map("m", "x");
    let files = [
        (
            "deployment.yaml",
            "vars: [{values: {live: true}}]\ndeployments:\n- path: a\n  when: args.size > 1\n- include: sub\n- include: gone\n  \
             when: \"false\"\n- path: gone\n  when: \"false\"\n- path: b\n  when: live\n",
        ),
        (".kluctl.yaml", "args: [{name: size, default: 1}]"),
        ("a/m.yaml", &map),
        ("b/m.yaml", &map),
        (
            "sub/deployment.yaml",
            "when: not live\ndeployments: [{include: gone}]",
        ),
    ];
    let dirs = |args: &[(&str, Value)]| {
        let rendered = render_files(&files, &request("", args)).unwrap();
        rendered
            .items
            .iter()
            .map(|item| item.dir.as_ref().unwrap().to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(dirs(&[]), ["b"]);
    assert_eq!(dirs(&[("size", Value::from(2))]), ["a", "b"]);
}

#[test]
fn vars_load_from_values_and_files() {
    let map = config_map(
        "m",
        "{{ a }} {{ b.c }} {{ b.d }} {{ nested.deep.k }} {{ docs | length }} {{ nn }}",
    );
    let files = [
        (
            "deployment.yaml",
            "vars:\n- values: {a: 1, b: {c: 1, d: 1}}\n- file: vars/v.yaml\n- file: missing.yaml\n  ignoreMissing: true\n\
             - file: ./k.yml\n  targetPath: nested.deep\n- values: {a: 9, nn: 1}\n  noOverride: true\n\
             - values: {a: 8}\n  when: a > 5\n- file: docs.yaml\n  multidoc: true\n  targetPath: docs\ndeployments: [{path: app}]",
        ),
        ("vars/v.yaml", "b: {c: {{ a + 1 }}}\n"),
        ("k.yml", "k: kk"),
        ("docs.yaml", "a: 1\n---\nb: 2\n---\n"),
        ("app/m.yaml", &map),
    ];
    let rendered = render_files(&files, &Request::default()).unwrap();
    assert_eq!(values(&rendered), ["1 2 1 kk 2 1"]);
}

#[test]
fn items_without_a_kustomization_get_one() {
    let map = |name: &str| config_map(name, "x");
    let (a, b, c) = (map("a"), map("b"), map("c"));
    let files = [
        (
            "deployment.yaml",
            "overrideNamespace: over\ndeployments:\n- path: own\n- path: keeps\n- path: made\n",
        ),
        (
            "own/kustomization.yaml",
            "metadata: {annotations: {kluctl.io/barrier: 'true'}}\nresources: [a.yaml]\n",
        ),
        ("own/a.yaml", &a),
        ("own/b.yaml", &b),
        (
            "keeps/kustomization.yml",
            "{namespace: mine, resources: [a.yaml, ../own],\n metadata: {annotations: \
          {kluctl.io/wait-readiness: 'true'}}}",
        ),
        ("keeps/a.yaml", &c),
        ("made/b.YML", &b),
        ("made/a.yaml", &a),
        ("made/readme.txt", "{{ text }}"),
        ("made/.templateignore", "*.txt\n"),
        ("made/sub/c.yaml", &c),
    ];
    let rendered = render_files(&files, &Request::default()).unwrap();
    let expected = [
        "ConfigMap/over/a",
        "ConfigMap/mine/c",
        "ConfigMap/mine/a",
        "ConfigMap/over/a",
        "ConfigMap/over/b",
    ];
    assert_eq!(names(&rendered), expected);
    let flags: Vec<_> = rendered
        .items
        .iter()
        .map(|item| (item.barrier, item.wait_readiness))
        .collect();
    assert_eq!(flags, [(true, false), (false, true), (false, false)]);
}

#[test]
fn ignored_files_and_empty_objects_are_skipped() {
    let raw = config_map("raw", "{{ .Values.x }}");
    let ignored = "apiVersion: v1\nkind: A\nmetadata: {name: i, annotations: {kluctl.io/ignore: 'true'}}\n";
    let files = [
        ("deployment.yaml", "deployments: [{path: app}]"),
        (".templateignore", "*.raw.yaml\n!app/back.raw.yaml\n"),
        ("app/a.raw.yaml", &raw),
        ("app/back.raw.yaml", &config_map("back", "{{ 1 + 1 }}")),
        ("app/i.yaml", ignored),
        ("app/chart/Chart.yaml", "name: {{ not rendered"),
        ("app/chart/templates/x.yaml", "{{ not rendered"),
    ];
    let rendered = render_files(&files, &Request::default()).unwrap();
    assert_eq!(values(&rendered), ["{{ .Values.x }}", "2"]);
}

#[test]
fn project_without_deployment_yaml_deploys_its_directory() {
    let a = config_map("a", "x");
    let files = [("p/a.yaml", a.as_str()), ("p/notes.txt", "")];
    let request = Request {
        project_dir: TreePath::parse("p").unwrap(),
        ..Request::default()
    };
    let rendered = render_files(&files, &request).unwrap();
    assert_eq!(names(&rendered), ["ConfigMap/-/a"]);
    assert!(rendered.items[0].tags.is_empty());
}

#[test]
fn subdirectory_projects_may_include_siblings() {
    let map = config_map("m", "{% include 'shared.j2' %}{% include '../../lib/x.j2' %}");
    let files = [
        ("p/deployment.yaml", "deployments: [{include: ../q}]"),
        ("p/shared.j2", "s"),
        ("q/deployment.yaml", "deployments: [{path: app}]"),
        ("q/app/m.yaml", &map),
        ("lib/x.j2", "x"),
    ];
    let request = Request {
        project_dir: TreePath::parse("p").unwrap(),
        ..Request::default()
    };
    let error = render_files(&files, &request).unwrap_err().to_string();
    assert!(error.contains("template ../../lib/x.j2 not found"), "{error}");
}

#[test]
fn namespaces_follow_the_scope_of_kinds() {
    let crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: ws.example.com}\n\
               spec: {group: example.com, scope: Cluster, names: {kind: W}}\n";
    let all = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: none}\n---\n\
               apiVersion: v1\nkind: ConfigMap\nmetadata: {name: has, namespace: mine}\n---\n\
               apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r, namespace: wrong}\n---\n\
               apiVersion: example.com/v1\nkind: W\nmetadata: {name: w, namespace: wrong}\n---\n\
               apiVersion: example.com/v1\nkind: Unknown\nmetadata: {name: u}\n";
    let files = [
        ("deployment.yaml", "deployments: [{path: a}]"),
        ("a/a.yaml", crd),
        ("a/b.yaml", all),
    ];
    let mut rendered = render_files(&files, &Request::default()).unwrap();
    let scope = |group: &str, kind: &str| match (group, kind) {
        ("", "ConfigMap") => Some(Scope::Namespaced),
        ("rbac.authorization.k8s.io" | "apiextensions.k8s.io", _) => Some(Scope::Cluster),
        _ => None,
    };
    fix_namespaces(&mut rendered, &scope, "default");
    let expected = [
        "CustomResourceDefinition/-/ws.example.com",
        "ConfigMap/default/none",
        "ConfigMap/mine/has",
        "ClusterRole/-/r",
        "W/-/w",
        "Unknown/-/u",
    ];
    assert_eq!(names(&rendered), expected);
}

#[test]
fn objects_hash_depends_on_content_and_order_only() {
    let render = |first: &str, second: &str| {
        let files = [
            ("deployment.yaml", "deployments: [{path: a}]"),
            ("a/1.yaml", first),
            ("a/2.yaml", second),
        ];
        kluctl::objects_hash(render_files(&files, &Request::default()).unwrap().objects())
    };
    let (a, b) = (
        "apiVersion: v1\nkind: A\nmetadata: {name: a}\n",
        "apiVersion: v1\nkind: A\nmetadata: {name: b}\n",
    );
    let same = "kind: A\napiVersion: v1\nmetadata:\n  name: a # a\n";
    assert_eq!(render(a, b), render(same, b));
    assert_ne!(render(a, b), render(b, a));
    assert_eq!(render(a, b).len(), 64);
}
