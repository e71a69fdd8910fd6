//! The pods of workloads: a workload in progress has failed if one of its pods has.

use jiff::Timestamp;
use yaml::{Map, Value};

use super::{Health, Status, kind, status, text};
use crate::{meta, split_api_version};

/// Returns the label selector of the pods that decide about a workload in progress; `None` for other objects.
#[must_use]
pub fn pod_selector(object: &Value, health: &Health) -> Option<String> {
    let (group, _) = split_api_version(text(object, "apiVersion"));
    let is_workload = matches!(
        (group, kind(object)),
        ("apps" | "extensions", "Deployment" | "ReplicaSet") | ("apps", "StatefulSet")
    );
    if !is_workload || health.status != Status::InProgress {
        return None;
    }
    let selector = object.pointer(&["spec", "selector"])?.as_map()?;
    let selector = selector_text(selector)?;
    // An empty selector would select all pods of the namespace.
    (!selector.is_empty()).then_some(selector)
}

/// Returns the selector in the notation of queries; `None` if an expression has an unknown operator.
fn selector_text(selector: &Map) -> Option<String> {
    let labels = selector.get_map("matchLabels").into_iter().flat_map(Map::iter);
    let labels = labels.map(|(name, value)| Some(format!("{name}={}", value.as_str()?)));
    let expressions = selector.get("matchExpressions").and_then(Value::as_seq);
    let expressions = expressions.into_iter().flatten().map(|expression| {
        let key = text(expression, "key");
        let values = expression.get("values").and_then(Value::as_seq);
        let values = values.into_iter().flatten().filter_map(Value::as_str);
        let values = values.collect::<Vec<_>>().join(",");
        match text(expression, "operator") {
            "In" => Some(format!("{key} in ({values})")),
            "NotIn" => Some(format!("{key} notin ({values})")),
            "Exists" => Some(key.to_owned()),
            "DoesNotExist" => Some(format!("!{key}")),
            _ => None,
        }
    });
    let terms: Option<Vec<String>> = labels.chain(expressions).collect();
    Some(terms?.join(","))
}

/// Returns the status of a workload in progress, given its pods. Pods that are being deleted or wait for a node don't count.
#[must_use]
pub fn with_pods(health: Health, pods: &[Value], now: Timestamp) -> Health {
    let has_failed = |pod: &&Value| {
        let phase = pod.pointer(&["status", "phase"]).and_then(Value::as_str);
        phase != Some("Pending") && !meta::is_terminating(pod) && status(pod, now).status == Status::Failed
    };
    match pods.iter().filter(has_failed).count() {
        0 => health,
        failed => Health::new(Status::Failed, format!("{failed} pods have failed")),
    }
}
