//! Decoding of objects, and the status of an object that does not decode: it must not stop other objects of its kind.

use api::{Condition, Fault, Reason, Time, condition_type, conditions, crd::Bounds};
use kube::api::DynamicObject;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Decodes an object; fails with a stalling fault that names the field. A status that is invalid or beyond its bounds is treated as absent.
pub(crate) fn typed<O: DeserializeOwned>(live: &DynamicObject, bounds: Option<&Bounds>) -> Result<O, Fault> {
    let has_large_status = check_sizes(live, bounds)?;
    let mut value = serde_json::to_value(live).map_err(|error| invalid("", &error.to_string()))?;
    if has_large_status && let Some(map) = value.as_object_mut() {
        map.shift_remove("status");
    }
    let first = match serde_path_to_error::deserialize::<_, O>(&value) {
        Ok(object) => return Ok(object),
        Err(error) => error,
    };
    if let Some(map) = value.as_object_mut()
        && map.shift_remove("status").is_some()
        && let Ok(object) = serde_path_to_error::deserialize::<_, O>(&value)
    {
        tracing::info!(error = %api::redact(&first.inner().to_string()), "an unreadable status is replaced");
        return Ok(object);
    }
    let path = first.path().to_string();
    Err(invalid(&path, &first.into_inner().to_string()))
}

/// Checks the bounds of the definition, for objects that were stored under one without bounds. Returns true if only the status is beyond
/// them.
fn check_sizes(live: &DynamicObject, bounds: Option<&Bounds>) -> Result<bool, Fault> {
    let (Some(bounds), Some(fields)) = (bounds, live.data.as_object()) else {
        return Ok(false);
    };
    let mut has_large_status = false;
    for (name, value) in fields {
        match bounds.check(name, value) {
            Ok(()) => {}
            Err(error) if name == "status" => {
                tracing::info!(%error, "a status beyond its bounds is replaced");
                has_large_status = true;
            }
            Err(error) => return Err(Fault::stall(Reason::InvalidSpec, format!("{error}: shorten it"))),
        }
    }
    Ok(has_large_status)
}

fn invalid(path: &str, message: &str) -> Fault {
    let location = if path.is_empty() || path == "." {
        String::new()
    } else {
        format!("{path}: ")
    };
    Fault::stall(
        Reason::InvalidSpec,
        format!("{location}{}: correct the field", api::redact(message)),
    )
}

/// Returns the present status with new conditions, after a fault outside of the kind's code.
pub(crate) fn failed_status(live: &DynamicObject, fault: &Fault, stalled: bool, now: &Time) -> Value {
    let mut status = match live.data.get("status") {
        Some(Value::Object(status)) => status.clone(),
        _ => Map::new(),
    };
    let generation = live.metadata.generation;
    let mut list: Vec<Condition> = status
        .get("conditions")
        .and_then(|list| serde_json::from_value(list.clone()).ok())
        .unwrap_or_default();
    let condition = |type_: &str, value: bool| {
        Condition::new(
            type_,
            value,
            fault.reason.as_str(),
            &*fault.message,
            generation,
            now.clone(),
        )
    };
    // The problems of earlier passes do not go with the new reason of Ready.
    list.retain(|condition| !condition_type::PROBLEMS.contains(&condition.type_.as_str()));
    conditions::set(&mut list, condition(condition_type::READY, false));
    let outlook = match stalled {
        true => condition(condition_type::STALLED, true),
        false => Condition {
            reason: Reason::ProgressingWithRetry.as_str().to_owned(),
            ..condition(condition_type::RECONCILING, true)
        },
    };
    conditions::set(&mut list, outlook);
    if stalled {
        status.insert("observedGeneration".into(), json!(generation));
    }
    conditions::sort(&mut list);
    status.insert("conditions".into(), json!(list));
    Value::Object(status)
}

pub(crate) fn ready(status: &Value) -> &str {
    status
        .get("conditions")
        .and_then(Value::as_array)
        .and_then(|list| {
            list.iter()
                .find(|c| c.get("type").and_then(Value::as_str) == Some(condition_type::READY))
        })
        .and_then(|ready| ready.get("status"))
        .and_then(Value::as_str)
        .unwrap_or("Unknown")
}

#[cfg(test)]
mod tests {
    use api::source::GitRepository;

    use super::*;

    fn live(spec: &Value, status: &Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"name": "app", "namespace": "team", "generation": 3},
            "spec": spec, "status": status,
        }))
        .unwrap()
    }

    fn now() -> Time {
        Time(k8s_openapi::jiff::Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn typed_names_the_invalid_field_without_secrets() {
        let object = live(
            &json!({"url": "https://h/r", "interval": "https://u:s3cret@h/"}),
            &json!({}),
        );
        let fault = typed::<GitRepository>(&object, None).unwrap_err();
        assert_eq!(fault.reason, Reason::InvalidSpec);
        assert!(
            fault.message.starts_with("spec.interval: ") && !fault.message.contains("s3cret"),
            "{}",
            fault.message
        );
    }

    #[test]
    fn typed_ignores_an_invalid_status() {
        let object = live(
            &json!({"url": "https://h/r", "interval": "1m"}),
            &json!({"conditions": "none"}),
        );
        let decoded: GitRepository = typed(&object, None).unwrap();
        assert!(decoded.status.is_none());
    }

    #[test]
    fn typed_refuses_a_spec_beyond_its_bounds_and_ignores_such_a_status() {
        let bounds = api::crd::bounds("source.toolkit.fluxcd.io", "GitRepository");
        let object = |semver: &str, url: &str| {
            live(
                &json!({"url": "https://h/r", "interval": "1m", "ref": {"semver": semver}}),
                &json!({"observedGeneration": 2, "url": url}),
            )
        };
        let decoded = |object| typed::<GitRepository>(&object, bounds.as_ref());
        let fault = decoded(object(&"1 || ".repeat(1000), "")).unwrap_err();
        assert_eq!(
            (fault.reason, &*fault.message),
            (
                Reason::InvalidSpec,
                "spec.ref.semver: it has 5000 characters, and at most 2048 are allowed: shorten it"
            )
        );
        assert!(
            decoded(object("1.x", &"u".repeat(200_000)))
                .unwrap()
                .status
                .is_none()
        );
        assert!(decoded(object("1.x", "http://h/")).unwrap().status.is_some());
    }

    #[test]
    fn failed_status_keeps_the_other_fields() {
        let object = live(
            &json!({}),
            &json!({
                "artifact": {"revision": "main@sha1:1"},
                "conditions": [
                    {"type": "Ready", "status": "True", "reason": "Succeeded", "message": "m",
                     "lastTransitionTime": "2026-01-01T00:00:00Z"},
                    {"type": "FetchFailed", "status": "True", "reason": "GitOperationFailed", "message": "old",
                     "lastTransitionTime": "2026-01-01T00:00:00Z"},
                    {"type": "Reconciling", "status": "True", "reason": "Progressing", "message": "m",
                     "lastTransitionTime": "2026-01-01T00:00:00Z"},
                ],
            }),
        );
        let fault = Fault::stall(Reason::InvalidSpec, "spec.url: missing");
        let status = failed_status(&object, &fault, true, &now());
        assert_eq!(status["artifact"]["revision"], "main@sha1:1");
        assert_eq!(status["observedGeneration"], 3);
        let types: Vec<_> = status["conditions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| c["type"].as_str().unwrap())
            .collect();
        assert_eq!(types, ["Stalled", "Ready"]);
        assert_eq!(ready(&status), "False");
        let status = failed_status(&object, &fault, false, &now());
        assert!(status.get("observedGeneration").is_none());
        assert_eq!(status["conditions"][0]["reason"], "ProgressingWithRetry");
        assert_eq!(ready(&json!({})), "Unknown");
    }
}
