//! From an Alert to the Provider that gets its notifications.

use std::sync::Arc;

use api::{
    Event, Fault, Reason,
    notification::{Alert, Provider, ProviderSpec},
};
use kube::ResourceExt as _;
use notification_specs::provider;

use super::{identity, reports::Reports};
use crate::{
    event::object_name,
    providers::{self, interface::ProviderType},
    store::Store,
};

pub(crate) struct Routes {
    store: Store,
    reports: Arc<Reports>,
    object_identities: bool,
}

impl Routes {
    /// With `object_identities`, Providers may name service accounts.
    pub(super) fn new(store: Store, reports: Arc<Reports>, object_identities: bool) -> Self {
        Self {
            store,
            reports,
            object_identities,
        }
    }

    /// Returns the fault of the first field of a Provider that is unsupported or invalid, apart from its expression.
    pub(crate) fn refused(&self, spec: &ProviderSpec) -> Option<Fault> {
        provider::check_fields(spec)
            .err()
            .or_else(|| identity::refused(spec, self.object_identities))
    }

    /// Returns the Provider of an alert for an event, or `None` if there is nothing to deliver.
    pub(super) fn target(&self, alert: &Alert, event: &Event) -> Option<(Arc<Provider>, ProviderType)> {
        let own = alert.namespace().unwrap_or_default();
        let failed = |why: &str| {
            let message = format!("failed to send notification for {}: {why}", object_name(event));
            self.reports
                .warn(alert, Reason::NotificationDispatchFailed, message);
        };
        let name = &alert.spec.provider_ref.name;
        let Some(provider) = self.store.provider(&own, name) else {
            failed(&format!("Provider '{name}' not found in namespace '{own}'"));
            return None;
        };
        if provider.spec.suspend {
            return None;
        }
        if let Some(fault) = self.refused(&provider.spec) {
            failed(&format!("Provider '{name}': {}", fault.message));
            return None;
        }
        let kind = providers::find(&provider.spec.type_).ok()?;
        Some((provider, kind))
    }
}
