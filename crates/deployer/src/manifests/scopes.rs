//! The namespaces of manifests whose objects have none: the API server ignores them, and so does the inventory of the originals. Pure.

use std::collections::HashMap;

use cluster::Scope;
use objects::split_api_version;
use yaml::Value;

/// Removes the namespaces of cluster-scoped objects. `served` returns the scope of a group and kind that is served; definitions among the
/// manifests count, too.
pub(super) fn remove_ignored_namespaces(
    manifests: &mut [Value],
    served: impl Fn(&str, &str) -> Option<Scope>,
) {
    let defined: HashMap<(String, String), Scope> = manifests.iter().filter_map(defined_scope).collect();
    for manifest in manifests {
        let field = |name: &str| manifest.get(name).and_then(Value::as_str).unwrap_or_default();
        let (group, _) = split_api_version(field("apiVersion"));
        let kind = field("kind");
        let known = || defined.get(&(group.to_owned(), kind.to_owned())).copied();
        if served(group, kind).or_else(known) != Some(Scope::Cluster) {
            continue;
        }
        if let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_map_mut) {
            metadata.remove("namespace");
        }
    }
}

/// Returns the group, the kind and the scope that a CustomResourceDefinition defines.
fn defined_scope(manifest: &Value) -> Option<((String, String), Scope)> {
    let text = |path: &[&str]| manifest.pointer(path).and_then(Value::as_str);
    if text(&["kind"]) != Some("CustomResourceDefinition") {
        return None;
    }
    let scope = match text(&["spec", "scope"])? {
        "Cluster" => Scope::Cluster,
        _ => Scope::Namespaced,
    };
    let group = text(&["spec", "group"])?.to_owned();
    let kind = text(&["spec", "names", "kind"])?.to_owned();
    Some(((group, kind), scope))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_cluster_scoped_objects_lose_their_namespaces() {
        let definition = |kind: &str, scope: &str| {
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": "x" },
                "spec": { "group": "x.io", "scope": scope, "names": { "kind": kind } },
            })
        };
        let object = |api_version: &str, kind: &str| json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": "a", "namespace": "apps" } });
        let mut manifests = [
            definition("Global", "Cluster"),
            definition("Local", "Namespaced"),
            object("storage.k8s.io/v1", "StorageClass"),
            object("v1", "ConfigMap"),
            object("x.io/v1", "Global"),
            object("x.io/v1", "Local"),
            object("y.io/v1", "Global"),
        ]
        .map(Value::from_json);
        let served = |group: &str, kind: &str| match (group, kind) {
            ("storage.k8s.io", "StorageClass") => Some(Scope::Cluster),
            ("", "ConfigMap") => Some(Scope::Namespaced),
            _ => None,
        };
        remove_ignored_namespaces(&mut manifests, served);
        let found = manifests.iter().skip(2);
        let found: Vec<_> = found
            .map(|one| objects::meta::text(one, "namespace").is_some())
            .collect();
        assert_eq!(found, [false, true, false, true, true]);
    }
}
