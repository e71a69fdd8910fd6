//! Alert: its expressions compile and its provider exists.

use std::{sync::Arc, time::Duration};

use api::{
    Condition, Fault, Reason, condition_type, conditions, finalizer,
    notification::{Alert, AlertStatus},
};
use kube::ResourceExt;
use limits::{TenantCache, compute};
use notification_specs::provider::{self, Takes};
use parking_lot::Mutex;
use runtime::{EventDraft, ObjectKey, Outcome, Pass, Reconciler, Requeue, Severity};
use sha2::{Digest as _, Sha256};

use super::outcome;
use crate::{alerts, delivery::Reports, extensions, store::Store, template};

/// Delay before a missing provider is looked up again.
const PROVIDER_WAIT: Duration = Duration::from_secs(10);
/// Interval of ready alerts: their provider may be deleted.
const INTERVAL: Duration = Duration::from_secs(600);
/// Maximum number of Alerts whose checked template is cached.
const CHECKED: usize = 4096;

/// Hash of a template, and its mistake.
type Checked = ([u8; 32], Option<String>);

pub(crate) struct Alerts {
    store: Store,
    reports: Arc<Reports>,
    own_namespace_only: bool,
    /// The templates that were checked last.
    mistakes: Mutex<TenantCache<ObjectKey, Checked>>,
}

impl Alerts {
    /// With `own_namespace_only`, alerts must not name other namespaces.
    pub(crate) fn new(store: Store, reports: Arc<Reports>, own_namespace_only: bool) -> Self {
        Self {
            store,
            reports,
            own_namespace_only,
            mistakes: Mutex::new(TenantCache::new(CHECKED)),
        }
    }
}

impl Alerts {
    fn delivered(&self, object: &Alert) -> Option<super::Delivered> {
        self.reports.health().alert(&key(object))
    }

    fn takes(&self, object: &Alert) -> Option<Takes> {
        let namespace = object.namespace().unwrap_or_default();
        let provider = self.store.provider(&namespace, &object.spec.provider_ref.name)?;
        provider::find(&provider.spec.type_).map(|rules| rules.takes)
    }

    /// Returns a newer state of an Alert, if there is one: a change of annotations requests a pass, whose object may still be the one
    /// before it.
    fn newer(&self, object: &Alert) -> Option<Arc<Alert>> {
        let version = |alert: &Alert| alert.resource_version()?.parse::<u64>().ok();
        let known = self.store.alert(&key(object));
        known.filter(|known| version(known) > version(object))
    }

    /// Checks the template of an Alert, unless it is the one that was checked last.
    async fn check_template(&self, object: &Alert) {
        let newer = self.newer(object);
        let newest = newer.as_deref().unwrap_or(object);
        let key = key(newest);
        let Some(text) = extensions::template_annotation(newest) else {
            self.mistakes.lock().remove(&key);
            return;
        };
        let hash = Sha256::digest(text.as_bytes()).into();
        let is_known = |(checked, _): &Checked| *checked == hash;
        if self.mistakes.lock().get(&key).is_some_and(is_known) {
            return;
        }
        let mistake = template::mistake(&key.namespace, text).await;
        let namespace = key.namespace.clone();
        self.mistakes.lock().insert(&namespace, key, (hash, mistake), 1);
    }

    /// Returns the annotations without effect. The template counts as it was checked last.
    fn problems(&self, object: &Alert) -> Vec<String> {
        let newer = self.newer(object);
        let newest = newer.as_deref().unwrap_or(object);
        let mut mistakes = self.mistakes.lock();
        let mistake = mistakes
            .get(&key(newest))
            .and_then(|(_, mistake)| mistake.as_deref());
        extensions::problems(newest, self.takes(newest), mistake)
    }

    /// Returns the fault of the spec of an Alert.
    async fn refused(&self, object: &Alert) -> Option<Fault> {
        let own = object.namespace().unwrap_or_default();
        if self.own_namespace_only
            && let Some(path) = alerts::foreign_source(&object.spec, &own)
        {
            let message = format!("{path}: references to other namespaces are not allowed");
            return Some(Fault::stall(Reason::AccessDenied, message));
        }
        let spec = object.spec.clone();
        let broken = compute(&own, move |_| alerts::expressions::broken_expression(&spec));
        let Some(broken) = broken.await else {
            let message = "the expressions cannot be checked now";
            return Some(Fault::retry(Reason::InternalError, message));
        };
        broken.map(|(path, why)| Fault::stall(Reason::InvalidConfig, format!("{path}: {why}")))
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

    fn validate(&self, _: &Alert) -> Result<(), Fault> {
        // Checking expressions takes time: the pass does it on a thread.
        Ok(())
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
        // Passes of other namespaces go on while this one waits for a thread.
        let checked = async {
            self.check_template(pass.object).await;
            self.refused(pass.object).await
        };
        if let Some(fault) = pass.slot.waiting(checked).await {
            return self.faulted(pass.object, &fault);
        }
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

fn key(object: &Alert) -> ObjectKey {
    ObjectKey::new(object.namespace().unwrap_or_default(), object.name_any())
}
