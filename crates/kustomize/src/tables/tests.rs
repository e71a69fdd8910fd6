use super::*;

/// Walks from a root through fields, and through the elements of lists.
fn at(api_version: &str, kind: &str, path: &str) -> Option<&'static Field> {
    let mut of = root(api_version, kind)?;
    let (parents, last) = path.rsplit_once('.').unwrap_or(("", path));
    for name in parents.split('.').filter(|name| !name.is_empty()) {
        of = target(of.field(name)?)?;
    }
    of.field(last)
}

fn keys(api_version: &str, kind: &str, path: &str) -> Option<&'static [&'static str]> {
    at(api_version, kind, path)?.merge_keys()
}

#[test]
fn lists_are_merged_by_the_keys_of_their_field() {
    let env = "spec.jobTemplate.spec.template.spec.initContainers.env";
    assert_eq!(keys("batch/v1", "CronJob", env), Some(&["name"][..]));
    assert_eq!(
        keys("v1", "Pod", "spec.containers.ports"),
        Some(&["containerPort", "protocol"][..])
    );
    assert_eq!(
        keys(
            "apps/v1",
            "Deployment",
            "spec.template.spec.ephemeralContainers.ports"
        ),
        None
    );
    assert_eq!(keys("v1", "Service", "metadata.finalizers"), Some(&[][..]));
    assert_eq!(keys("apps/v1", "StatefulSet", "spec.volumeClaimTemplates"), None);
    assert_eq!(keys("v1", "ServiceAccount", "imagePullSecrets"), None);
}

#[test]
fn kinds_newer_than_the_schema_have_no_type() {
    assert!(root("autoscaling/v1", "HorizontalPodAutoscaler").is_some());
    assert!(root("autoscaling/v2", "HorizontalPodAutoscaler").is_none());
    assert!(root("v1", "Deployment").is_none());
    assert!(root("", "").is_none());
}

#[test]
fn open_fields_are_known_without_a_type() {
    let data = at("apps/v1", "ControllerRevision", "data").expect("is listed");
    assert!(data.merge_keys().is_none() && target(data).is_none());
    let schema = "spec.validation.openAPIV3Schema";
    let group = "apiextensions.k8s.io/v1beta1";
    let default = format!("{schema}.properties.anything.not.default");
    assert!(at(group, "CustomResourceDefinition", &default).is_some());
    let described = format!("{schema}.properties.anything.description");
    assert!(at(group, "CustomResourceDefinition", &described).is_none());
}

#[test]
fn scope_is_known_by_version_and_kind() {
    assert_eq!(namespaced("v1", "Namespace"), Some(false));
    assert_eq!(
        namespaced("rbac.authorization.k8s.io/v1", "RoleBinding"),
        Some(true)
    );
    assert_eq!(namespaced("flowcontrol.apiserver.k8s.io/v1", "FlowSchema"), None);
}

#[test]
fn tables_are_sorted_and_complete() {
    assert!(schema::ROOTS.is_sorted_by(|a, b| (a.0, a.1) < (b.0, b.1)));
    assert!(scope::SCOPES.is_sorted_by(|a, b| (a.0, a.1) < (b.0, b.1)));
    for found in schema::TYPES {
        assert!(found.fields.is_sorted_by(|a, b| a.name < b.name), "{found:?}");
        for field in found.fields {
            assert_eq!(field.to.is_some(), target(field).is_some(), "{field:?}");
        }
    }
    for (api_version, kind, _) in schema::ROOTS {
        assert!(root(api_version, kind).is_some(), "{api_version} {kind}");
    }
}
