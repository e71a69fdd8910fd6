//! The objects of a build as one file each.

use std::collections::BTreeSet;

use yaml::Value;

use crate::{
    Build,
    id::{Gvk, Id, split_api_version},
};

impl Build {
    /// Returns a file for each object, with kustomize's file names: group, version, kind and name in lower case, after the
    /// namespace if there are several. Names may contain slashes, and two objects may have the same one.
    #[must_use]
    pub fn files(&self) -> Vec<(String, String)> {
        let ids: Vec<Id> = self.objects.iter().map(|built| identity(&built.object)).collect();
        let namespaces: BTreeSet<&str> = ids
            .iter()
            .filter(|id| !id.is_cluster_scoped())
            .map(Id::effective_namespace)
            .collect();
        let several = namespaces.len() > 1;
        let files = ids.iter().zip(&self.objects).map(|(id, built)| {
            let Gvk { group, version, kind } = &id.gvk;
            let namespace = if several && !id.is_cluster_scoped() {
                id.effective_namespace()
            } else {
                ""
            };
            let parts = [namespace, group, version, kind, &id.name];
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            let name = format!("{}.yaml", parts.join("_").to_lowercase());
            (name, yaml::print::goyaml(&built.object))
        });
        files.collect()
    }
}

fn identity(object: &Value) -> Id {
    let text = |path: &[&str]| {
        let value = object.pointer(path).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    let api_version = text(&["apiVersion"]);
    let (group, version) = split_api_version(&api_version);
    let gvk = Gvk {
        group: group.to_owned().into(),
        version: version.to_owned().into(),
        kind: text(&["kind"]).into(),
    };
    Id::new(gvk, text(&["metadata", "name"]), text(&["metadata", "namespace"]))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tree::{Budget, TreePath};

    use super::*;
    use crate::Built;

    fn names(objects: &str) -> Vec<String> {
        let read = yaml::read::kustomize_all(objects, &Budget::default()).unwrap();
        let built = |document: yaml::Document| Built {
            object: document.value,
            file: Arc::new(TreePath::root()),
            line: 1,
        };
        let build = Build {
            objects: read.into_iter().map(built).collect(),
            warnings: Vec::new(),
        };
        build.files().into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn namespaces_are_in_names_when_there_are_several() {
        const MAP: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: a}}";
        const ROLE: &str =
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: A:b}}";
        const APP: &str = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}}";
        assert_eq!(
            names(&format!("{MAP}\n---\n{ROLE}")),
            [
                "v1_configmap_m.yaml",
                "rbac.authorization.k8s.io_v1_clusterrole_a:b.yaml"
            ]
        );
        assert_eq!(
            names(&format!("{MAP}\n---\n{ROLE}\n---\n{APP}")),
            [
                "a_v1_configmap_m.yaml",
                "rbac.authorization.k8s.io_v1_clusterrole_a:b.yaml",
                "default_apps_v1_deployment_d.yaml"
            ]
        );
    }
}
