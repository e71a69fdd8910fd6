//! Alert: its expressions compile and its provider is there.

use std::{sync::Arc, time::Duration};

use api::{
    Fault, Reason, finalizer,
    notification::{Alert, AlertStatus},
};
use kube::ResourceExt;
use runtime::{ObjectKey, Outcome, Pass, Reconciler, Requeue};

use super::outcome;
use crate::{alerts, delivery::Dispatcher, store::Store};

/// The wait before a missing provider is looked up again.
const PROVIDER_WAIT: Duration = Duration::from_secs(10);
/// The interval at which a ready alert is checked again: its provider may be deleted.
const INTERVAL: Duration = Duration::from_secs(600);

/// Alerts under control.
pub(crate) struct Alerts {
    store: Store,
    dispatcher: Arc<Dispatcher>,
    own_namespace_only: bool,
}

impl Alerts {
    /// With `own_namespace_only`, alerts must not name other namespaces.
    pub(crate) fn new(store: Store, dispatcher: Arc<Dispatcher>, own_namespace_only: bool) -> Self {
        Self {
            store,
            dispatcher,
            own_namespace_only,
        }
    }
}

impl Alerts {
    /// The result of the last delivery.
    fn delivered(&self, object: &Alert) -> Option<super::Delivered> {
        let key = ObjectKey::new(object.namespace().unwrap_or_default(), object.name_any());
        self.dispatcher.health().alert(&key)
    }
}

impl Reconciler for Alerts {
    type Object = Alert;
    type Status = AlertStatus;

    const FINALIZER: &'static str = "";
    const OBSOLETE_FINALIZERS: &'static [&'static str] = &[finalizer::FLUX];

    fn suspended(object: &Alert) -> bool {
        object.spec.suspend
    }

    fn timeout(&self, _: &Alert) -> Duration {
        Duration::from_secs(30)
    }

    fn validate(&self, object: &Alert) -> Result<(), Fault> {
        let own = object.metadata.namespace.as_deref().unwrap_or_default();
        if self.own_namespace_only
            && let Some(path) = alerts::foreign_source(&object.spec, own)
        {
            let message = format!("{path}: references to other namespaces are not allowed");
            return Err(Fault::stall(Reason::AccessDenied, message));
        }
        match alerts::expressions::broken_expression(&object.spec) {
            None => Ok(()),
            Some((path, why)) => Err(Fault::stall(Reason::InvalidConfig, format!("{path}: {why}"))),
        }
    }

    fn progressing(&self, _: &Alert) -> Option<AlertStatus> {
        None
    }

    fn faulted(&self, object: &Alert, fault: &Fault) -> Outcome<AlertStatus> {
        outcome(
            &object.metadata,
            object.status.as_ref(),
            Some(fault.clone()),
            self.delivered(object).as_ref(),
            Requeue::from(fault.class),
        )
    }

    async fn reconcile(&self, pass: &Pass<'_, Alert>) -> Outcome<AlertStatus> {
        let name = &pass.object.spec.provider_ref.name;
        if self.store.provider(pass.namespace, name).is_none() {
            let message = format!(
                "spec.providerRef: Provider '{name}' not found in namespace '{}'",
                pass.namespace
            );
            return self.faulted(
                pass.object,
                &Fault::wait(PROVIDER_WAIT, Reason::DependencyNotReady, message),
            );
        }
        let past = pass.object.status.as_ref();
        outcome(
            &pass.object.metadata,
            past,
            None,
            self.delivered(pass.object).as_ref(),
            Requeue::Interval(INTERVAL),
        )
    }

    async fn finalize(&self, _: &Pass<'_, Alert>) -> Result<(), Fault> {
        Ok(())
    }
}
