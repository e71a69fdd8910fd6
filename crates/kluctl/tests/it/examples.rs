//! Projects and charts by others. They are not part of this repository: the tests read them from
//! `../shared/examples/kluctl-examples` next to the workspace, and print a note if they are absent. Helm's and kustomize's
//! output is expected.

use std::sync::Arc;

use kluctl::{Contexts, Request, Scope, fix_namespaces, render};
use tree::{Budget, TreePath};

use crate::support::{charts, names, read_dir, workspace};

/// Returns the objects of a target, in the namespaces that a cluster gives them; `None` if the examples are absent.
fn objects(project: &str, target: &str) -> Option<Vec<String>> {
    let dir = workspace().join("../shared/examples/kluctl-examples");
    if !dir.is_dir() {
        testkit::skipped::note(
            "renders of example projects",
            &format!("{} is absent", dir.display()),
        );
        return None;
    }
    let request = Request {
        project_dir: TreePath::parse(project).unwrap(),
        target: Some(target.to_owned()),
        contexts: Contexts {
            current: Some("kind-kind".to_owned()),
            names: vec!["kind-kind".to_owned()],
        },
        charts: charts(),
        ..Request::default()
    };
    let mut rendered = render(Arc::new(read_dir(&dir)), &request, &Budget::default()).unwrap();
    let scope = |_: &str, kind: &str| {
        Some(if kind == "Namespace" {
            Scope::Cluster
        } else {
            Scope::Namespaced
        })
    };
    fix_namespaces(&mut rendered, &scope, "default");
    assert_eq!(rendered.warnings, Vec::<String>::new());
    let mut found = names(&rendered);
    found.sort();
    Some(found)
}

fn sorted(namespace: &str, objects: &str) -> Vec<String> {
    let in_namespace = |object: &str| {
        let (kind, name) = object.split_once('/').unwrap();
        format!("{kind}/{namespace}/{name}")
    };
    let mut all: Vec<String> = objects.split_whitespace().map(in_namespace).collect();
    all.push(format!("Namespace/-/{namespace}"));
    all.sort();
    all
}

const REDIS: &str = "ServiceAccount/cart-redis ConfigMap/cart-redis-configuration ConfigMap/cart-redis-health \
                     ConfigMap/cart-redis-scripts Service/cart-redis-headless";
const SERVICES: &str = "Deployment/adservice Service/adservice Deployment/cartservice Service/cartservice \
                        Deployment/checkoutservice Service/checkoutservice \
                        Deployment/currencyservice Service/currencyservice \
                        Deployment/frontend Service/frontend Service/frontend-external \
                        Deployment/paymentservice Service/paymentservice \
                        Deployment/productcatalogservice Service/productcatalogservice \
                        Deployment/recommendationservice Service/recommendationservice \
                        Deployment/shippingservice Service/shippingservice";

#[test]
fn a_project_with_a_chart_and_several_environments() {
    let project = "microservices-demo/3-templating-and-multi-env";
    let replication = "Service/cart-redis StatefulSet/cart-redis-node";
    let more = "Deployment/emailservice Service/emailservice Deployment/loadgenerator";
    for target in ["test", "prod"] {
        let expected = format!("{REDIS} {replication} {SERVICES} {more}");
        let Some(found) = objects(project, target) else {
            return;
        };
        assert_eq!(found, sorted(&format!("ms-demo-{target}"), &expected), "{target}");
    }
    let standalone = "Service/cart-redis-master StatefulSet/cart-redis-master";
    let expected = format!("{REDIS} {standalone} {SERVICES}");
    let found = objects(project, "local").unwrap();
    assert_eq!(found, sorted("ms-demo-local", &expected));
}

#[test]
fn a_project_that_is_a_chart() {
    let expected = "NetworkPolicy/nginx PodDisruptionBudget/nginx ServiceAccount/nginx Secret/nginx-tls Service/nginx \
                    Deployment/nginx";
    let Some(found) = objects("simple-helm", "simple-helm") else {
        return;
    };
    assert_eq!(found, sorted("simple-helm-simple-helm", expected));
}
