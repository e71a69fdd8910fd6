//! Names of kluctl's annotations and labels, and of Helm's that it obeys too.

use objects::meta;
use yaml::Value;

/// On every object that a target deployed.
pub const DISCRIMINATOR: &str = "kluctl.io/discriminator";
pub const ITEM_DIR: &str = "kluctl.io/deployment-item-dir";
/// A number follows.
pub const TAG_PREFIX: &str = "kluctl.io/tag-";
/// Deletes the object instead of applying it.
pub const DELETE: &str = "kluctl.io/delete";
pub const SKIP_DELETE: &str = "kluctl.io/skip-delete";
/// Helm's annotation for [`SKIP_DELETE`], with the value `keep`.
pub const RESOURCE_POLICY: &str = "helm.sh/resource-policy";
/// Counts the object as deployed by kluctl, whoever manages it.
pub const FORCE_MANAGED: &str = "kluctl.io/force-managed";
/// Takes over all conflicting fields.
pub const FORCE_APPLY: &str = "kluctl.io/force-apply";
/// Takes over conflicting fields by JSON path; may carry a number.
pub const FORCE_APPLY_FIELD: &str = "kluctl.io/force-apply-field";
/// Takes over conflicting fields of managers by regular expression; may carry a number.
pub const FORCE_APPLY_MANAGER: &str = "kluctl.io/force-apply-manager";
pub const IGNORE_CONFLICTS: &str = "kluctl.io/ignore-conflicts";
/// By JSON path; may carry a number.
pub const IGNORE_CONFLICTS_FIELD: &str = "kluctl.io/ignore-conflicts-field";
/// By regular expression; may carry a number.
pub const IGNORE_CONFLICTS_MANAGER: &str = "kluctl.io/ignore-conflicts-manager";
pub const WAIT_READINESS: &str = "kluctl.io/wait-readiness";
/// States explicitly if the object is ready.
pub const IS_READY: &str = "kluctl.io/is-ready";
pub const IGNORE_DIFF: &str = "kluctl.io/ignore-diff";
/// By JSON path; may carry a number.
pub const IGNORE_DIFF_FIELD: &str = "kluctl.io/ignore-diff-field";
/// By a regular expression on the path; may carry a number.
pub const IGNORE_DIFF_FIELD_REGEX: &str = "kluctl.io/ignore-diff-field-regex";
/// Counts the object as ready without a check.
pub const VALIDATE_IGNORE: &str = "kluctl.io/validate-ignore";
/// Prefix of annotations that become results of a validation.
pub const VALIDATE_RESULT_PREFIX: &str = "validate-result.kluctl.io/";
/// The name for comparing and displaying objects with a hash in their name.
pub const DIFF_NAME: &str = "kluctl.io/diff-name";
/// The namespace of the release whose chart rendered the object; removed once the object has a namespace.
pub(crate) const HELM_NAMESPACE: &str = "kluctl.io/helm-install-namespace";

pub(crate) const HOOK: &str = "kluctl.io/hook";
pub(crate) const HOOK_WEIGHT: &str = "kluctl.io/hook-weight";
pub(crate) const HOOK_DELETE_POLICY: &str = "kluctl.io/hook-delete-policy";
/// Makes the item wait for a hook, or not.
pub(crate) const HOOK_WAIT: &str = "kluctl.io/hook-wait";
pub const HOOK_TIMEOUT: &str = "kluctl.io/hook-timeout";
pub(crate) const HELM_HOOK: &str = "helm.sh/hook";
pub(crate) const HELM_HOOK_WEIGHT: &str = "helm.sh/hook-weight";
pub(crate) const HELM_HOOK_DELETE_POLICY: &str = "helm.sh/hook-delete-policy";

/// Omits the object from the deployment.
pub(crate) const IGNORE: &str = "kluctl.io/ignore";
/// Makes the item of a kustomization a barrier: all items before it finish before an item after it starts.
pub(crate) const BARRIER: &str = "kluctl.io/barrier";
/// Keeps the object when items are chosen by tags.
pub(crate) const SKIP_DELETE_IF_TAGS: &str = "kluctl.io/skip-delete-if-tags";

/// Prefixes of annotations that are not supported.
const REFUSED: &[&str] = &["kluctl.io/downscale-"];

/// Returns the first unsupported annotation of an object.
pub(crate) fn refused(object: &Value) -> Option<&str> {
    meta::annotations(object)
        .map(|(name, _)| name)
        .find(|name| REFUSED.iter().any(|prefix| name.starts_with(prefix)))
}

#[cfg(test)]
mod tests {
    use yaml::Map;

    use super::*;

    fn annotated(name: &str, value: &str) -> Value {
        let annotations: Map = [(name.to_owned(), Value::from(value))].into_iter().collect();
        let mut metadata = Map::new();
        metadata.insert("annotations", annotations);
        let mut object = Map::new();
        object.insert("metadata", metadata);
        Value::Map(object)
    }

    #[test]
    fn unsupported_annotations_are_refused() {
        for (name, value, is_refused) in [
            ("kluctl.io/hook", "pre-deploy", false),
            ("helm.sh/hook", "pre-install", false),
            ("kluctl.io/delete", "true", false),
            ("kluctl.io/skip-delete-if-tags", "true", false),
            ("kluctl.io/downscale-patch", "x", true),
            ("kluctl.io/downscale-delete", "true", true),
            ("example.com/hook", "x", false),
        ] {
            assert_eq!(
                refused(&annotated(name, value)).is_some(),
                is_refused,
                "{name}: {value}"
            );
        }
    }
}
