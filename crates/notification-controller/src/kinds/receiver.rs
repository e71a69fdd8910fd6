//! Receiver: its fields fit its type, its expressions compile, and its Secret makes the path of its webhook.

use std::time::Duration;

use api::{
    Condition, Fault, Reason, annotation, condition_type, conditions, finalizer,
    notification::{Receiver, ReceiverStatus},
};
use kube::Client;
use limits::compute;
use runtime::{EventDraft, Outcome, Pass, Reconciler, Requeue, Severity, secret};

use crate::{
    receivers::{self, Index},
    served::{excerpt, is_name},
};

const INTERVAL: Duration = Duration::from_secs(600);
/// Time after which a Receiver whose path is taken looks for it again.
const TAKEN_INTERVAL: Duration = Duration::from_secs(120);
const TAKEN: &str = "Reconciliation failed terminally due to configuration error: the path of the webhook, a digest of token, name and \
                     namespace, is taken by another Receiver: use a longer random token, or another name";

pub(crate) struct Receivers {
    client: Client,
    index: Index,
}

/// The reason why a pass has no path.
#[derive(Debug)]
enum NoPath {
    /// A mistake, during which the earlier path stays.
    Fault(Fault),
    /// The path belongs to another Receiver.
    Taken,
}

impl From<Fault> for NoPath {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl NoPath {
    fn fault(&self) -> Fault {
        match self {
            Self::Fault(fault) => fault.clone(),
            Self::Taken => Fault::stall(Reason::ValidationFailed, TAKEN),
        }
    }

    fn requeue(&self) -> Requeue {
        match self {
            Self::Fault(fault) => Requeue::from(fault.class),
            Self::Taken => Requeue::After(TAKEN_INTERVAL),
        }
    }
}

impl Receivers {
    pub(crate) fn new(client: Client, index: Index) -> Self {
        Self { client, index }
    }

    async fn examine(&self, pass: &Pass<'_, Receiver>) -> Result<String, NoPath> {
        let spec = pass.object.spec.clone();
        let checked = compute(pass.namespace, move |cancelled| {
            notification_specs::receiver::check_expressions(&spec, cancelled)
        });
        let failed = || Fault::retry(Reason::InternalError, "the expressions cannot be checked now");
        // Passes of other namespaces go on while this one waits for a thread.
        pass.slot.waiting(checked).await.ok_or_else(failed)??;
        let path = self.path(pass).await?;
        match self.index.is_taken(&path, pass.object) {
            true => Err(NoPath::Taken),
            false => Ok(path),
        }
    }

    async fn path(&self, pass: &Pass<'_, Receiver>) -> Result<String, Fault> {
        let failed = |why: String| Fault::retry(Reason::TokenNotFound, why);
        let reference = pass.object.spec.secret_ref.as_ref();
        let needed = receivers::find(&pass.object.spec).is_some_and(receivers::Type::needs_secret);
        let Some(reference) = reference.filter(|_| needed) else {
            return Ok(receivers::path(&[], pass.name, pass.namespace));
        };
        if !is_name(&reference.name) {
            let message = format!(
                "Reconciliation failed terminally due to configuration error: spec.secretRef.name: {:?} is not a valid name",
                excerpt(&reference.name)
            );
            return Err(Fault::stall(Reason::ValidationFailed, message));
        }
        let secret = secret::read(&self.client, pass.namespace, &reference.name).await;
        let shown = format!("{}/{}", pass.namespace, reference.name);
        let secret = secret.map_err(|fault| {
            failed(format!(
                "unable to read token from secret '{shown}' error: {}",
                fault.message
            ))
        })?;
        let token = receivers::token(&secret).map_err(|why| failed(why.to_string()))?;
        Ok(receivers::path(token, pass.name, pass.namespace))
    }
}

impl Reconciler for Receivers {
    type Object = Receiver;
    type Status = ReceiverStatus;

    const FINALIZER: &'static str = finalizer::FLUX;

    fn suspended(object: &Receiver) -> bool {
        object.spec.suspend
    }

    fn timeout(&self, _: &Receiver) -> Duration {
        Duration::from_secs(60)
    }

    fn validate(&self, object: &Receiver) -> Result<(), Fault> {
        notification_specs::receiver::check_fields(&object.spec)
    }

    fn progressing(&self, object: &Receiver) -> Option<ReceiverStatus> {
        let mut status = object.status.clone().unwrap_or_default();
        let meta = &object.metadata;
        let set = |list: &mut Vec<Condition>, type_, value: api::ConditionStatus| {
            let message = "reconciliation in progress";
            let condition = Condition::new(
                type_,
                value,
                Reason::Progressing,
                message,
                meta.generation,
                runtime::now(),
            );
            conditions::set(list, condition);
        };
        conditions::remove(&mut status.conditions, condition_type::STALLED);
        set(&mut status.conditions, condition_type::RECONCILING, true.into());
        if conditions::get(&status.conditions, condition_type::READY).is_none() {
            set(
                &mut status.conditions,
                condition_type::READY,
                api::ConditionStatus::Unknown,
            );
        }
        conditions::sort(&mut status.conditions);
        Some(status)
    }

    fn faulted(&self, object: &Receiver, fault: &Fault) -> Outcome<ReceiverStatus> {
        outcome(object, Err(fault.clone().into()))
    }

    async fn reconcile(&self, pass: &Pass<'_, Receiver>) -> Outcome<ReceiverStatus> {
        outcome(pass.object, self.examine(pass).await)
    }

    async fn finalize(&self, _: &Pass<'_, Receiver>) -> Result<(), Fault> {
        Ok(())
    }
}

/// Returns the outcome of a pass with a path, or without one. Pure apart from the clock of new transitions.
fn outcome(object: &Receiver, found: Result<String, NoPath>) -> Outcome<ReceiverStatus> {
    let past = object.status.clone().unwrap_or_default();
    let status = status(object, &past, found.as_ref(), &runtime::now());
    let requeue = found.as_ref().err().map(NoPath::requeue);
    let found = found.map_err(|none| none.fault());
    let interval = object
        .spec
        .interval
        .map_or(INTERVAL, api::GoDuration::as_duration);
    let (severity, reason, message) = match &found {
        Ok(_) => {
            let shown = object
                .spec
                .interval
                .map_or_else(|| "10m0s".to_owned(), |interval| interval.to_string());
            let message = format!("Reconciliation finished, next run in {shown}");
            (Severity::Info, Reason::Succeeded, message)
        }
        Err(fault) => {
            let stalled = fault.class == api::Class::Stall;
            let reason = if stalled { fault.reason } else { Reason::Failed };
            (Severity::Error, reason, fault.message.clone())
        }
    };
    let news = ready(&past) != ready(&status);
    let events = news.then(|| EventDraft {
        severity,
        reason,
        message,
        metadata: Default::default(),
    });
    Outcome {
        status,
        requeue: requeue.unwrap_or(Requeue::Interval(interval)),
        events: events.into_iter().collect(),
        fault: found.err(),
    }
}

/// Returns status and message of the condition Ready, which tell news from repetitions.
fn ready(status: &ReceiverStatus) -> Option<(api::ConditionStatus, &str)> {
    conditions::get(&status.conditions, condition_type::READY)
        .map(|ready| (ready.status, ready.message.as_str()))
}

fn status(
    object: &Receiver,
    past: &ReceiverStatus,
    found: Result<&String, &NoPath>,
    now: &api::Time,
) -> ReceiverStatus {
    let meta = &object.metadata;
    let fault = found.err().map(NoPath::fault);
    let stalled = fault
        .as_ref()
        .is_some_and(|fault| fault.class == api::Class::Stall);
    let (reason, message) = match (found, &fault) {
        (_, Some(fault)) => (fault.reason, fault.message.clone()),
        (path, None) => (
            Reason::Succeeded,
            format!(
                "Receiver initialized for path: {}",
                path.map_or("", String::as_str)
            ),
        ),
    };
    let mut list = past.conditions.clone();
    conditions::remove(&mut list, condition_type::STALLED);
    conditions::remove(&mut list, condition_type::RECONCILING);
    let mut set = |type_, holds: bool, reason| {
        let condition = Condition::new(
            type_,
            holds,
            reason,
            message.as_str(),
            meta.generation,
            now.clone(),
        );
        conditions::set(&mut list, condition);
    };
    set(condition_type::READY, fault.is_none(), reason);
    if stalled {
        set(condition_type::STALLED, true, reason);
    } else if fault.is_some() {
        set(condition_type::RECONCILING, true, Reason::ProgressingWithRetry);
    }
    conditions::carry_times(&past.conditions, &mut list);
    conditions::sort(&mut list);
    let annotations = meta.annotations.as_ref();
    let requested = annotations
        .and_then(|all| all.get(annotation::RECONCILE_REQUESTED_AT))
        .cloned();
    ReceiverStatus {
        observed_generation: if fault.is_none() || stalled {
            meta.generation
        } else {
            past.observed_generation
        },
        conditions: list,
        // A path whose token is gone must not be served; a path that was valid before a mistake in the spec stays, and is not ready.
        webhook_path: match found {
            Ok(path) => Some(path.clone()),
            Err(NoPath::Taken) => None,
            Err(NoPath::Fault(fault)) if fault.reason == Reason::TokenNotFound => None,
            Err(NoPath::Fault(_)) => past.webhook_path.clone(),
        },
        url: None,
        last_handled_reconcile_at: requested.or_else(|| past.last_handled_reconcile_at.clone()),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn receiver() -> Receiver {
        serde_json::from_value(json!({
            "apiVersion": "notification.toolkit.fluxcd.io/v1", "kind": "Receiver",
            "metadata": {"name": "a", "namespace": "ns", "generation": 2, "annotations": {"reconcile.fluxcd.io/requestedAt": "x"}},
            "spec": {"type": "github", "resources": [], "secretRef": {"name": "token"}},
        }))
        .unwrap()
    }

    #[test]
    fn the_status_has_the_path_only_while_there_is_a_token() {
        let (object, now) = (receiver(), api::Time(Timestamp::from_second(1).unwrap()));
        let path = "/hook/1".to_owned();
        let ready = status(&object, &ReceiverStatus::default(), Ok(&path), &now);
        assert_eq!(
            (ready.webhook_path.as_deref(), ready.observed_generation),
            (Some("/hook/1"), Some(2))
        );
        assert_eq!(ready.last_handled_reconcile_at.as_deref(), Some("x"));
        let fault = NoPath::from(Fault::retry(Reason::TokenNotFound, "no token"));
        let first = status(&object, &ReceiverStatus::default(), Err(&fault), &now);
        assert_eq!((first.webhook_path, first.observed_generation), (None, None));
        let lost = status(&object, &ready, Err(&fault), &now);
        let said = conditions::get(&lost.conditions, "Reconciling").unwrap();
        assert_eq!(
            (lost.webhook_path, said.reason.as_str()),
            (None, "ProgressingWithRetry")
        );
        let fault = NoPath::from(Fault::stall(Reason::InvalidCELExpression, "odd"));
        let stalled = status(&object, &ready, Err(&fault), &now);
        assert!(conditions::is_true(&stalled.conditions, "Stalled") && stalled.webhook_path.is_some());
    }

    #[test]
    fn receiver_whose_path_is_taken_stalls_without_it_and_tries_again() {
        let mut object = receiver();
        object.status = Some(outcome(&object, Ok("/hook/1".to_owned())).status);
        let lost = outcome(&object, Err(NoPath::Taken));
        assert_eq!(lost.status.webhook_path, None);
        let stalled = conditions::get(&lost.status.conditions, "Stalled").unwrap();
        let ready = conditions::get(&lost.status.conditions, "Ready").unwrap();
        assert!(ready.is_false() && stalled.message.contains("use a longer random token"));
        assert!(matches!(lost.requeue, Requeue::After(_)));
    }

    #[test]
    fn events_tell_news_only() {
        let mut object = receiver();
        let first = outcome(&object, Ok("/hook/1".to_owned()));
        assert_eq!(first.events.len(), 1);
        assert_eq!(
            first.events[0].message,
            "Reconciliation finished, next run in 10m0s"
        );
        object.status = Some(first.status);
        assert!(outcome(&object, Ok("/hook/1".to_owned())).events.is_empty());
        assert_eq!(outcome(&object, Ok("/hook/2".to_owned())).events.len(), 1);
    }
}
