//! Kinds of `notification.toolkit.fluxcd.io`.

mod alert;
mod provider;

pub use alert::{Alert, AlertSpec, AlertStatus, CrossNamespaceObjectReference};
pub use provider::{Provider, ProviderSpec, ProviderStatus};

use crate::crd::{self, definition::ServedKind};

/// The kinds of this group.
pub(crate) const KINDS: &[ServedKind] = &[
    ServedKind::of::<Provider>(crd::provider),
    ServedKind::of::<Alert>(crd::alert),
];
