//! The orders in which objects are applied and deleted.

use std::cmp::Ordering;

use crate::ObjectRef;

/// Groups whose controllers must still run while their objects go.
const OPERATOR_GROUPS: [&str; 7] = [
    "monitoring.coreos.com",
    "kafka.strimzi.io",
    "zookeeper.pravega.io",
    "elasticsearch.k8s.elastic.co",
    "cert-manager.io",
    "bitnami.com",
    "acid.zalan.do",
];

/// Returns true for a namespace. Namespaces are deleted, and gone, before other objects.
#[must_use]
pub fn is_namespace(reference: &ObjectRef) -> bool {
    reference.is("", "Namespace")
}

/// Returns true if the object is in one of these namespaces, and so is deleted together with it.
#[must_use]
pub fn goes_with(reference: &ObjectRef, namespaces: &[String]) -> bool {
    reference
        .namespace
        .as_ref()
        .is_some_and(|namespace| namespaces.contains(namespace))
}

fn bucket(reference: &ObjectRef) -> u8 {
    if is_namespace(reference) {
        0
    } else if OPERATOR_GROUPS.contains(&reference.group.as_str()) {
        1
    } else if matches!(
        (reference.group.as_str(), reference.kind.as_str()),
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet")
            | ("", "Service")
            | ("networking.k8s.io", "Ingress")
    ) {
        2
    } else {
        3
    }
}

/// The order in which deletions are listed: namespaces, objects of operators, workloads, the rest.
#[must_use]
pub fn deletion(a: &ObjectRef, b: &ObjectRef) -> Ordering {
    bucket(a).cmp(&bucket(b)).then_with(|| a.cmp(b))
}

/// The kinds that are applied before all others, in this order.
const FIRST: [&str; 25] = [
    "CustomResourceDefinition",
    "Namespace",
    "ClusterRole",
    "ClusterClass",
    "RuntimeClass",
    "PriorityClass",
    "StorageClass",
    "VolumeSnapshotClass",
    "IngressClass",
    "GatewayClass",
    "ClusterRoleBinding",
    "ResourceQuota",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "ConfigMap",
    "Secret",
    "Service",
    "LimitRange",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "PodDisruptionBudget",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];
/// Number of kinds at the end of [`FIRST`] that are applied after all others.
const LAST: usize = 2;

/// Returns the position of a kind in the order of application; kinds with the same one may be applied at the same time.
#[must_use]
pub fn rank(kind: &str) -> usize {
    let others = FIRST.len() - LAST;
    match FIRST.iter().position(|one| *one == kind) {
        Some(at) if at >= others => at + 1,
        Some(at) => at,
        None => others,
    }
}

/// The order in which objects are applied: definitions, namespaces, roles, classes, accounts, configuration, workloads, other
/// kinds, webhooks; then by group, kind, namespace and name. The reverse order is safe for deletions.
#[must_use]
pub fn application(a: &ObjectRef, b: &ObjectRef) -> Ordering {
    let key = |one: &ObjectRef| (rank(&one.kind), one.id());
    key(a).cmp(&key(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(group: &str, kind: &str, name: &str) -> ObjectRef {
        ObjectRef {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            namespace: (kind != "Namespace").then(|| "n".to_owned()),
            name: name.to_owned(),
        }
    }

    #[test]
    fn application_orders_definitions_first_and_webhooks_last() {
        let mut refs = [
            reference(
                "admissionregistration.k8s.io",
                "ValidatingWebhookConfiguration",
                "w",
            ),
            reference("x.io", "Thing", "t"),
            reference("apps", "Deployment", "d"),
            reference("", "ConfigMap", "b"),
            reference("", "ConfigMap", "a"),
            reference("storage.k8s.io", "StorageClass", "s"),
            reference("", "Namespace", "n"),
            reference("apiextensions.k8s.io", "CustomResourceDefinition", "c"),
        ];
        refs.sort_by(application);
        let names: String = refs.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, "cnsabdtw");
        assert_eq!(rank("Thing"), rank("Job"));
    }

    #[test]
    fn deletion_orders_namespaces_operators_workloads_rest() {
        let mut refs = [
            reference("", "ConfigMap", "c"),
            reference("apps", "Deployment", "d"),
            reference("cert-manager.io", "Certificate", "e"),
            reference("", "Namespace", "n"),
            reference("", "Service", "s"),
        ];
        refs.sort_by(deletion);
        let kinds: Vec<_> = refs.iter().map(|r| r.kind.as_str()).collect();
        assert_eq!(
            kinds,
            ["Namespace", "Certificate", "Service", "Deployment", "ConfigMap"]
        );
        assert!(goes_with(&refs[1], &["n".to_owned()]) && !goes_with(&refs[0], &["n".to_owned()]));
    }
}
