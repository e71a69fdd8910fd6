//! Kinds of `notification.toolkit.fluxcd.io`.

mod alert;
mod provider;
mod receiver;

pub use alert::{
    Alert, AlertSpec, AlertStatus, CrossNamespaceObjectReference, definition as alert_definition,
};
pub use provider::{Provider, ProviderSpec, ProviderStatus, definition as provider_definition};
pub use receiver::{
    OidcProvider, OidcValidation, OidcVariable, RECEIVER_TYPES, Receiver, ReceiverResource, ReceiverSpec,
    ReceiverStatus, definition as receiver_definition,
};

use crate::crd::definition::{ServedKind, Version, age, ready, status};

pub(crate) const KINDS: &[ServedKind] = &[
    ServedKind::of::<Provider>(provider_definition),
    ServedKind::of::<Alert>(alert_definition),
    ServedKind::of::<Receiver>(receiver_definition),
];

fn versions() -> [Version; 3] {
    let versions = [("v1beta3", false), ("v1beta2", true), ("v1beta1", true)];
    versions.map(|(name, deprecated)| Version {
        name,
        deprecated,
        columns: vec![age(), ready(), status()],
    })
}
