//! Writing the status of an object: whole, by server-side apply, only when it says something new.
//!
//! Nobody else writes the status. What an earlier controller owned of it is taken over first, so that the fields that
//! are no longer said go away.

use std::time::{Duration, Instant};

use k8s_openapi::{
    api::core::v1::ObjectReference,
    apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry},
};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::{Map, Value, json};

use crate::client::{describe, is_not_leader};

/// The longest wait for one attempt.
const ATTEMPT: Duration = Duration::from_secs(10);
/// The pauses between attempts double from here.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// What this process last wrote to an object.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Written {
    /// The status as it was sent.
    sent: Value,
    /// The status as the API server stored it.
    stored: Value,
    /// The resourceVersion of that write.
    version: Option<u64>,
}

/// How a write ended.
#[derive(Debug)]
pub(crate) enum Write {
    /// It says what it said before: nothing was sent.
    Same,
    /// Written.
    Done(Written),
    /// The object is gone, or another one of the same name took its place.
    Gone,
    /// It could not be written.
    Failed(kube::Error),
}

/// Whether the status on the object is already the one to write: this process wrote it, the object was read no earlier,
/// and nobody changed it since.
pub(crate) fn is_same(live: &DynamicObject, status: &Value, last: Option<&Written>) -> bool {
    let Some(last) = last else { return false };
    let seen = version(live);
    last.sent == *status
        && last.version.is_some()
        && seen >= last.version
        && live.data.get("status").unwrap_or(&Value::Null) == &last.stored
}

fn version(object: &DynamicObject) -> Option<u64> {
    object
        .metadata
        .resource_version
        .as_deref()
        .and_then(|version| version.parse().ok())
}

/// Writes `status`, unless [`is_same`]; retries what may pass, until `deadline`.
pub(crate) async fn write(
    api: &Api<DynamicObject>,
    live: &DynamicObject,
    manager: &str,
    status: Value,
    last: Option<&Written>,
    deadline: Instant,
) -> Write {
    let status = without_nulls(status);
    let foreign = take_over(
        live.metadata.managed_fields.as_deref().unwrap_or_default(),
        manager,
    );
    if foreign.is_none() && is_same(live, &status, last) {
        return Write::Same;
    }
    if let Some(entries) = foreign
        && let Err(error) = hand_over(api, live, manager, entries).await
    {
        // Without it, old fields stay for a while; the next pass tries again.
        tracing::info!(error = %describe(&error), "cannot take over the status of an earlier controller yet");
    }
    match send(api, live, manager, &status, deadline).await {
        Ok(Some(object)) => Write::Done(Written {
            sent: status,
            version: version(&object),
            stored: object.data.get("status").cloned().unwrap_or(Value::Null),
        }),
        Ok(None) => Write::Gone,
        Err(error) => Write::Failed(error),
    }
}

/// Applies `status`, and returns the object as it is then; `None` if it is gone.
async fn send(
    api: &Api<DynamicObject>,
    live: &DynamicObject,
    manager: &str,
    status: &Value,
    deadline: Instant,
) -> Result<Option<DynamicObject>, kube::Error> {
    let body = applied(live, status);
    let params = PatchParams::apply(manager).force();
    let mut pause = FIRST_PAUSE;
    let name = live.name_any();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let patch = Patch::Apply(&body);
        let attempt = api.patch_status(&name, &params, &patch);
        let limit = ATTEMPT.min(left.max(Duration::from_secs(1)));
        let late = |_| kube::Error::Service("the API server did not answer in time".into());
        let error = match tokio::time::timeout(limit, attempt).await.map_err(late) {
            Ok(Ok(object)) => return Ok(Some(object)),
            Ok(Err(error)) | Err(error) => error,
        };
        match verdict(&error) {
            Verdict::Gone => return Ok(None),
            Verdict::Final => return Err(error),
            Verdict::Conflict if !is_still_there(api, live).await => return Ok(None),
            Verdict::Conflict | Verdict::Again => {}
        }
        let wait = pause.max(retry_after(&error)).min(LONGEST_PAUSE);
        if Instant::now() + wait >= deadline {
            return Err(error);
        }
        tokio::time::sleep(wait).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn applied(live: &DynamicObject, status: &Value) -> Value {
    let types = live.types.clone().unwrap_or_default();
    json!({
        "apiVersion": types.api_version,
        "kind": types.kind,
        // With the uid, an object that was deleted and made anew meanwhile is left alone.
        "metadata": { "name": live.metadata.name, "namespace": live.metadata.namespace, "uid": live.metadata.uid },
        "status": status,
    })
}

/// What a failed write means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Gone,
    Conflict,
    Again,
    Final,
}

fn verdict(error: &kube::Error) -> Verdict {
    match error {
        kube::Error::Api(status) => match status.code {
            404 => Verdict::Gone,
            409 => Verdict::Conflict,
            429 => Verdict::Again,
            code if code >= 500 => Verdict::Again,
            _ => Verdict::Final,
        },
        error if is_not_leader(error) => Verdict::Final,
        kube::Error::Service(_) | kube::Error::HyperError(_) | kube::Error::HttpError(_) => Verdict::Again,
        _ => Verdict::Final,
    }
}

fn retry_after(error: &kube::Error) -> Duration {
    match error {
        kube::Error::Api(status) => Duration::from_secs(
            status
                .details
                .as_ref()
                .map_or(0, |details| u64::from(details.retry_after_seconds)),
        ),
        _ => Duration::ZERO,
    }
}

async fn is_still_there(api: &Api<DynamicObject>, live: &DynamicObject) -> bool {
    match api.get_metadata_opt(&live.name_any()).await {
        Ok(found) => found.is_some_and(|found| found.metadata.uid == live.metadata.uid),
        Err(_) => true,
    }
}

async fn hand_over(
    api: &Api<DynamicObject>,
    live: &DynamicObject,
    manager: &str,
    entries: Vec<ManagedFieldsEntry>,
) -> Result<(), kube::Error> {
    let patch = json!({
        "metadata": { "resourceVersion": live.metadata.resource_version, "managedFields": entries },
    });
    let params = PatchParams {
        field_manager: Some(manager.to_owned()),
        ..PatchParams::default()
    };
    api.patch_metadata(&live.name_any(), &params, &Patch::Merge(patch))
        .await
        .map(|_| ())
}

/// The field ownership in which everything that others own of the status is `manager`'s; `None` if there is nothing to
/// take over.
pub(crate) fn take_over(entries: &[ManagedFieldsEntry], manager: &str) -> Option<Vec<ManagedFieldsEntry>> {
    let mut ours: Option<ManagedFieldsEntry> = None;
    let mut taken = Map::new();
    let mut rest = Vec::new();
    for entry in entries {
        let is_status = entry.subresource.as_deref() == Some("status");
        if is_status
            && entry.manager.as_deref() == Some(manager)
            && entry.operation.as_deref() == Some("Apply")
        {
            ours = Some(entry.clone());
            continue;
        }
        let mut entry = entry.clone();
        let fields = entry
            .fields_v1
            .as_mut()
            .and_then(|fields| fields.0.as_object_mut());
        if let Some(status) = fields.and_then(|fields| fields.shift_remove("f:status")) {
            merge(&mut taken, Map::from_iter([("f:status".to_owned(), status)]));
        }
        let empty = entry
            .fields_v1
            .as_ref()
            .and_then(|fields| fields.0.as_object())
            .is_none_or(Map::is_empty);
        if !(is_status && empty) {
            rest.push(entry);
        }
    }
    if taken.is_empty() {
        return None;
    }
    let first = entries.iter().find_map(|entry| entry.api_version.clone());
    let mut ours = ours.unwrap_or_else(|| ManagedFieldsEntry {
        api_version: first,
        fields_type: Some("FieldsV1".into()),
        manager: Some(manager.to_owned()),
        operation: Some("Apply".into()),
        subresource: Some("status".into()),
        ..ManagedFieldsEntry::default()
    });
    let mut fields = match ours.fields_v1.take() {
        Some(FieldsV1(Value::Object(fields))) => fields,
        _ => Map::new(),
    };
    merge(&mut fields, taken);
    ours.fields_v1 = Some(FieldsV1(Value::Object(fields)));
    ours.time = None;
    rest.push(ours);
    Some(rest)
}

fn merge(into: &mut Map<String, Value>, from: Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => merge(old, new),
            (Some(_), _) => {}
            (None, value) => {
                into.insert(key, value);
            }
        }
    }
}

/// Server-side apply takes a null for a value; absent is what is meant.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.into_iter()
                .filter(|(_, v)| !v.is_null())
                .map(|(k, v)| (k, without_nulls(v)))
                .collect(),
        ),
        Value::Array(list) => Value::Array(list.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

/// The reference to an object, for events.
pub(crate) fn reference(object: &DynamicObject) -> ObjectReference {
    let types = object.types.clone().unwrap_or_default();
    ObjectReference {
        api_version: Some(types.api_version),
        kind: Some(types.kind),
        name: object.metadata.name.clone(),
        namespace: object.metadata.namespace.clone(),
        uid: object.metadata.uid.clone(),
        resource_version: object.metadata.resource_version.clone(),
        ..ObjectReference::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, subresource: Option<&str>, fields: Value) -> ManagedFieldsEntry {
        ManagedFieldsEntry {
            api_version: Some("g/v1".into()),
            fields_type: Some("FieldsV1".into()),
            fields_v1: Some(FieldsV1(fields)),
            manager: Some(manager.into()),
            operation: Some(operation.into()),
            subresource: subresource.map(str::to_owned),
            time: None,
        }
    }

    #[test]
    fn nothing_is_taken_over_where_nobody_else_wrote() {
        let ours = entry("weir", "Apply", Some("status"), json!({"f:status": {"f:a": {}}}));
        let user = entry("kubectl", "Update", None, json!({"f:spec": {"f:url": {}}}));
        assert_eq!(take_over(&[ours, user], "weir"), None);
        assert_eq!(take_over(&[], "weir"), None);
    }

    #[test]
    fn an_earlier_managers_status_becomes_ours() {
        let entries = [
            entry("weir", "Apply", Some("status"), json!({"f:status": {"f:a": {}}})),
            entry(
                "old",
                "Update",
                Some("status"),
                json!({"f:status": {"f:a": {}, "f:b": {"f:c": {}}}}),
            ),
            entry(
                "older",
                "Update",
                None,
                json!({"f:metadata": {"f:finalizers": {}}, "f:status": {"f:d": {}}}),
            ),
        ];
        let taken = take_over(&entries, "weir").unwrap();
        assert_eq!(taken.len(), 2);
        assert_eq!(
            taken[0],
            entry(
                "older",
                "Update",
                None,
                json!({"f:metadata": {"f:finalizers": {}}})
            )
        );
        assert_eq!(
            taken[1],
            entry(
                "weir",
                "Apply",
                Some("status"),
                json!({"f:status": {"f:a": {}, "f:b": {"f:c": {}}, "f:d": {}}})
            )
        );
    }

    fn object(version: &str, status: &Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "g/v1", "kind": "K",
            "metadata": {"name": "n", "namespace": "ns", "uid": "u", "resourceVersion": version},
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn a_write_is_skipped_only_when_it_is_known_to_be_there() {
        let written = Written {
            sent: json!({"a": 1}),
            stored: json!({"a": 1, "d": 0}),
            version: Some(7),
        };
        let there = json!({"a": 1, "d": 0});
        for (version, live, sent, last, same) in [
            ("7", &there, json!({"a": 1}), Some(&written), true),
            ("9", &there, json!({"a": 1}), Some(&written), true),
            ("6", &there, json!({"a": 1}), Some(&written), false),
            ("7", &there, json!({"a": 2}), Some(&written), false),
            ("7", &json!({"a": 3}), json!({"a": 1}), Some(&written), false),
            ("7", &there, json!({"a": 1}), None, false),
            ("odd", &there, json!({"a": 1}), Some(&written), false),
        ] {
            assert_eq!(
                is_same(&object(version, live), &sent, last),
                same,
                "{version} {sent}"
            );
        }
    }

    #[test]
    fn failures_are_final_or_not() {
        let api = |code| {
            kube::Error::Api(Box::new(kube::core::Status {
                code,
                message: "m".into(),
                ..Default::default()
            }))
        };
        for (code, expected) in [
            (404, Verdict::Gone),
            (409, Verdict::Conflict),
            (429, Verdict::Again),
            (500, Verdict::Again),
            (504, Verdict::Again),
            (422, Verdict::Final),
            (403, Verdict::Final),
        ] {
            assert_eq!(verdict(&api(code)), expected, "{code}");
        }
        assert_eq!(verdict(&kube::Error::Service("cut".into())), Verdict::Again);
        assert_eq!(
            verdict(&kube::Error::Service(crate::client::NotLeader.into())),
            Verdict::Final
        );
    }

    #[test]
    fn nulls_are_not_sent() {
        assert_eq!(
            without_nulls(json!({"a": null, "b": [{"c": null, "d": 1}]})),
            json!({"b": [{"d": 1}]})
        );
    }
}
