//! Readiness of an object, and waiting for it.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use fleet::Kind;
use jiff::Timestamp;
use objects::{
    ObjectRef,
    kstatus::{self, Status},
    readiness::StatusNeed,
};
use yaml::Value;

use crate::{commands::flux::Flux, terminal::printable};

/// Interval of reading an object.
pub(super) const POLL: Duration = Duration::from_millis(500);

/// Time in which a controller that may write a status has to begin.
const FIRST_STATUS: Duration = Duration::from_secs(3);

/// The status that is expected of an object's controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    Status,
    /// The object is ready once it exists.
    NoStatus,
    /// A status if the controller writes one: Weir's does to Alerts and Providers, the original does not.
    MaybeStatus,
}

impl Expected {
    /// Returns the status that is expected of an object of a kind.
    pub(super) fn of(kind: &Kind, object: &Value) -> Self {
        match kind.features.has_status {
            false => Self::MaybeStatus,
            true if super::live::is_static(object) => Self::NoStatus,
            true => Self::Status,
        }
    }

    /// Returns true for an object that is ready without a status, `waited` after it was written.
    fn is_static(self, object: &Value, waited: Duration) -> bool {
        match self {
            Self::Status => false,
            Self::NoStatus => true,
            Self::MaybeStatus => condition(object, "Ready").is_none() && waited >= FIRST_STATUS,
        }
    }
}

/// State of an object that is waited for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Ready,
    /// The message of the controller about its work.
    Waiting(String),
    Failed(String),
}

/// Returns the state of an object by its status, as flux does. A static object has none.
pub(super) fn progress(object: &Value, is_static: bool, now: Timestamp) -> Progress {
    if !is_static && !is_observed(object) {
        // Controllers don't say that they observed a generation before the first success.
        let is_about_this = generation_of_ready(object) == Some(generation(object));
        let message = if is_about_this { message(object) } else { "" };
        return Progress::Waiting(message.to_owned());
    }
    computed(object, now)
}

/// Returns the state of an object by kstatus.
pub(super) fn computed(object: &Value, now: Timestamp) -> Progress {
    let health = kstatus::status(object, now);
    match health.status {
        Status::Current => Progress::Ready,
        Status::InProgress => Progress::Waiting(health.message),
        _ => Progress::Failed(health.message),
    }
}

/// Returns true if the status is about the newest generation.
fn is_observed(object: &Value) -> bool {
    let observed = object.pointer(&["status", "observedGeneration"]);
    let observed = observed.and_then(Value::as_i64).unwrap_or_default();
    let is_newest = match generation_of_ready(object) {
        None => return false,
        // Some controllers don't say it of each condition.
        Some(0) => observed == generation(object),
        Some(of_ready) => of_ready == generation(object),
    };
    observed >= 1 && is_newest
}

fn generation(object: &Value) -> i64 {
    let generation = object.pointer(&["metadata", "generation"]);
    generation.and_then(Value::as_i64).unwrap_or_default()
}

/// Returns the generation that the condition Ready is about, 0 if it does not say it; `None` without the condition.
fn generation_of_ready(object: &Value) -> Option<i64> {
    let ready = condition(object, "Ready")?;
    let generation = ready.get("observedGeneration").and_then(Value::as_i64);
    Some(generation.unwrap_or_default())
}

/// Returns a condition of an object.
pub(super) fn condition<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let conditions = object.pointer(&["status", "conditions"])?.as_seq()?;
    let is_named = |condition: &&Value| condition.get("type").and_then(Value::as_str) == Some(name);
    conditions.iter().find(is_named)
}

/// Returns the message of the condition Ready.
pub(super) fn message(object: &Value) -> &str {
    let ready = condition(object, "Ready").and_then(|ready| ready.get("message"));
    ready.and_then(Value::as_str).unwrap_or_default()
}

/// Returns the revision that a controller fetched or applied.
pub(super) fn revision<'a>(kind: &Kind, object: &'a Value) -> Option<&'a str> {
    let status = object.get("status")?;
    let text = |value: &'a Value, path: &[&str]| value.pointer(path).and_then(Value::as_str);
    if kind.is_source() {
        return text(status, &["artifact", "revision"]);
    }
    if *kind == fleet::kind::HELM_RELEASE {
        let newest = status
            .get("history")
            .and_then(Value::as_seq)
            .and_then(<[Value]>::first);
        return newest
            .and_then(|newest| text(newest, &["chartVersion"]))
            .or_else(|| text(status, &["lastAttemptedRevision"]));
    }
    text(status, &["lastAppliedRevision"]).or_else(|| text(status, &["lastAttemptedRevision"]))
}

/// Waits until an object is ready, and returns it.
pub(super) async fn wait(flux: &Flux, reference: &ObjectRef, expected: Expected) -> Result<Value> {
    let of = format!("{} {}", reference.kind, reference.name);
    // The definitions of the original have no field for the status of Alerts and Providers.
    let expected = match expected {
        Expected::MaybeStatus if flux.cluster.status_need(reference).await? == StatusNeed::NotRequired => {
            Expected::NoStatus
        }
        expected => expected,
    };
    let started = Instant::now();
    poll(flux, reference, &of, |object| {
        let is_static = expected.is_static(object, started.elapsed());
        progress(object, is_static, Timestamp::now())
    })
    .await
}

/// Reads an object until `judge` says that it is ready, and shows the messages of its controller meanwhile.
pub(super) async fn poll(
    flux: &Flux,
    reference: &ObjectRef,
    of: &str,
    judge: impl Fn(&Value) -> Progress,
) -> Result<Value> {
    let line = flux
        .terminal
        .spinner(&format!("{of}: waiting for the controller"));
    let polled = async {
        let (mut last, mut warned) = (String::new(), String::new());
        loop {
            let object = match flux.cluster.get(reference).await {
                Err(_) if flux.cluster.cancellation().is_cancelled() => return Err(late(&last)),
                read => read?.with_context(|| format!("{of} was deleted"))?,
            };
            let is_about_this = match judge(&object) {
                Progress::Ready => return Ok(object),
                Progress::Failed(message) => bail!("{}", printable(&message)),
                Progress::Waiting(message) => !message.is_empty(),
            };
            let failure = failed_attempt(&object).filter(|_| is_about_this);
            if let Some(message) = failure.filter(|message| **message != *warned) {
                message.clone_into(&mut warned);
                let message = printable(message);
                flux.warning(&format!("{of}: {message} (the controller tries again)"));
            }
            let message = failure.unwrap_or_else(|| reconciling(&object));
            if !message.is_empty() {
                message.clone_into(&mut last);
                if let Some(line) = &line {
                    line.set_message(format!("{of}: {}", printable(message)));
                }
            }
            if flux.cluster.pause(POLL).await.is_err() {
                return Err(late(&last));
            }
        }
    };
    let ended = polled.await;
    if let Some(line) = line {
        line.finish_and_clear();
    }
    ended
}

/// Returns the error of a wait that took too long.
fn late(last: &str) -> anyhow::Error {
    match last {
        "" => anyhow!("no answer of the controller"),
        last => anyhow!("the last message of the controller: {}", printable(last)),
    }
}

/// Returns why the last attempt failed, if the controller will try again.
fn failed_attempt(object: &Value) -> Option<&str> {
    let text = |name: &str, field: &str| condition(object, name)?.get(field)?.as_str();
    let tries_again = text("Reconciling", "reason") == Some("ProgressingWithRetry");
    let failed = tries_again && text("Ready", "status") == Some("False");
    text("Ready", "message").filter(|message| failed && !message.is_empty())
}

/// Returns the message of the controller about its work, or why the object is not ready.
fn reconciling(object: &Value) -> &str {
    let doing = condition(object, "Reconciling").and_then(|condition| condition.get("message"));
    doing.and_then(Value::as_str).unwrap_or_else(|| message(object))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn state(status: &serde_json::Value, is_static: bool) -> Progress {
        let object = json!({"kind": "Kustomization", "metadata": {"generation": 2}, "status": status});
        progress(&Value::from_json(object), is_static, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn ready_of_the_newest_generation_counts() {
        let ready = |status: &str, observed: i64| json!({"type": "Ready", "status": status, "message": "m", "observedGeneration": observed});
        let status = |observed: i64, conditions: serde_json::Value| json!({"observedGeneration": observed, "conditions": conditions});
        let waiting = Progress::Waiting(String::new());
        assert_eq!(
            state(&status(2, json!([ready("True", 2)])), false),
            Progress::Ready
        );
        assert_eq!(
            state(&status(2, json!([ready("True", 0)])), false),
            Progress::Ready
        );
        for old in [
            json!(null),
            status(2, json!([])),
            status(2, json!([ready("True", 1)])),
            status(1, json!([ready("True", 0)])),
        ] {
            assert_eq!(state(&old, false), waiting, "{old}");
        }
        let first = state(&status(-1, json!([ready("False", 2)])), false);
        assert_eq!(first, Progress::Waiting("m".to_owned()));
        let failing = state(&status(2, json!([ready("False", 2)])), false);
        assert_eq!(failing, Progress::Waiting("m".to_owned()));
        let stalled = json!([ready("False", 2), {"type": "Stalled", "status": "True", "message": "s"}]);
        assert_eq!(
            state(&status(2, stalled), false),
            Progress::Failed("s".to_owned())
        );
        assert_eq!(state(&json!(null), true), Progress::Ready);
    }

    #[test]
    fn status_of_alerts_is_waited_for_a_moment() {
        let bare = Value::from_json(json!({"kind": "Alert"}));
        let conditions = json!([{"type": "Ready", "status": "False"}]);
        let failed = Value::from_json(json!({"kind": "Alert", "status": {"conditions": conditions}}));
        assert_eq!(Expected::of(&fleet::kind::ALERT, &bare), Expected::MaybeStatus);
        let expected = Expected::MaybeStatus;
        assert!(!expected.is_static(&bare, Duration::ZERO));
        assert!(expected.is_static(&bare, FIRST_STATUS));
        assert!(!expected.is_static(&failed, FIRST_STATUS));
    }

    #[test]
    fn failed_attempts_are_those_that_are_repeated() {
        let object = |status: &str, reason: &str| {
            let conditions = json!([
                {"type": "Ready", "status": status, "message": "no such path"},
                {"type": "Reconciling", "status": "True", "reason": reason, "message": "Fetching"},
            ]);
            Value::from_json(json!({"status": {"conditions": conditions}}))
        };
        let failed = object("False", "ProgressingWithRetry");
        assert_eq!(failed_attempt(&failed), Some("no such path"));
        assert_eq!(reconciling(&failed), "Fetching");
        for other in [
            object("Unknown", "ProgressingWithRetry"),
            object("False", "Progressing"),
        ] {
            assert_eq!(failed_attempt(&other), None);
        }
    }

    #[test]
    fn revisions_are_those_of_the_kind() {
        let object = json!({"status": {
            "artifact": {"revision": "main@sha1:1"}, "lastAppliedRevision": "a", "lastAttemptedRevision": "b",
            "history": [{"chartVersion": "2"}, {"chartVersion": "1"}],
        }});
        let object = Value::from_json(object);
        for (kind, expected) in [
            (&fleet::kind::GIT_REPOSITORY, "main@sha1:1"),
            (&fleet::kind::KUSTOMIZATION, "a"),
            (&fleet::kind::HELM_RELEASE, "2"),
        ] {
            assert_eq!(revision(kind, &object), Some(expected));
        }
    }
}
