//! Requests to the controller: an annotation, and waiting for the status that answers it.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use api::kluctl::gitops::RequestKind;
use cluster::{Cluster, Patch};
use objects::ObjectRef;
use tokio_util::sync::CancellationToken;
use yaml::{Map, Value};

use super::{
    GitOps, MANAGER,
    flags::LogFlags,
    logs::{self, LogTail, Wanted},
    patch::Overrides,
    select::{full_name, live},
};
use crate::terminal::printable;

/// Interval of reading the status.
const POLL: Duration = Duration::from_millis(500);
/// Time after which the terminal hints at a request that the controller did not begin.
const HINT_AFTER: Duration = Duration::from_secs(15);

/// A request for any KluctlDeployment.
pub(super) struct Request<'a> {
    kind: RequestKind,
    overrides: Overrides,
    logs: &'a LogFlags,
}

impl<'a> Request<'a> {
    pub(super) fn new(kind: RequestKind, overrides: Overrides, logs: &'a LogFlags) -> Self {
        Self {
            kind,
            overrides,
            logs,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Handled {
    /// ID of the stored result.
    pub(super) result_id: Option<String>,
    /// Error of the command.
    pub(super) error: Option<String>,
}

/// Makes the request for each object, one after the other, and calls `show` with the answer. A failure doesn't keep the others from
/// their turn, but a cancellation does. Fails if anything failed for any object.
pub(super) fn run(
    ops: &GitOps,
    request: &Request<'_>,
    all: &[ObjectRef],
    mut show: impl FnMut(&ObjectRef, &Handled) -> Result<()>,
) -> Result<()> {
    let mut failures = Vec::new();
    for of in all {
        let handled = ops.block_on(handle(ops, request, of));
        let done = handled.and_then(|handled| {
            show(of, &handled)?;
            match handled.error {
                Some(error) => bail!("{}", printable(&error)),
                None => Ok(()),
            }
        });
        match done {
            Ok(()) if request.kind == RequestKind::Reconcile => {
                ops.terminal.success(&format!("Reconciled {}", full_name(of)));
            }
            Ok(()) => {}
            Err(error) if ops.cluster.cancellation().is_cancelled() || all.len() == 1 => return Err(error),
            Err(error) => {
                ops.terminal.failure(&format!("{}: {error:#}", full_name(of)));
                failures.push(full_name(of));
            }
        }
    }
    match failures.as_slice() {
        [] => Ok(()),
        failed => bail!("{} failed for {}", request.kind.name(), failed.join(", ")),
    }
}

/// Makes the request for one object, and waits for the answer.
async fn handle(ops: &GitOps, request: &Request<'_>, of: &ObjectRef) -> Result<Handled> {
    let object = live(&ops.cluster, of).await?;
    let value = jiff::Timestamp::now().to_string();
    let annotation = annotation(&value, request.overrides.patch(&object));
    let tail = logs::tail(ops, request.logs).await;
    let patch = Value::Map(Map::from([(
        "metadata",
        Map::from([(
            "annotations",
            Map::from([(request.kind.annotation(), annotation.as_str())]),
        )]),
    )]));
    // An interruption that ends this request too would leave open if the controller has it to do.
    let uncancelled = ops.cluster.until(CancellationToken::new());
    uncancelled.patch(of, &Patch::Merge(patch), MANAGER).await?;
    let mut waiting = Waiting {
        ops,
        kind: request.kind,
        of,
        value: &value,
        reconcile_id: None,
        last_message: String::new(),
        tail,
        with_time: request.logs.log_time,
    };
    match waiting.end().await {
        Ok(handled) => {
            waiting.last_lines(request.logs.log_grouping_time).await;
            Ok(handled)
        }
        Err(error) if !ops.cluster.cancellation().is_cancelled() => Err(error),
        Err(_) if waiting.reconcile_id.is_some() => bail!(
            "cancelled: the controller works on the request for {} all the same, see its status",
            full_name(of)
        ),
        Err(_) => {
            let withdrawn = withdraw(&uncancelled, of, request.kind.annotation(), &annotation).await;
            withdrawn.with_context(|| {
                format!(
                    "cancelled: the request for {} could not be withdrawn, the controller may work on it",
                    full_name(of)
                )
            })?;
            bail!(
                "cancelled: the request for {} was withdrawn, the controller did not begin",
                full_name(of)
            )
        }
    }
}

fn annotation(value: &str, patch: Option<Value>) -> String {
    let mut request = Map::from([("requestValue", Value::from(value))]);
    if let Some(patch) = patch {
        request.insert("overridesPatch", patch);
    }
    yaml::print::json(&Value::Map(request))
}

/// Removes the annotation of a request, if the controller has not done it yet.
async fn withdraw(cluster: &Cluster, of: &ObjectRef, name: &str, value: &str) -> Result<(), cluster::Error> {
    let path = format!(
        "/metadata/annotations/{}",
        name.replace('~', "~0").replace('/', "~1")
    );
    let operation = |op: &str| Map::from([("op", Value::from(op)), ("path", Value::from(path.as_str()))]);
    let mut test = operation("test");
    test.insert("value", value);
    let operations = vec![Value::Map(test), Value::Map(operation("remove"))];
    cluster
        .patch(of, &Patch::Json(Value::Seq(operations)), MANAGER)
        .await?;
    Ok(())
}

/// Waiting for the answer to a request.
struct Waiting<'a> {
    ops: &'a GitOps,
    kind: RequestKind,
    of: &'a ObjectRef,
    value: &'a str,
    /// The ID of the reconciliation, once it has begun.
    reconcile_id: Option<String>,
    last_message: String,
    tail: Option<LogTail>,
    with_time: bool,
}

impl Waiting<'_> {
    async fn end(&mut self) -> Result<Handled> {
        let waits = format!("{}: Waiting for the controller", full_name(self.of));
        self.ops.terminal.info(&waits);
        let line = self.ops.terminal.spinner(&waits);
        let ended = self.poll(line.as_ref()).await;
        if let Some(line) = line {
            line.finish_and_clear();
        }
        ended
    }

    async fn poll(&mut self, line: Option<&indicatif::ProgressBar>) -> Result<Handled> {
        let (asked, mut hinted) = (Instant::now(), false);
        loop {
            let object = live(&self.ops.cluster, self.of).await?;
            let answer = object.pointer(&["status", &format!("{}RequestResult", self.kind.name())]);
            let answer = answer.filter(|answer| {
                answer
                    .pointer(&["request", "requestValue"])
                    .and_then(Value::as_str)
                    == Some(self.value)
            });
            if let Some(answer) = answer {
                let text = |name: &str| {
                    answer
                        .get(name)
                        .and_then(Value::as_str)
                        .filter(|text| !text.is_empty())
                };
                self.reconcile_id
                    .get_or_insert_with(|| text("reconcileId").unwrap_or_default().to_owned());
                if text("endTime").is_some() {
                    return Ok(Handled {
                        result_id: text("resultId").map(str::to_owned),
                        error: text("commandError").map(str::to_owned),
                    });
                }
                self.tell(&object, line);
            } else if !hinted && asked.elapsed() > HINT_AFTER {
                hinted = true;
                self.ops.terminal.warning(
                    "The controller has not begun yet. It may be busy with this object, not running, or watching other namespaces only",
                );
            }
            self.log_lines(POLL).await?;
        }
    }

    /// Shows the progress that the controller reports.
    fn tell(&mut self, object: &Value, line: Option<&indicatif::ProgressBar>) {
        let Some(message) = progress(object).filter(|message| *message != self.last_message) else {
            return;
        };
        let text = format!("{}: {}", full_name(self.of), printable(message));
        message.clone_into(&mut self.last_message);
        match line {
            Some(line) => line.set_message(text),
            None => self.ops.terminal.info(&text),
        }
    }

    /// Prints lines of the log for some time.
    async fn log_lines(&mut self, time: Duration) -> Result<(), cluster::Error> {
        let pause = self.ops.cluster.pause(time);
        let (Some(tail), Some(id)) = (&mut self.tail, &self.reconcile_id) else {
            return pause.await;
        };
        let wanted = Wanted {
            objects: std::slice::from_ref(self.of),
            reconcile_id: Some(id),
        };
        let (terminal, with_time) = (&self.ops.terminal, self.with_time);
        let printing = async {
            while let Some(line) = tail.next().await {
                if wanted.accepts(&line) {
                    terminal.plain(&line.printed(with_time));
                }
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            ended = pause => ended,
            () = printing => Ok(()),
        }
    }

    /// Prints the lines that come after the end of the work.
    async fn last_lines(&mut self, time: Duration) {
        if self.tail.is_some() {
            // Nothing is lost that isn't in the log of the controller.
            let _ = self.log_lines(time).await;
        }
    }
}

fn progress(object: &Value) -> Option<&str> {
    let conditions = object.pointer(&["status", "conditions"])?.as_seq()?;
    let reconciling =
        |condition: &&Value| condition.get("type").and_then(Value::as_str) == Some("Reconciling");
    conditions.iter().find(reconciling)?.get("message")?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn annotation_has_the_value_before_the_patch() {
        assert_eq!(annotation("now", None), r#"{"requestValue":"now"}"#);
        let patch = Value::from_json(json!({"spec": {"dryRun": true}}));
        assert_eq!(
            annotation("now", Some(patch)),
            r#"{"requestValue":"now","overridesPatch":{"spec":{"dryRun":true}}}"#
        );
    }

    #[test]
    fn progress_is_the_message_of_reconciling() {
        let object = json!({"status": {"conditions": [
            {"type": "Ready", "message": "a"}, {"type": "Reconciling", "message": "b"},
        ]}});
        assert_eq!(progress(&Value::from_json(object)), Some("b"));
        assert_eq!(
            progress(&Value::from_json(json!({"status": {"conditions": 1}}))),
            None
        );
    }
}
