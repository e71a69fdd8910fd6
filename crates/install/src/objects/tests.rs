//! Tests of the objects of an installation.

use std::collections::BTreeSet;

use super::*;
use crate::LogLevel;

fn names(objects: &[Value], kind: &str) -> BTreeSet<String> {
    let found = objects.iter().filter(|object| edit::is_kind(kind)(object));
    found.map(name).collect()
}

fn name(object: &Value) -> String {
    let name = object.pointer(&["metadata", "name"]).and_then(Value::as_str);
    name.unwrap().to_owned()
}

fn find<'a>(objects: &'a [Value], kind: &str, wanted: &str) -> &'a Value {
    let mut found = objects
        .iter()
        .filter(|object| edit::is_kind(kind)(object) && name(object) == wanted);
    found.next().unwrap_or_else(|| panic!("no {kind} {wanted}"))
}

fn container(deployment: &Value) -> &Value {
    let containers = deployment.pointer(&["spec", "template", "spec", "containers"]);
    &containers.and_then(Value::as_seq).unwrap()[0]
}

fn args(deployment: &Value) -> Vec<&str> {
    let args = container(deployment).get("args").and_then(Value::as_seq);
    args.unwrap().iter().filter_map(Value::as_str).collect()
}

fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

#[test]
fn all_objects_carry_the_labels_by_which_flux_finds_them() {
    let options = Options {
        version: "v9.8.7".to_owned(),
        namespace: "gitops".to_owned(),
        ..Options::default()
    };
    let all = objects(&options).unwrap();
    assert_eq!(all[0].get("kind").and_then(Value::as_str), Some("Namespace"));
    for object in &all {
        let labels = object.pointer(&["metadata", "labels"]).unwrap();
        assert_eq!(text(labels, &[PART_OF.0]), "flux", "{object:?}");
        assert_eq!(text(labels, &[INSTANCE]), "gitops");
        assert_eq!(text(labels, &[VERSION_LABEL]), "v9.8.7");
    }
    for definition in names(&all, "CustomResourceDefinition") {
        let definition = find(&all, "CustomResourceDefinition", &definition);
        assert!(text(definition, &["metadata", "labels", COMPONENT]).ends_with("-controller"));
    }
}

#[test]
fn unselected_controllers_leave_nothing_behind() {
    let options = Options {
        components: vec!["source-controller".to_owned(), "kustomize-controller".to_owned()],
        network_policy: false,
        ..Options::default()
    };
    let all = objects(&options).unwrap();
    let selected = BTreeSet::from(["kustomize-controller".to_owned(), "source-controller".to_owned()]);
    assert_eq!(names(&all, "Deployment"), selected);
    let mut accounts = selected;
    accounts.insert("default".to_owned());
    assert_eq!(names(&all, "ServiceAccount"), accounts);
    assert_eq!(names(&all, "NetworkPolicy"), BTreeSet::new());
    assert_eq!(
        names(&all, "Namespace"),
        BTreeSet::from(["flux-system".to_owned()])
    );
    let definitions = names(&all, "CustomResourceDefinition");
    assert!(
        definitions
            .iter()
            .all(|name| name.ends_with(".source.toolkit.fluxcd.io")
                || name == "kustomizations.kustomize.toolkit.fluxcd.io")
    );
    // There is nobody to post events to.
    let args = args(find(&all, "Deployment", "kustomize-controller"));
    assert_eq!(args[0], "--events-addr=");
}

#[test]
fn options_change_the_deployments() {
    let options = Options {
        namespace: "gitops".to_owned(),
        registry: "registry.example.com:5000/weir".to_owned(),
        version: "v1.2.3".to_owned(),
        image_pull_secret: Some("pull".to_owned()),
        watch_all_namespaces: false,
        log_level: LogLevel::Debug,
        cluster_domain: "corp.internal".to_owned(),
        toleration_keys: vec!["dedicated".to_owned()],
        ..Options::default()
    };
    let all = objects(&options).unwrap();
    let deployment = find(&all, "Deployment", "source-controller");
    let image = text(container(deployment), &["image"]);
    assert_eq!(image, "registry.example.com:5000/weir/source-controller:v1.2.3");
    let args = args(deployment);
    assert_eq!(
        args[0],
        "--events-addr=http://notification-controller.$(RUNTIME_NAMESPACE).svc.corp.internal./"
    );
    assert_eq!(args[2], "--watch-all-namespaces=false");
    assert_eq!(args[3], "--log-level=debug");
    assert!(args.contains(&"--storage-adv-addr=source-controller.$(RUNTIME_NAMESPACE).svc.corp.internal."));
    let pod = deployment.pointer(&["spec", "template", "spec"]).unwrap();
    assert_eq!(
        yaml::print::json(pod.get("imagePullSecrets").unwrap()),
        r#"[{"name":"pull"}]"#
    );
    assert_eq!(
        yaml::print::json(pod.get("tolerations").unwrap()),
        r#"[{"key":"dedicated","operator":"Exists"}]"#
    );
    // The namespace is in names and in subjects; other namespaces stay.
    let text = install(&options).unwrap();
    assert!(!text.contains("flux-system"), "the old namespace is left");
    assert!(names(&all, "ClusterRole").contains("crd-controller-source-gitops"));
    assert!(names(&all, "Namespace").contains("kluctl-results"));
    assert!(text.starts_with(
        "---\n# This manifest was generated by weir. DO NOT EDIT.\n# Weir Version: v1.2.3\n# Components: "
    ));
}

#[test]
fn admin_decides_who_is_bound_to_cluster_admin() {
    for (admin, bindings) in [
        (Admin::Nobody, vec![]),
        (
            Admin::Namespace,
            vec![("platform-admin-flux-system", vec!["default"])],
        ),
        (
            Admin::Everybody,
            vec![(
                "cluster-reconciler-kluctl-flux-system",
                vec!["kluctl-controller", "kustomize-controller"],
            )],
        ),
    ] {
        let all = objects(&Options {
            admin,
            ..Options::default()
        })
        .unwrap();
        let found: Vec<_> = all
            .iter()
            .filter(|object| text(object, &["roleRef", "name"]) == "cluster-admin")
            .map(|object| {
                let subjects = object.get("subjects").and_then(Value::as_seq).unwrap();
                (
                    name(object),
                    subjects
                        .iter()
                        .map(|subject| text(subject, &["name"]).to_owned())
                        .collect::<Vec<_>>(),
                )
            })
            .collect();
        let expected: Vec<_> = bindings
            .into_iter()
            .map(|(name, subjects)| {
                (
                    name.to_owned(),
                    subjects.into_iter().map(str::to_owned).collect::<Vec<_>>(),
                )
            })
            .collect();
        assert_eq!(found, expected, "{admin:?}");
        // Its token would be in each Pod that names no account.
        if admin == Admin::Namespace {
            let account = find(&all, "ServiceAccount", "default");
            let mounts = account.get("automountServiceAccountToken");
            assert_eq!(mounts.and_then(Value::as_bool), Some(false));
        }
        let args = args(find(&all, "Deployment", "kustomize-controller"));
        assert_eq!(
            args.contains(&"--default-service-account=default"),
            admin != Admin::Everybody
        );
    }
}

#[test]
fn options_refuse_values_that_break_the_manifests() {
    let refused = |change: fn(&mut Options)| {
        let mut options = Options::default();
        change(&mut options);
        objects(&options).unwrap_err().to_string()
    };
    let error = refused(|options| options.components = vec!["image-reflector-controller".to_owned()]);
    assert!(
        error.starts_with("unknown component 'image-reflector-controller': there are "),
        "{error}"
    );
    assert!(refused(|options| options.components.clear()).starts_with("no component is selected"));
    for change in [
        (|options| options.namespace = "Flux System".to_owned()) as fn(&mut Options),
        |options| options.cluster_domain = "a..b".to_owned(),
        |options| options.registry = "a b".to_owned(),
        |options| options.version = String::new(),
        |options| options.toleration_keys = vec!["a\nb".to_owned()],
        |options| options.image_pull_secret = Some("-".to_owned()),
    ] {
        assert!(refused(change).contains("is invalid"));
    }
}
