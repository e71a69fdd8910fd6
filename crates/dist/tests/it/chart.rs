//! The chart, rendered by our own engine.

use std::{collections::BTreeMap, fs};

use helm::{Options, functions::Moment, values::Sources};
use install::{Admin, LogLevel};
use tree::{Budget, Mem, TreePath};
use yaml::Value;

use crate::support::{TestRelease, root, unpack};

type Objects = BTreeMap<String, Value>;

fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn by_name(objects: impl IntoIterator<Item = Value>) -> Objects {
    let mut found = Objects::new();
    for object in objects {
        let part = |path: &[&str]| text(&object, path).to_owned();
        let name = [
            part(&["kind"]),
            part(&["metadata", "namespace"]),
            part(&["metadata", "name"]),
        ]
        .join("/");
        assert!(found.insert(name.clone(), object).is_none(), "{name} is twice");
    }
    found
}

/// Renders the chart of a release into the namespace `flux-system`. The annotation that keeps definitions is removed.
fn render(work: &TestRelease, values: &str) -> Result<Objects, helm::Error> {
    let name = format!("weir-{}.tgz", env!("CARGO_PKG_VERSION"));
    let packed = fs::read(work.options.out.join(name)).unwrap();
    let files = unpack(&packed);
    let files = files
        .iter()
        .filter_map(|(path, content)| Some((path.as_str(), content.clone()?)));
    let chart = Mem::from_files(files).unwrap();
    let environment = Moment::new(1_700_000_000, 0, [7; 32]);
    let options = Options {
        namespace: "flux-system".to_owned(),
        values: Sources {
            files: vec![("values.yaml".to_owned(), values.to_owned().into())],
            ..Sources::default()
        },
        ..Options::new("weir", &environment)
    };
    let budget = Budget::default();
    let rendered = helm::template(&chart, &TreePath::parse("weir").unwrap(), &options, &budget)?;
    let documents = yaml::read::goyaml_all(rendered.to_yaml(), &budget).unwrap();
    let mut objects = by_name(documents.into_iter().map(|document| document.value));
    for (name, object) in &mut objects {
        if name.starts_with("CustomResourceDefinition/") {
            let metadata = object.get_mut("metadata").and_then(Value::as_map_mut).unwrap();
            let annotations = metadata.get_or_insert_map("annotations").unwrap();
            let policy = annotations.remove("helm.sh/resource-policy");
            assert_eq!(policy, Some(Value::from("keep")), "{name}");
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
    }
    Ok(objects)
}

#[track_caller]
fn assert_same(found: &Objects, expected: &Objects) {
    let names = |objects: &Objects| objects.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(found), names(expected));
    for (name, object) in expected {
        assert_eq!(
            yaml::print::goyaml(&found[name]),
            yaml::print::goyaml(object),
            "{name}"
        );
    }
}

fn installed(options: &install::Options) -> Objects {
    by_name(install::objects(options).unwrap())
}

fn released() -> install::Options {
    install::Options {
        registry: "registry.example.com/weir".to_owned(),
        ..install::Options::default()
    }
}

#[test]
fn default_values_render_the_manifests_of_the_release() {
    let work = TestRelease::new();
    let files = work.build();
    let budget = Budget::default();
    let manifests = std::str::from_utf8(&files["install.yaml"]).unwrap();
    let documents = yaml::read::goyaml_all(manifests, &budget).unwrap();
    let mut expected = by_name(documents.into_iter().map(|document| document.value));
    assert_same(&render(&work, "createNamespace: true\n").unwrap(), &expected);
    // Helm creates the namespace itself.
    expected.remove("Namespace//flux-system").unwrap();
    assert_same(&render(&work, "").unwrap(), &expected);
}

#[test]
fn values_have_the_effects_of_the_options() {
    let work = TestRelease::new();
    work.build();
    let namespace = "createNamespace: true\n";
    for (values, options) in [
        (
            "admin: none\nnetworkPolicy: false\n",
            install::Options {
                admin: Admin::Nobody,
                network_policy: false,
                ..released()
            },
        ),
        (
            "admin: cluster\nlogLevel: debug\nwatchAllNamespaces: false\nclusterDomain: example.org\n",
            install::Options {
                admin: Admin::Everybody,
                log_level: LogLevel::Debug,
                watch_all_namespaces: false,
                cluster_domain: "example.org".to_owned(),
                ..released()
            },
        ),
        (
            "components: [source-controller, kluctl-controller]\nregistry: r.example.com/x\nversion: v9.9.9\nimagePullSecret: pull\n\
             tolerations:\n- {key: gpu, operator: Exists}\n",
            install::Options {
                components: vec!["source-controller".to_owned(), "kluctl-controller".to_owned()],
                registry: "r.example.com/x".to_owned(),
                version: "v9.9.9".to_owned(),
                image_pull_secret: Some("pull".to_owned()),
                toleration_keys: vec!["gpu".to_owned()],
                ..released()
            },
        ),
    ] {
        let found = render(&work, &format!("{namespace}{values}")).unwrap();
        assert_same(&found, &installed(&options));
    }
    let found = render(&work, "crds: false\nnodeSelector: {disk: ssd}\n").unwrap();
    assert!(
        found
            .keys()
            .all(|name| !name.starts_with("CustomResourceDefinition/"))
    );
    for name in install::available() {
        let deployment = &found[&format!("Deployment/flux-system/{name}")];
        for (label, value) in [("disk", "ssd"), ("kubernetes.io/os", "linux")] {
            let path = ["spec", "template", "spec", "nodeSelector", label];
            assert_eq!(text(deployment, &path), value, "{name}");
        }
    }
}

#[test]
fn wrong_values_are_refused() {
    let work = TestRelease::new();
    work.build();
    for (values, part) in [
        ("admin: everybody\n", "admin"),
        ("components: [helm-controller]\n", "components"),
        ("version: \"1.0\"\n", "version"),
        ("registry: \"a b\"\n", "registry"),
        ("replicas: 2\n", "replicas"),
    ] {
        let error = render(&work, values).unwrap_err().to_string();
        assert!(error.contains(part), "{values}: {error}");
    }
}

#[test]
fn values_and_schema_name_every_controller() {
    let budget = Budget::default();
    let read = |name: &str| fs::read_to_string(root().join("deploy/chart").join(name)).unwrap();
    let values = yaml::read::goyaml_all(read("values.yaml"), &budget).unwrap();
    let strings = |value: &Value| {
        let items = value.as_seq().unwrap().iter();
        items
            .map(|item| item.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let components = strings(values[0].value.get("components").unwrap());
    assert_eq!(components, install::available());
    let schema = yaml::read::goyaml_all(read("values.schema.json"), &budget).unwrap();
    let choices = ["properties", "components", "items", "enum"];
    assert_eq!(strings(schema[0].value.pointer(&choices).unwrap()), components);
}
