//! The rules of the kinds that are known.

use yaml::Value;

use super::Verdict;

type Checked = Result<(), Verdict>;

/// Applies the rule of the object's kind; kinds without one are ready.
pub(super) fn check(object: &Value, status: &Value) -> Checked {
    let api_version = object
        .get("apiVersion")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let (group, _) = crate::reference::split_api_version(api_version);
    let spec = object.get("spec").unwrap_or(&Value::Null);
    match (
        group,
        object.get("kind").and_then(Value::as_str).unwrap_or_default(),
    ) {
        ("", "Pod") => pod(status),
        ("batch", "Job") => job(status),
        ("apps" | "extensions", "Deployment") => deployment(spec, status),
        ("apps", "StatefulSet") => stateful_set(spec, status),
        ("apps" | "extensions", "DaemonSet") => daemon_set(spec, status),
        ("", "PersistentVolumeClaim") => claim(status),
        ("", "Service") => service(spec, status),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(status),
        ("cluster.x-k8s.io", "MachineDeployment") => machine_deployment(spec, status),
        _ => Ok(()),
    }
}

fn not_ready<T>(message: impl Into<String>) -> Result<T, Verdict> {
    Err(Verdict::NotReady(message.into()))
}

fn number(status: &Value, field: &str) -> Result<i64, Verdict> {
    match status.get(field).and_then(Value::as_i64) {
        Some(number) => Ok(number),
        None => not_ready(format!("{field} field not in status or empty")),
    }
}

fn condition<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = status.get("conditions")?.as_seq()?;
    conditions
        .iter()
        .find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))
}

fn state(condition: &Value) -> &str {
    condition
        .get("status")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn message_or(condition: &Value, otherwise: &str) -> String {
    let message = condition
        .get("message")
        .and_then(Value::as_str)
        .filter(|message| !message.is_empty());
    message.unwrap_or(otherwise).to_owned()
}

/// A pod counts as ready only when it is completed: deployments wait for pods that do a job.
fn pod(status: &Value) -> Checked {
    for container in status
        .get("containerStatuses")
        .and_then(Value::as_seq)
        .into_iter()
        .flatten()
    {
        let reason = container
            .pointer(&["state", "terminated", "reason"])
            .and_then(Value::as_str);
        if reason == Some("Error") {
            let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
            return Err(Verdict::Failed(format!("container {name} exited with error")));
        }
    }
    let Some(ready) = condition(status, "Ready") else {
        return not_ready("Ready condition not in status");
    };
    let reason = ready.get("reason").and_then(Value::as_str);
    if state(ready) == "False" && reason == Some("PodCompleted") {
        Ok(())
    } else {
        not_ready("Not ready")
    }
}

fn job(status: &Value) -> Checked {
    if let Some(failed) = condition(status, "Failed").filter(|condition| state(condition) == "True") {
        return Err(Verdict::Failed(message_or(failed, "Failed")));
    }
    match condition(status, "Complete") {
        Some(complete) if state(complete) == "True" => Ok(()),
        Some(complete) => not_ready(message_or(complete, "Not completed")),
        None => not_ready("Not completed"),
    }
}

fn deployment(spec: &Value, status: &Value) -> Checked {
    if spec.get("replicas").and_then(Value::as_i64).unwrap_or(0) == 0 {
        return Ok(());
    }
    let (ready, replicas) = (number(status, "readyReplicas")?, number(status, "replicas")?);
    if ready < replicas {
        return not_ready(format!(
            "readyReplicas ({ready}) is less then replicas ({replicas})"
        ));
    }
    Ok(())
}

fn is_rolling(spec: &Value) -> bool {
    let strategy = spec.pointer(&["updateStrategy", "type"]).and_then(Value::as_str);
    strategy.is_none_or(|strategy| strategy == "RollingUpdate")
}

fn stateful_set(spec: &Value, status: &Value) -> Checked {
    let replicas = spec.get("replicas").and_then(Value::as_i64).unwrap_or(1);
    if !is_rolling(spec) || replicas == 0 {
        return Ok(());
    }
    let partition = spec
        .pointer(&["updateStrategy", "rollingUpdate", "partition"])
        .and_then(Value::as_i64)
        .unwrap_or(0);
    let expected = replicas - partition;
    let updated = number(status, "updatedReplicas")?;
    if updated < expected {
        return not_ready(format!(
            "StatefulSet is not ready. {updated} out of {expected} expected pods have been scheduled"
        ));
    }
    let ready = number(status, "readyReplicas")?;
    if ready != replicas {
        return not_ready(format!(
            "StatefulSet is not ready. {ready} out of {replicas} expected pods are ready"
        ));
    }
    Ok(())
}

fn daemon_set(spec: &Value, status: &Value) -> Checked {
    if !is_rolling(spec) {
        return Ok(());
    }
    let desired = number(status, "desiredNumberScheduled")?;
    // Without nodes to run on, nothing is to be updated, and the field stays away.
    let updated = status
        .get("updatedNumberScheduled")
        .and_then(Value::as_i64)
        .unwrap_or(0);
    if updated != desired {
        return not_ready(format!(
            "DaemonSet is not ready. {updated} out of {desired} expected pods have been scheduled"
        ));
    }
    let unavailable = spec.pointer(&["updateStrategy", "rollingUpdate", "maxUnavailable"]);
    let ready = number(status, "numberReady")?;
    let expected = desired - max_unavailable(unavailable, desired);
    if ready < expected {
        return not_ready(format!(
            "DaemonSet is not ready. {ready} out of {expected} expected pods are ready"
        ));
    }
    Ok(())
}

/// Returns a count, or a percentage of all pods, rounded up; default 1.
fn max_unavailable(value: Option<&Value>, desired: i64) -> i64 {
    match value {
        Some(Value::String(text)) => {
            let percent = text
                .strip_suffix('%')
                .and_then(|percent| percent.parse::<i64>().ok())
                .unwrap_or(0);
            desired.saturating_mul(percent.clamp(0, 100)).saturating_add(99) / 100
        }
        Some(value) => value.as_i64().unwrap_or(1),
        None => 1,
    }
}

fn claim(status: &Value) -> Checked {
    match status.get("phase").and_then(Value::as_str) {
        Some("Bound") => Ok(()),
        Some(_) => not_ready("Volume is not bound"),
        None => not_ready("phase field not in status or empty"),
    }
}

fn service(spec: &Value, status: &Value) -> Checked {
    let kind = spec.get("type").and_then(Value::as_str).unwrap_or_default();
    if kind == "ExternalName" {
        return Ok(());
    }
    if spec
        .get("clusterIP")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .is_empty()
    {
        return Err(Verdict::Failed("Service does not have a cluster IP".to_owned()));
    }
    let listed = |value: Option<&Value>| value.and_then(Value::as_seq).is_some_and(|list| !list.is_empty());
    if kind != "LoadBalancer"
        || listed(spec.get("externalIPs"))
        || listed(status.pointer(&["loadBalancer", "ingress"]))
    {
        return Ok(());
    }
    not_ready("Not ready")
}

fn definition(status: &Value) -> Checked {
    if condition(status, "Established").is_some_and(|condition| state(condition) == "True") {
        return Ok(());
    }
    // Names that clash will not be accepted by waiting; the old version stays served.
    match condition(status, "NamesAccepted") {
        Some(accepted) if state(accepted) == "False" => Ok(()),
        _ => not_ready("CRD is not ready"),
    }
}

fn machine_deployment(spec: &Value, status: &Value) -> Checked {
    for kind in ["Ready", "Available"] {
        match condition(status, kind) {
            None => return not_ready(format!("{kind} condition not in status")),
            Some(condition) if state(condition) != "True" => {
                return not_ready(message_or(condition, "Not ready"));
            }
            Some(_) => {}
        }
    }
    let replicas = spec.get("replicas").and_then(Value::as_i64).unwrap_or(1);
    for field in [
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
    ] {
        let actual = if replicas == 0 { 0 } else { number(status, field)? };
        if actual != replicas {
            return not_ready(format!(
                "{field} ({actual}) is not equal to the desired replicas ({replicas})"
            ));
        }
    }
    match status
        .get("unavailableReplicas")
        .and_then(Value::as_i64)
        .unwrap_or(0)
    {
        0 => Ok(()),
        unavailable => not_ready(format!("unavailableReplicas is {unavailable}")),
    }
}
