//! The kinds under control, and the status of Alerts and Providers, which says if they can work.

mod alert;
mod provider;
mod receiver;

use api::{
    Condition, Fault, Reason, Time, annotation, condition_type, conditions,
    notification::{AlertStatus, ProviderStatus},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use runtime::{EventDraft, Outcome, Requeue, Severity};

pub(crate) use alert::Alerts;
pub(crate) use provider::Providers;
pub(crate) use receiver::Receivers;

type Status = AlertStatus;
const _: fn(ProviderStatus) -> Status = |status| status;

type Delivered = Result<(), String>;

/// Returns the outcome of a pass: ready, or not because of a fault. Pure apart from the clock of new transitions.
fn outcome(
    meta: &ObjectMeta,
    past: Option<&Status>,
    fault: Option<Fault>,
    delivered: Option<&Delivered>,
    requeue: Requeue,
) -> Outcome<Status> {
    let past = past.cloned().unwrap_or_default();
    let status = status(meta, &past, fault.as_ref(), delivered, &runtime::now());
    let events = fault
        .iter()
        .filter(|fault| is_news(&past, fault))
        .map(|fault| EventDraft {
            severity: Severity::Error,
            reason: fault.reason,
            message: fault.message.clone(),
            metadata: Default::default(),
        });
    Outcome {
        events: events.collect(),
        status,
        requeue,
        fault,
    }
}

fn is_news(past: &Status, fault: &Fault) -> bool {
    conditions::get(&past.conditions, condition_type::READY)
        .is_none_or(|ready| !ready.is_false() || ready.message != fault.message)
}

fn status(
    meta: &ObjectMeta,
    past: &Status,
    fault: Option<&Fault>,
    delivered: Option<&Delivered>,
    now: &Time,
) -> Status {
    let stalled = fault.is_some_and(|fault| fault.class == api::Class::Stall);
    let (reason, message) = fault.map_or((Reason::Succeeded, "Initialized"), |fault| {
        (fault.reason, fault.message.as_str())
    });
    let mut list = past.conditions.clone();
    conditions::remove(&mut list, condition_type::STALLED);
    conditions::remove(&mut list, condition_type::RECONCILING);
    let mut set = |type_, holds: bool, reason| {
        let condition = Condition::new(type_, holds, reason, message, meta.generation, now.clone());
        conditions::set(&mut list, condition);
    };
    set(condition_type::READY, fault.is_none(), reason);
    if stalled {
        set(condition_type::STALLED, true, reason);
    } else if fault.is_some() {
        set(condition_type::RECONCILING, true, Reason::ProgressingWithRetry);
    }
    if let Some(delivered) = delivered {
        let (reason, message) = match delivered {
            Ok(()) => (Reason::Succeeded, "the last notification was delivered"),
            Err(error) => (Reason::NotificationDispatchFailed, error.as_str()),
        };
        let condition = Condition::new(
            condition_type::DELIVERED,
            delivered.is_ok(),
            reason,
            message,
            meta.generation,
            now.clone(),
        );
        conditions::set(&mut list, condition);
    }
    conditions::carry_times(&past.conditions, &mut list);
    conditions::sort(&mut list);
    let observed = if fault.is_none() || stalled {
        meta.generation
    } else {
        past.observed_generation
    };
    let requested = meta
        .annotations
        .as_ref()
        .and_then(|all| all.get(annotation::RECONCILE_REQUESTED_AT))
        .cloned();
    Status {
        observed_generation: observed,
        conditions: list,
        last_handled_reconcile_at: requested.or_else(|| past.last_handled_reconcile_at.clone()),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    fn meta(generation: i64) -> ObjectMeta {
        ObjectMeta {
            generation: Some(generation),
            ..ObjectMeta::default()
        }
    }

    fn at(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    fn types(status: &Status) -> Vec<(&str, &str)> {
        status
            .conditions
            .iter()
            .map(|c| (c.type_.as_str(), c.status.as_str()))
            .collect()
    }

    #[test]
    fn a_status_says_ready_stalled_or_retrying() {
        let ready = status(&meta(1), &Status::default(), None, None, &at(1));
        assert_eq!(
            (types(&ready), ready.observed_generation),
            (vec![("Ready", "True")], Some(1))
        );
        let stall = Fault::stall(Reason::UnsupportedField, "spec.type: nats");
        let stalled = status(&meta(2), &ready, Some(&stall), None, &at(2));
        assert_eq!(types(&stalled), [("Stalled", "True"), ("Ready", "False")]);
        assert_eq!(stalled.observed_generation, Some(2));
        let retry = Fault::retry(Reason::AuthenticationFailed, "no Secret");
        let retrying = status(&meta(3), &stalled, Some(&retry), None, &at(3));
        assert_eq!(types(&retrying), [("Reconciling", "True"), ("Ready", "False")]);
        assert_eq!(retrying.observed_generation, Some(2));
        assert_eq!(
            conditions::get(&retrying.conditions, "Ready")
                .unwrap()
                .last_transition_time,
            at(2)
        );
    }

    #[test]
    fn result_of_the_last_delivery_stays_until_the_next() {
        let failed = Err("answered with status 500".to_owned());
        let failing = status(&meta(1), &Status::default(), None, Some(&failed), &at(1));
        assert_eq!(types(&failing), [("Ready", "True"), ("Delivered", "False")]);
        assert_eq!(status(&meta(1), &failing, None, None, &at(2)), failing);
        let again = status(&meta(1), &failing, None, Some(&Ok(())), &at(3));
        assert_eq!(types(&again), [("Ready", "True"), ("Delivered", "True")]);
        let delivered = conditions::get(&again.conditions, "Delivered").unwrap();
        assert_eq!(
            (delivered.last_transition_time.clone(), delivered.reason.as_str()),
            (at(3), "Succeeded")
        );
    }

    #[test]
    fn the_same_again_is_the_same_status() {
        for fault in [
            None,
            Some(Fault::stall(Reason::UnsupportedField, "m")),
            Some(Fault::retry(Reason::AuthenticationFailed, "m")),
        ] {
            let once = status(&meta(1), &Status::default(), fault.as_ref(), None, &at(1));
            assert_eq!(status(&meta(1), &once, fault.as_ref(), None, &at(9)), once);
            assert!(fault.is_none_or(|fault| is_news(&Status::default(), &fault) && !is_news(&once, &fault)));
        }
    }
}
