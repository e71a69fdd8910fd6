//! The marks of applied objects: labels, annotations and the field manager.

use objects::{
    Marker, Vocabulary,
    takeover::{Operation, TakenManager, Takeover},
};

/// The field manager of applied objects.
pub const FIELD_MANAGER: &str = "kustomize-controller";
/// The labels of applied objects with name and namespace of their Kustomization.
pub const OWNER_LABELS: (&str, &str) = (
    "kustomize.toolkit.fluxcd.io/name",
    "kustomize.toolkit.fluxcd.io/namespace",
);
const SSA: &str = "kustomize.toolkit.fluxcd.io/ssa";

/// Returns the annotations and labels that applied objects obey.
#[must_use]
pub fn vocabulary() -> Vocabulary {
    Vocabulary {
        skip_delete: &[Marker::Either("kustomize.toolkit.fluxcd.io/prune", "disabled")],
        ignore: &[
            Marker::Either("kustomize.toolkit.fluxcd.io/reconcile", "disabled"),
            Marker::Either(SSA, "Ignore"),
        ],
        create_only: &[Marker::Either(SSA, "IfNotPresent")],
        recreate: &[Marker::Either("kustomize.toolkit.fluxcd.io/force", "enabled")],
        merge: &[Marker::Either(SSA, "Merge")],
        ..Vocabulary::default()
    }
}

/// Returns the managers that are taken over, and the metadata that earlier tools left.
#[must_use]
pub fn takeover() -> Takeover {
    let taken = |name: &'static str, is_prefix: bool, operation: Operation| TakenManager {
        name: name.into(),
        is_prefix,
        operation: Some(operation),
    };
    Takeover {
        managers: vec![
            taken("kubectl", false, Operation::Apply),
            taken("kubectl", true, Operation::Update),
            taken("before-first-apply", false, Operation::Update),
            taken(FIELD_MANAGER, false, Operation::Update),
        ],
        annotations: [
            "kubectl.kubernetes.io/last-applied-configuration",
            "kustomize.toolkit.fluxcd.io/checksum",
            "fluxcd.io/sync-checksum",
        ]
        .map(Into::into)
        .to_vec(),
        labels: vec!["fluxcd.io/sync-gc-mark".into()],
    }
}
