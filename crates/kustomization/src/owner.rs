//! The marks of applied objects: labels, annotations and the field manager.

use apply::Owner;
use objects::{
    Marker, Vocabulary,
    fixup::RepairedKinds,
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

/// Returns an owner with the rules by which objects are applied.
#[must_use]
pub fn with_rules(owner: Owner) -> Owner {
    Owner {
        vocabulary: vocabulary(),
        takeover: takeover(),
        repaired: RepairedKinds::BuiltIn,
        recreates_undeleted: true,
        ..owner
    }
}

/// Returns the annotations and labels that applied objects obey.
fn vocabulary() -> Vocabulary {
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

/// Returns the managers that are taken over, by the beginnings of their names, and the metadata that earlier tools left.
#[must_use]
pub fn takeover() -> Takeover {
    let taken = |name: &'static str, operation: Operation| TakenManager {
        name: name.into(),
        is_prefix: true,
        operation: Some(operation),
    };
    Takeover {
        managers: vec![
            taken("kubectl", Operation::Apply),
            taken("kubectl", Operation::Update),
            taken("before-first-apply", Operation::Update),
            taken(FIELD_MANAGER, Operation::Update),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn managers_are_taken_over_by_the_beginnings_of_their_names() {
        let takeover = takeover();
        for (name, apply, update) in [
            ("kubectl", true, true),
            ("kubectl-client-side-apply", true, true),
            ("before-first-apply", false, true),
            (FIELD_MANAGER, false, true),
            ("gotk-kustomize-controller", false, false),
            ("my-kubectl", false, false),
        ] {
            assert_eq!(takeover.takes(name, Operation::Apply), apply, "{name}");
            assert_eq!(takeover.takes(name, Operation::Update), update, "{name}");
        }
    }
}
