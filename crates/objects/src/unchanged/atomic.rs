//! The lists and maps of Kubernetes' own kinds that are owned as a whole.
//!
//! In ownership they look the same as lists and maps that were applied empty. A name that is not here, because some kind merges a
//! list or map of that name, counts as a change only when it is owned without anything below.

/// The groups of Kubernetes' own kinds, which no definition can add to.
const GROUPS: [&str; 13] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apps",
    "autoscaling",
    "batch",
    "coordination.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// The names of fields that are, wherever these groups have them, owned as a whole; in order.
const WHOLE: [&str; 75] = [
    "accessModes",
    "add",
    "additionalPrinterColumns",
    "admissionReviewVersions",
    "allOf",
    "allowedTopologies",
    "anyOf",
    "args",
    "audiences",
    "auditAnnotations",
    "cidrs",
    "claimRef",
    "clusterRoleSelectors",
    "command",
    "configMapKeyRef",
    "conversionReviewVersions",
    "dataSource",
    "drop",
    "egress",
    "enum",
    "envFrom",
    "except",
    "excludeResourceRules",
    "externalIPs",
    "fieldRef",
    "from",
    "hostnames",
    "hosts",
    "httpHeaders",
    "ingress",
    "ipFamilies",
    "items",
    "loadBalancerSourceRanges",
    "matchConstraints",
    "matchExpressions",
    "matchFields",
    "matchLabelExpressions",
    "matchLabelKeys",
    "matchResources",
    "metrics",
    "mismatchLabelKeys",
    "mountOptions",
    "nameservers",
    "namespaceSelector",
    "nodeSelector",
    "nodeSelectorTerms",
    "objectSelector",
    "oneOf",
    "operations",
    "paramKind",
    "paramRef",
    "paths",
    "podSelector",
    "policies",
    "policyTypes",
    "preference",
    "preferredDuringSchedulingIgnoredDuringExecution",
    "readinessGates",
    "required",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "resourceFieldRef",
    "resourceNames",
    "roleRef",
    "rules",
    "scopeSelector",
    "scopes",
    "searches",
    "secretKeyRef",
    "selector",
    "shortNames",
    "subjects",
    "sysctls",
    "tls",
    "tolerations",
    "volumeClaimTemplates",
];

pub(super) fn is_built_in(group: &str) -> bool {
    GROUPS.contains(&group)
}

/// Returns true if a field of this name is owned as a whole.
pub(super) fn is_whole(name: &str) -> bool {
    WHOLE.binary_search(&name).is_ok()
}

/// The field of a map owned as a whole that the API server adds when it is left out, and with which value.
pub(super) fn default_in(name: &str) -> Option<(&'static str, &'static str)> {
    match name {
        "fieldRef" => Some(("apiVersion", "v1")),
        "resourceFieldRef" => Some(("divisor", "0")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_for_binary_search() {
        assert!(WHOLE.is_sorted() && GROUPS.is_sorted());
        assert!(is_whole("args") && is_whole("volumeClaimTemplates") && !is_whole("data"));
        assert!(is_built_in("apps") && !is_built_in("gateway.networking.k8s.io"));
    }
}
