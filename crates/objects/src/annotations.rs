//! The names of the annotations and labels that the engine obeys or writes.

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

/// When the object runs, if it is no part of the deployment but a hook.
pub const HOOK: &str = "kluctl.io/hook";
/// The order of hooks.
pub const HOOK_WEIGHT: &str = "kluctl.io/hook-weight";
/// When a hook is deleted.
pub const HOOK_DELETE_POLICY: &str = "kluctl.io/hook-delete-policy";
/// Whether a hook is waited for.
pub const HOOK_WAIT: &str = "kluctl.io/hook-wait";
/// How long a hook is waited for.
pub const HOOK_TIMEOUT: &str = "kluctl.io/hook-timeout";
/// Helm's way to say [`HOOK`].
pub const HELM_HOOK: &str = "helm.sh/hook";
/// Helm's way to say [`HOOK_WEIGHT`].
pub const HELM_HOOK_WEIGHT: &str = "helm.sh/hook-weight";
/// Helm's way to say [`HOOK_DELETE_POLICY`].
pub const HELM_HOOK_DELETE_POLICY: &str = "helm.sh/hook-delete-policy";
/// The name under which the object is compared and shown, so that objects with a hash in their name have a past.
pub const DIFF_NAME: &str = "kluctl.io/diff-name";
/// Prefix of the labels with the tags of the item; a number follows.
pub const TAG_PREFIX: &str = "kluctl.io/tag-";
