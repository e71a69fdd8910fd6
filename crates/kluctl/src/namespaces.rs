//! Namespaces, once it is known which kinds have one.

use std::collections::HashMap;

use objects::meta;
use yaml::Value;

use crate::{Rendered, annotations::HELM_NAMESPACE};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Cluster,
    Namespaced,
}

/// Adds missing namespaces, and removes the namespaces of cluster-scoped objects. Objects of a chart get the release's
/// namespace, others `default_namespace`. The project's own CRDs precede `scope`, which answers for group and kind; unknown
/// kinds are unchanged.
pub fn fix_namespaces(
    rendered: &mut Rendered,
    scope: &dyn Fn(&str, &str) -> Option<Scope>,
    default_namespace: &str,
) {
    let own = own_kinds(rendered);
    let mut known: HashMap<(String, String), Option<Scope>> = own;
    for object in rendered.items.iter_mut().flat_map(|item| &mut item.objects) {
        let (group, kind) = group_kind(object);
        let found = known
            .entry((group, kind))
            .or_insert_with_key(|(group, kind)| scope(group, kind));
        let release = meta::remove_annotation(object, HELM_NAMESPACE);
        match found {
            Some(Scope::Cluster) => meta::set_namespace(object, None),
            Some(Scope::Namespaced) if meta::text(object, "namespace").is_none() => {
                meta::set_namespace(object, Some(release.as_deref().unwrap_or(default_namespace)));
            }
            _ => {}
        }
    }
}

/// Returns the kinds that the project's own CRDs define.
fn own_kinds(rendered: &Rendered) -> HashMap<(String, String), Option<Scope>> {
    let mut kinds = HashMap::new();
    for object in rendered.objects() {
        let (group, kind) = group_kind(object);
        if group != "apiextensions.k8s.io" || kind != "CustomResourceDefinition" {
            continue;
        }
        let text = |path: &[&str]| object.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let scope = match text(&["spec", "scope"]).as_deref() {
            Some("Cluster") => Scope::Cluster,
            Some("Namespaced") => Scope::Namespaced,
            _ => continue,
        };
        if let (Some(group), Some(kind)) = (text(&["spec", "group"]), text(&["spec", "names", "kind"])) {
            kinds.insert((group, kind), Some(scope));
        }
    }
    kinds
}

fn group_kind(object: &Value) -> (String, String) {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
    (group.to_owned(), text("kind").to_owned())
}
