//! The managers that are taken over.

use objects::takeover::{TakenManager, Takeover};

use crate::flags::Flags;

/// Returns the managers that are taken over, also the ones of flags, and the metadata that earlier tools left.
pub(super) fn takeover(flags: &Flags) -> Takeover {
    let taken = |name: &String, is_prefix: bool| TakenManager {
        name: name.clone().into(),
        is_prefix,
        operation: None,
    };
    let mut takeover = kustomization::takeover();
    let prefixes = flags.override_manager.iter().map(|name| taken(name, true));
    let exact = flags.override_manager_before_dry_run.iter();
    let exact = exact.map(|name| taken(name, false));
    takeover.managers.extend(prefixes.chain(exact));
    takeover
}
