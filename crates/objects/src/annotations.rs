//! The names of the annotations and labels that the engine obeys or writes.

use yaml::Value;

use crate::meta;

/// Label that marks everything that one target deployed.
pub const DISCRIMINATOR: &str = "kluctl.io/discriminator";
/// Annotation with the directory of the deployment item.
pub const ITEM_DIR: &str = "kluctl.io/deployment-item-dir";
/// The object is deleted instead of applied.
pub const DELETE: &str = "kluctl.io/delete";
/// The object is never deleted.
pub const SKIP_DELETE: &str = "kluctl.io/skip-delete";
/// Helm's way to say [`SKIP_DELETE`] (with the value `keep`).
pub const RESOURCE_POLICY: &str = "helm.sh/resource-policy";
/// The object counts as ours, whoever manages it.
pub const FORCE_MANAGED: &str = "kluctl.io/force-managed";
/// All conflicts are won.
pub const FORCE_APPLY: &str = "kluctl.io/force-apply";
/// Conflicts of these fields (JSON paths) are won; may carry a number.
pub const FORCE_APPLY_FIELD: &str = "kluctl.io/force-apply-field";
/// Conflicts with these managers (regular expressions) are won; may carry a number.
pub const FORCE_APPLY_MANAGER: &str = "kluctl.io/force-apply-manager";
/// All conflicting fields are left to their managers.
pub const IGNORE_CONFLICTS: &str = "kluctl.io/ignore-conflicts";
/// These fields (JSON paths) are left to their managers; may carry a number.
pub const IGNORE_CONFLICTS_FIELD: &str = "kluctl.io/ignore-conflicts-field";
/// Fields of these managers (regular expressions) are left to them; may carry a number.
pub const IGNORE_CONFLICTS_MANAGER: &str = "kluctl.io/ignore-conflicts-manager";
/// The item waits until the object is ready.
pub const WAIT_READINESS: &str = "kluctl.io/wait-readiness";
/// An explicit answer to whether the object is ready.
pub const IS_READY: &str = "kluctl.io/is-ready";
/// The object shows no differences.
pub const IGNORE_DIFF: &str = "kluctl.io/ignore-diff";
/// These fields (JSON paths) show no differences; may carry a number.
pub const IGNORE_DIFF_FIELD: &str = "kluctl.io/ignore-diff-field";
/// Fields whose path matches show no differences; may carry a number.
pub const IGNORE_DIFF_FIELD_REGEX: &str = "kluctl.io/ignore-diff-field-regex";
/// The object counts as ready, unlooked at.
pub const VALIDATE_IGNORE: &str = "kluctl.io/validate-ignore";
/// The namespace of the release whose chart gave the object; gone once the object has a namespace.
pub const HELM_NAMESPACE: &str = "kluctl.io/helm-install-namespace";
/// Prefix of annotations that become results of a validation.
pub const VALIDATE_RESULT_PREFIX: &str = "validate-result.kluctl.io/";

/// Annotations that ask for something that is not there yet.
const UNSUPPORTED: [&str; 3] = ["kluctl.io/hook", "helm.sh/hook", "kluctl.io/diff-name"];

/// The first annotation of an object that asks for something that is not obeyed, so that it can be refused by name.
#[must_use]
pub fn unsupported(object: &Value) -> Option<&'static str> {
    UNSUPPORTED
        .into_iter()
        .find(|name| meta::annotation(object, name).is_some())
}
