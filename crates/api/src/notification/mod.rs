//! Kinds of `notification.toolkit.fluxcd.io`.

mod alert;
mod provider;

pub use alert::{Alert, AlertSpec, AlertStatus, CrossNamespaceObjectReference};
pub use provider::{Provider, ProviderSpec, ProviderStatus};
