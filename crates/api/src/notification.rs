//! Kinds of `notification.toolkit.fluxcd.io`.

mod alert;
mod provider;
mod receiver;

pub use alert::{Alert, AlertSpec, AlertStatus, CrossNamespaceObjectReference};
pub use provider::{Provider, ProviderSpec, ProviderStatus};
pub use receiver::{
    OidcProvider, OidcValidation, OidcVariable, Receiver, ReceiverResource, ReceiverSpec, ReceiverStatus,
};

use crate::crd::{self, definition::ServedKind};

/// The kinds of this group.
pub(crate) const KINDS: &[ServedKind] = &[
    ServedKind::of::<Provider>(crd::provider),
    ServedKind::of::<Alert>(crd::alert),
    ServedKind::of::<Receiver>(crd::receiver),
];
