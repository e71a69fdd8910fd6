//! Waiting until the cluster follows a commit.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use api::annotation::RECONCILE_REQUESTED_AT;
use cluster::Patch;
use jiff::Timestamp;
use objects::ObjectRef;
use yaml::{Map, Value};

use crate::commands::flux::{Flux, life::MANAGER};

const INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    Wait,
    Done,
    Failed(String),
}

/// Requests a reconciliation, and waits until the object has the revision. `revision_at` is its field of the status.
pub(super) async fn wait(
    flux: &Flux,
    object: &ObjectRef,
    revision_at: &[&str],
    revision: &str,
) -> Result<()> {
    let name = super::steps::quoted(object);
    flux.waiting(&format!("waiting for {} {name} to be reconciled", object.kind));
    let request = Timestamp::now().to_string();
    let annotations = Map::from([(RECONCILE_REQUESTED_AT, request.as_str())]);
    let metadata = Map::from([("annotations", annotations)]);
    let patch = Patch::Merge(Map::from([("metadata", metadata)]).into());
    flux.cluster.patch(object, &patch, MANAGER).await?;
    loop {
        let live = flux.cluster.get(object).await?;
        let live = live.with_context(|| format!("{} {name} was deleted", object.kind))?;
        match judge(&live, &request, revision_at, revision) {
            Verdict::Done => break,
            Verdict::Failed(why) => bail!("{} {name}: {why}", object.kind),
            Verdict::Wait => flux.cluster.pause(INTERVAL).await.with_context(|| {
                format!(
                    "{} {name} has not reached {revision} within the timeout: {}",
                    object.kind,
                    ready(&live).map_or("it has no Ready condition", |(_, message)| message)
                )
            })?,
        }
    }
    flux.success(&format!("{} reconciled successfully", object.kind));
    Ok(())
}

/// Decides about a live object. A failure counts only after the request was handled: an older one may be about an older commit.
fn judge(live: &Value, request: &str, revision_at: &[&str], revision: &str) -> Verdict {
    let text = |path: &[&str]| live.pointer(path).and_then(Value::as_str);
    if live.pointer(&["spec", "suspend"]).and_then(Value::as_bool) == Some(true) {
        return Verdict::Failed("it is suspended".to_owned());
    }
    let number = |path: &[&str]| live.pointer(path).and_then(Value::as_i64);
    let observed = number(&["status", "observedGeneration"]);
    if observed.is_some() && observed != number(&["metadata", "generation"]) {
        return Verdict::Wait;
    }
    let is_there = text(revision_at) == Some(revision);
    match ready(live) {
        Some(("True", _)) if is_there => Verdict::Done,
        Some(("False", message)) if text(&["status", "lastHandledReconcileAt"]) == Some(request) => {
            Verdict::Failed(message.to_owned())
        }
        _ => Verdict::Wait,
    }
}

/// Returns status and message of the condition Ready.
fn ready(live: &Value) -> Option<(&str, &str)> {
    let conditions = live.pointer(&["status", "conditions"])?.as_seq()?;
    let mut conditions = conditions.iter();
    let found = conditions.find(|one| one.get("type").and_then(Value::as_str) == Some("Ready"))?;
    let message = found.get("message").and_then(Value::as_str);
    Some((found.get("status")?.as_str()?, message.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn failures_count_once_the_request_is_handled() {
        let object = |generation: i64, revision: &str, ready: &str, handled: &str| {
            Value::from_json(json!({
                "metadata": { "generation": 2 },
                "status": {
                    "observedGeneration": generation,
                    "lastHandledReconcileAt": handled,
                    "lastAttemptedRevision": revision,
                    "conditions": [{ "type": "Ready", "status": ready, "message": "why" }],
                },
            }))
        };
        let failed = Verdict::Failed("why".to_owned());
        for (live, expected) in [
            (object(2, "new", "True", "old request"), Verdict::Done),
            (object(1, "new", "True", "request"), Verdict::Wait),
            (object(2, "old", "True", "request"), Verdict::Wait),
            (object(2, "old", "False", "old request"), Verdict::Wait),
            (object(2, "new", "Unknown", "request"), Verdict::Wait),
            (object(2, "new", "False", "request"), failed),
        ] {
            let at = ["status", "lastAttemptedRevision"];
            assert_eq!(judge(&live, "request", &at, "new"), expected, "{live:?}");
        }
        let suspended = Value::from_json(json!({ "spec": { "suspend": true } }));
        let verdict = judge(&suspended, "", &["status"], "new");
        assert_eq!(verdict, Verdict::Failed("it is suspended".to_owned()));
    }
}
