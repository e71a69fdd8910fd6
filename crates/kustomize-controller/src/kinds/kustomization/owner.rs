//! The annotations and labels that applied objects obey, and the managers that are taken over.

use objects::{
    Marker, Vocabulary,
    takeover::{Operation, TakenManager, Takeover},
};

use crate::flags::Flags;

const SSA: &str = "kustomize.toolkit.fluxcd.io/ssa";

pub(super) fn vocabulary() -> Vocabulary {
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

/// Returns the managers that are taken over, also the ones of flags, and the metadata that earlier tools left.
pub(super) fn takeover(flags: &Flags) -> Takeover {
    let taken = |name: &str, is_prefix: bool, operation: Option<Operation>| TakenManager {
        name: name.to_owned().into(),
        is_prefix,
        operation,
    };
    let own = [
        taken("kubectl", false, Some(Operation::Apply)),
        taken("kubectl", true, Some(Operation::Update)),
        taken("before-first-apply", false, Some(Operation::Update)),
        taken("kustomize-controller", false, Some(Operation::Update)),
    ];
    let prefixes = flags.override_manager.iter().map(|name| taken(name, true, None));
    let exact = flags.override_manager_before_dry_run.iter();
    let exact = exact.map(|name| taken(name, false, None));
    Takeover {
        managers: own.into_iter().chain(prefixes).chain(exact).collect(),
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
