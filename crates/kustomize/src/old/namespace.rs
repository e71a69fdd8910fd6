//! The `namespace` field.

use yaml::{Map, Value};

use crate::{identity::Id, resource::Resource};

const RBAC: &str = "rbac.authorization.k8s.io";

/// Moves every object into a namespace, apart from kinds that are known to live outside of namespaces.
pub(crate) fn set(resources: &mut [Resource], namespace: &str) {
    for resource in resources {
        let before = resource.id();
        move_object(&mut resource.object, &before, namespace);
        resource.moved |= resource.id() != before;
    }
}

fn move_object(object: &mut Value, id: &Id, namespace: &str) {
    if id.is("", "Namespace") && id.version == "v1" {
        set_in(object, "metadata", "name", namespace);
        return;
    }
    if !id.is_cluster_scoped() {
        set_in(object, "metadata", "namespace", namespace);
    }
    if id.is(RBAC, "RoleBinding") || id.is(RBAC, "ClusterRoleBinding") {
        set_subjects(object, namespace);
    }
    if id.is("apiregistration.k8s.io", "APIService") {
        let service = object.get_mut("spec").and_then(Value::as_map_mut);
        if let Some(service) = service.and_then(|spec| spec.get_or_insert_map("service")) {
            service.insert("namespace", namespace);
        }
    }
    if id.is("apiextensions.k8s.io", "CustomResourceDefinition") {
        let path = ["spec", "conversion", "webhook", "clientConfig", "service"];
        let service = object.pointer_mut(&path).and_then(Value::as_map_mut);
        if let Some(service) = service.filter(|service| service.contains_key("namespace")) {
            service.insert("namespace", namespace);
        }
    }
}

/// Subjects called `default` follow; other service accounts follow through references.
fn set_subjects(object: &mut Value, namespace: &str) {
    let subjects = object.get_mut("subjects").and_then(Value::as_seq_mut);
    for subject in subjects.into_iter().flatten().filter_map(Value::as_map_mut) {
        if subject.get_str("name") == Some("default") {
            subject.insert("namespace", namespace);
        }
    }
}

fn set_in(object: &mut Value, map: &str, key: &str, value: &str) {
    let map: Option<&mut Map> = object
        .as_map_mut()
        .and_then(|object| object.get_or_insert_map(map));
    if let Some(map) = map {
        map.insert(key, value);
    }
}
