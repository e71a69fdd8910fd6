//! The example project, for both of its targets.

use std::{fmt::Write as _, fs, sync::Arc};

use kluctl::{Contexts, Rendered, Request, render};
use tree::{Budget, TreePath};
use yaml::Value;

use crate::support::{name, read_dir, workspace};

fn render_shop(target: &str) -> Rendered {
    let request = Request {
        target: Some(target.to_owned()),
        contexts: Contexts {
            current: None,
            names: vec!["kind-kind".to_owned()],
        },
        ..Request::default()
    };
    let tree = read_dir(&workspace().join("examples/shop"));
    render(Arc::new(tree), &request, &Budget::default()).unwrap()
}

/// Compares items and objects with a snapshot. `UPDATE_SNAPSHOTS=1` writes it instead.
fn check(target: &str) {
    let rendered = render_shop(target);
    let mut text = String::new();
    for item in &rendered.items {
        let dir = item.dir.as_ref().map_or("-".to_owned(), TreePath::to_string);
        let _ = write!(text, "{dir} [{}]", item.tags.join(" "));
        for (flag, name) in [(item.barrier, "barrier"), (item.wait_readiness, "wait-readiness")] {
            let _ = write!(text, "{}", if flag { format!(" {name}") } else { String::new() });
        }
        text.push('\n');
        for object in &item.objects {
            let _ = writeln!(text, "  {}", name(object));
        }
    }
    let file = workspace().join(format!("crates/kluctl/tests/it/snapshots/shop-{target}.txt"));
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(&file, &text).unwrap();
    }
    assert_eq!(
        text,
        fs::read_to_string(&file).unwrap_or_default(),
        "see {}",
        file.display()
    );
}

#[test]
fn shop_renders_for_target_test() {
    check("test");
}

#[test]
fn shop_renders_for_target_prod() {
    check("prod");
}

fn find<'a>(rendered: &'a Rendered, wanted: &str) -> &'a Value {
    rendered.objects().find(|object| name(object) == wanted).unwrap()
}

#[test]
fn shop_objects_are_templated_and_labelled() {
    let (test, prod) = (render_shop("test"), render_shop("prod"));
    assert_eq!(test.target.context.as_deref(), Some("kind-kind"));
    assert_eq!(test.target.discriminator.as_deref(), Some("shop-test"));
    assert!(test.warnings.is_empty(), "{:?}", test.warnings);
    for (rendered, namespace, replicas, image) in [
        (
            &test,
            "shop-test",
            1,
            "registry.example.com/shop/frontend:1.5.0-rc.1",
        ),
        (&prod, "shop-prod", 3, "registry.example.com/shop/frontend:1.4.2"),
    ] {
        let frontend = find(rendered, &format!("Deployment/{namespace}/frontend"));
        assert_eq!(
            frontend.pointer(&["spec", "replicas"]).and_then(Value::as_i64),
            Some(replicas)
        );
        let containers = frontend
            .pointer(&["spec", "template", "spec", "containers"])
            .and_then(Value::as_seq);
        let container = containers.unwrap().first().unwrap();
        assert_eq!(container.get("image").and_then(Value::as_str), Some(image));
        let label = |name: &str| {
            frontend
                .pointer(&["metadata", "labels", name])
                .and_then(Value::as_str)
        };
        assert_eq!(label("kluctl.io/discriminator"), Some(namespace));
        assert_eq!(label("kluctl.io/tag-0"), Some("services"));
        assert_eq!(label("app.kubernetes.io/part-of"), Some("shop"));
        let dir = ["metadata", "annotations", "kluctl.io/deployment-item-dir"];
        assert_eq!(
            frontend.pointer(&dir).and_then(Value::as_str),
            Some("services/frontend")
        );
        let binding = find(rendered, &format!("RoleBinding/{namespace}/payments"));
        let subject = binding
            .get("subjects")
            .and_then(Value::as_seq)
            .unwrap()
            .first()
            .unwrap();
        assert_eq!(subject.get("namespace").and_then(Value::as_str), Some(namespace));
    }
    assert_ne!(
        kluctl::objects_hash(test.objects()),
        kluctl::objects_hash(prod.objects())
    );
    assert_eq!(
        kluctl::objects_hash(test.objects()),
        kluctl::objects_hash(render_shop("test").objects())
    );
}
