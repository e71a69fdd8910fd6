//! Alert: its expressions compile and its provider exists.

use std::{sync::Arc, time::Duration};

use api::{
    Condition, Fault, Reason, condition_type, conditions, finalizer,
    notification::{Alert, AlertStatus},
};
use kube::ResourceExt;
use runtime::{EventDraft, ObjectKey, Outcome, Pass, Reconciler, Requeue, Severity};

use super::outcome;
use crate::{
    alerts,
    delivery::Reports,
    extensions,
    providers::{self, interface::Takes},
    store::Store,
};

/// Delay before a missing provider is looked up again.
const PROVIDER_WAIT: Duration = Duration::from_secs(10);
/// Interval of ready alerts: their provider may be deleted.
const INTERVAL: Duration = Duration::from_secs(600);

pub(crate) struct Alerts {
    store: Store,
    reports: Arc<Reports>,
    own_namespace_only: bool,
}

impl Alerts {
    /// With `own_namespace_only`, alerts must not name other namespaces.
    pub(crate) fn new(store: Store, reports: Arc<Reports>, own_namespace_only: bool) -> Self {
        Self {
            store,
            reports,
            own_namespace_only,
        }
    }
}

impl Alerts {
    fn delivered(&self, object: &Alert) -> Option<super::Delivered> {
        let key = ObjectKey::new(object.namespace().unwrap_or_default(), object.name_any());
        self.reports.health().alert(&key)
    }

    fn takes(&self, object: &Alert) -> Option<Takes> {
        let namespace = object.namespace().unwrap_or_default();
        let provider = self.store.provider(&namespace, &object.spec.provider_ref.name)?;
        providers::find(&provider.spec.type_).ok().map(|kind| kind.takes)
    }

    /// Returns the annotations without effect. A change of annotations requests a pass, whose object may still be the one before it.
    fn problems(&self, object: &Alert) -> Vec<String> {
        let version = |alert: &Alert| alert.resource_version()?.parse::<u64>().ok();
        let key = ObjectKey::new(object.namespace().unwrap_or_default(), object.name_any());
        let known = self
            .store
            .alert(&key)
            .filter(|known| version(known) > version(object));
        let newest = known.as_deref().unwrap_or(object);
        extensions::problems(newest, self.takes(newest))
    }

    /// Adds the annotations without effect to an outcome: in a condition, and in an event if they changed.
    fn with_problems(&self, object: &Alert, mut outcome: Outcome<AlertStatus>) -> Outcome<AlertStatus> {
        let list = &mut outcome.status.conditions;
        let problems = self.problems(object);
        if problems.is_empty() {
            conditions::remove(list, condition_type::ANNOTATIONS_VALID);
            return outcome;
        }
        let message = runtime::bounded_text(&problems.join("; ")).into_owned();
        let past = conditions::get(list, condition_type::ANNOTATIONS_VALID);
        if past.is_none_or(|past| past.message != message) {
            outcome.events.push(EventDraft {
                severity: Severity::Error,
                reason: Reason::InvalidConfig,
                message: message.clone(),
                metadata: Default::default(),
            });
        }
        let condition = Condition::new(
            condition_type::ANNOTATIONS_VALID,
            false,
            Reason::InvalidConfig,
            &message,
            object.metadata.generation,
            runtime::now(),
        );
        conditions::set(list, condition);
        conditions::sort(list);
        outcome
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
        let outcome = outcome(
            &object.metadata,
            object.status.as_ref(),
            Some(fault.clone()),
            self.delivered(object).as_ref(),
            Requeue::from(fault.class),
        );
        self.with_problems(object, outcome)
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
        let outcome = outcome(
            &pass.object.metadata,
            past,
            None,
            self.delivered(pass.object).as_ref(),
            Requeue::Interval(INTERVAL),
        );
        self.with_problems(pass.object, outcome)
    }

    async fn finalize(&self, _: &Pass<'_, Alert>) -> Result<(), Fault> {
        Ok(())
    }
}
