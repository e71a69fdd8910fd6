//! Readiness of live objects, and waiting for it.

use std::time::Duration;

use cluster::{Cluster, Error};
use jiff::Timestamp;
use objects::{
    ObjectRef, Vocabulary,
    readiness::{self as rules, Policy, Readiness, StatusNeed},
};
use tokio::time::Instant;
use yaml::Value;

#[derive(Debug, Clone, Copy)]
pub struct WaitOptions {
    pub limit: Duration,
    /// True if the object exists at the start, as it was just applied.
    pub existed: bool,
    /// True if an object that is gone has ended ([`ends_by_deletion`]).
    pub ends_by_deletion: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waited {
    /// The object is ready, or is considered so for want of rights; with the warnings about that.
    Ready(Vec<String>),
    /// The object failed, for these reasons, and waiting will not make it ready.
    Failed(Vec<String>),
    /// The object existed and was deleted.
    Disappeared,
    /// Timeout; the reasons why the object was not ready last.
    TimedOut(Vec<String>),
    Cancelled,
}

/// Checks a live object. With `not_ready_is_error`, a condition that is not met yet is an error, otherwise a warning.
///
/// # Errors
/// If the API server can't be asked for the definition of the kind.
pub async fn readiness(
    cluster: &Cluster,
    vocabulary: &Vocabulary,
    object: &Value,
    not_ready_is_error: bool,
) -> Result<Readiness, Error> {
    // With a status in the object, the kind is known to have one.
    let status = match object.get("status") {
        Some(status) if !status.is_null() => StatusNeed::Required,
        _ => cluster.status_need(&ObjectRef::of(object)?).await?,
    };
    let policy = Policy {
        vocabulary,
        status,
        now: Timestamp::now(),
        not_ready_is_error,
    };
    Ok(rules::check(object, policy))
}

/// Returns true if an applied object of a built-in kind without a status is ready: it stays so as long as nobody changes it.
#[must_use]
pub fn is_ready_at_once(vocabulary: &Vocabulary, reference: &ObjectRef, object: &Value) -> bool {
    let need = rules::builtin_status(&reference.group, &reference.kind);
    if need != Some(StatusNeed::NotRequired) || object.get("status").is_some_and(|status| !status.is_null()) {
        return false;
    }
    let policy = Policy {
        vocabulary,
        status: StatusNeed::NotRequired,
        now: Timestamp::now(),
        not_ready_is_error: true,
    };
    rules::check(object, policy)
        == Readiness {
            ready: true,
            ..Readiness::default()
        }
}

/// Returns true for an object that its controller deletes some time after its end: a Job with `ttlSecondsAfterFinished`, also of the groups
/// that took over the kind and the field, or a Workflow of Argo with `ttlStrategy`.
#[must_use]
pub fn ends_by_deletion(object: &Value) -> bool {
    let field = match object.get("kind").and_then(Value::as_str) {
        Some("Job") => "ttlSecondsAfterFinished",
        Some("Workflow") => "ttlStrategy",
        _ => return false,
    };
    object.pointer(&["spec", field]).is_some_and(|ttl| !ttl.is_null())
}

/// Waits until an object is ready. An object that does not exist yet is waited for too, unless it existed before.
pub async fn wait_ready(
    cluster: &Cluster,
    vocabulary: &Vocabulary,
    reference: &ObjectRef,
    options: WaitOptions,
) -> Result<Waited, Error> {
    let polled = cluster.within_wait();
    cluster
        .waiting(poll_ready(&polled, vocabulary, reference, options))
        .await
}

async fn poll_ready(
    cluster: &Cluster,
    vocabulary: &Vocabulary,
    reference: &ObjectRef,
    options: WaitOptions,
) -> Result<Waited, Error> {
    let deadline = Instant::now() + options.limit;
    let mut pause = Duration::from_millis(50);
    let (mut existed, mut ends_by_deletion) = (options.existed, options.ends_by_deletion);
    let mut last = vec![format!("{reference} does not exist")];
    loop {
        match cluster.get(reference).await {
            Ok(Some(object)) => {
                existed = true;
                ends_by_deletion |= self::ends_by_deletion(&object);
                let readiness = readiness(cluster, vocabulary, &object, false).await?;
                if !readiness.errors.is_empty() {
                    return Ok(Waited::Failed(readiness.errors));
                }
                if readiness.ready {
                    return Ok(Waited::Ready(readiness.warnings));
                }
                last = readiness.warnings;
            }
            Ok(None) if existed && ends_by_deletion => return Ok(Waited::Ready(Vec::new())),
            Ok(None) if existed => return Ok(Waited::Disappeared),
            Ok(None) => {}
            Err(Error::Cancelled) => return Ok(Waited::Cancelled),
            Err(error) => return Err(error),
        }
        if Instant::now() + pause > deadline {
            return Ok(Waited::TimedOut(last));
        }
        if cluster.pause_wait(pause).await.is_err() {
            return Ok(Waited::Cancelled);
        }
        pause = (pause * 2).min(Duration::from_millis(500));
    }
}
