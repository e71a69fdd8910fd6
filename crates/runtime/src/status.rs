//! Writing the status of an object: whole, by one JSON patch, only when it differs from the last written one. No other process writes it,
//! so its old content is replaced, fields of an earlier controller too.

mod bounds;
mod writer;

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::LazyLock,
    time::{Duration, Instant},
};

use json_patch::{AddOperation, PatchOperation, TestOperation, jsonptr::PointerBuf};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, ObjectMeta, Patch, PatchParams, ValidationDirective},
};
use serde_json::{Value, json};

use crate::{client::is_not_leader, live::Live};

use bounds::bounded;
pub use bounds::bounded_text;
pub(crate) use writer::{StatusError, StatusWriter};

const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Fingerprints of the status that this process last wrote to an object. The status itself, which may be large, is dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Written {
    sent: u64,
    stored: u64,
    version: Option<u64>,
}

/// Returns the fingerprint of a status for this process. It is keyed, so that nobody else can find a collision.
fn fingerprint(status: &Value) -> u64 {
    static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEYS.hash_one(status)
}

#[derive(Debug)]
enum WriteResult {
    Unchanged,
    Written(Box<DynamicObject>),
    /// The object was deleted, or replaced by another one of the same name.
    Gone,
    Failed(kube::Error),
}

/// Returns true if `status` is already on the object: this process wrote it, the object was read after that write, and it has not changed
/// since. Before the first write, the object's status is compared.
fn is_unchanged(live: &DynamicObject, status: &Value, last: Option<&Written>) -> bool {
    let stored = live.data.get("status").unwrap_or(&Value::Null);
    let Some(last) = last else {
        let is_empty = |status: &Value| status.as_object().is_none_or(serde_json::Map::is_empty);
        return stored == status || is_empty(stored) && is_empty(status);
    };
    last.version.is_some()
        && version(&live.metadata) >= last.version
        && fingerprint(status) == last.sent
        && fingerprint(stored) == last.stored
}

pub(crate) fn version(meta: &ObjectMeta) -> Option<u64> {
    let version = meta.resource_version.as_deref();
    version.and_then(|version| version.parse().ok())
}

pub(crate) fn params(manager: &str, drops_unknown: bool) -> PatchParams {
    let validation = match drops_unknown {
        true => ValidationDirective::Ignore,
        false => ValidationDirective::Strict,
    };
    PatchParams {
        field_manager: Some(manager.to_owned()),
        field_validation: Some(validation),
        ..PatchParams::default()
    }
}

/// Writes `status`, unless [`is_unchanged`]; retries transient errors until `deadline`.
async fn write(
    api: &Api<Live>,
    live: &DynamicObject,
    params: &PatchParams,
    status: &Value,
    last: Option<&Written>,
    deadline: Instant,
) -> WriteResult {
    if is_unchanged(live, status, last) {
        return WriteResult::Unchanged;
    }
    match send(api, live, params, status, deadline).await {
        Ok(Some(object)) => WriteResult::Written(Box::new(object)),
        Ok(None) => WriteResult::Gone,
        Err(error) => WriteResult::Failed(error),
    }
}

async fn send(
    api: &Api<Live>,
    live: &DynamicObject,
    params: &PatchParams,
    status: &Value,
    deadline: Instant,
) -> Result<Option<DynamicObject>, kube::Error> {
    let patch: Patch<()> = Patch::Json(replacing(live, status));
    let mut pause = FIRST_PAUSE;
    let name = live.name_any();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let attempt = api.patch_status(&name, params, &patch);
        let limit = ATTEMPT_TIMEOUT.min(left.max(Duration::from_secs(1)));
        let late = |_| kube::Error::Service("the API server did not answer in time".into());
        let error = match tokio::time::timeout(limit, attempt).await.map_err(late) {
            Ok(Ok(Live(object))) => return Ok(Some(object)),
            Ok(Err(error)) | Err(error) => error,
        };
        match verdict(&error) {
            Verdict::Gone => return Ok(None),
            Verdict::Final => return Err(error),
            // A test of the UID that failed is answered like an invalid object.
            Verdict::Conflict | Verdict::Refused if !still_exists(api, live).await => return Ok(None),
            Verdict::Refused => return Err(error),
            Verdict::Conflict | Verdict::Retry => {}
        }
        let wait = pause.max(retry_after(&error)).min(LONGEST_PAUSE);
        if Instant::now() + wait >= deadline {
            return Err(error);
        }
        tokio::time::sleep(wait).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Returns the JSON patch (RFC 6902) that replaces the whole status. It tests the UID, so that an object that was deleted and made anew
/// meanwhile is left alone: the API server ignores the UID of any other patch of a status.
fn replacing(live: &DynamicObject, status: &Value) -> json_patch::Patch {
    let test = TestOperation {
        path: PointerBuf::from_tokens(["metadata", "uid"]),
        value: json!(live.metadata.uid),
    };
    let add = AddOperation {
        path: PointerBuf::from_tokens(["status"]),
        value: status.clone(),
    };
    json_patch::Patch(vec![PatchOperation::Test(test), PatchOperation::Add(add)])
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Gone,
    Conflict,
    Retry,
    Refused,
    Final,
}

fn verdict(error: &kube::Error) -> Verdict {
    match error {
        kube::Error::Api(status) => match status.code {
            404 => Verdict::Gone,
            409 => Verdict::Conflict,
            429 => Verdict::Retry,
            _ if is_refused(error) => Verdict::Refused,
            code if code >= 500 => Verdict::Retry,
            _ => Verdict::Final,
        },
        error if is_not_leader(error) => Verdict::Final,
        kube::Error::Service(_) | kube::Error::HyperError(_) | kube::Error::HttpError(_) => Verdict::Retry,
        _ => Verdict::Final,
    }
}

/// Returns true if the API server refuses the content of a status, so that it would refuse it again: its schema does not allow it, or it is
/// too large.
fn is_refused(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else {
        return false;
    };
    match status.code {
        400 | 413 | 422 => true,
        // An unknown field is answered with 500, and so is an object that is too large for the store.
        500 => status.message.contains("typed") || status.message.contains("too large"),
        _ => false,
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

async fn still_exists(api: &Api<Live>, live: &DynamicObject) -> bool {
    match api.get_metadata_opt(&live.name_any()).await {
        Ok(found) => found.is_some_and(|found| found.metadata.uid == live.metadata.uid),
        Err(_) => true,
    }
}

/// Removes null fields: the API server would store them as values.
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

    fn object(version: &str, status: &Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "g/v1", "kind": "K",
            "metadata": {"name": "n", "namespace": "ns", "uid": "u", "resourceVersion": version},
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn write_is_skipped_only_if_the_live_status_is_the_one_last_written() {
        let written = Written {
            sent: fingerprint(&json!({"a": 1})),
            stored: fingerprint(&json!({"a": 1, "d": 0})),
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
                is_unchanged(&object(version, live), &sent, last),
                same,
                "{version} {sent}"
            );
        }
    }

    #[test]
    fn first_write_is_skipped_if_an_earlier_process_wrote_the_same() {
        let live = object("7", &json!({"a": 1}));
        assert!(is_unchanged(&live, &json!({"a": 1}), None));
        assert!(!is_unchanged(&live, &json!({"a": 2}), None));
        assert!(!is_unchanged(&live, &json!({}), None));
        assert!(is_unchanged(&object("7", &Value::Null), &json!({}), None));
        assert!(is_unchanged(&object("7", &json!({})), &Value::Null, None));
    }

    #[test]
    fn patch_replaces_the_whole_status_of_the_object_that_was_read() {
        let live = object("7", &json!({"old": 1}));
        assert_eq!(
            json!(replacing(&live, &json!({"new": {}}))),
            json!([
                {"op": "test", "path": "/metadata/uid", "value": "u"},
                {"op": "add", "path": "/status", "value": {"new": {}}},
            ])
        );
    }

    #[test]
    fn verdict_separates_transient_from_final_errors() {
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
            (429, Verdict::Retry),
            (500, Verdict::Retry),
            (504, Verdict::Retry),
            (422, Verdict::Refused),
            (403, Verdict::Final),
        ] {
            assert_eq!(verdict(&api(code)), expected, "{code}");
        }
        assert_eq!(verdict(&kube::Error::Service("cut".into())), Verdict::Retry);
        assert_eq!(
            verdict(&kube::Error::Service(crate::client::NotLeader.into())),
            Verdict::Final
        );
    }

    #[test]
    fn refused_status_is_told_apart_from_a_failed_write() {
        let api = |code, message: &str| {
            kube::Error::Api(Box::new(kube::core::Status {
                code,
                message: message.into(),
                ..Default::default()
            }))
        };
        let typed = "failed to create typed patch object: .status.x: field not declared in schema";
        for (code, message, refused) in [
            (422, "status.rawTarget: Too long", true),
            (413, "Request entity too large", true),
            (500, typed, true),
            (500, "etcdserver: request is too large", true),
            (500, "etcdserver: leader changed", false),
            (403, "forbidden", false),
            (409, "conflict", false),
        ] {
            let error = api(code, message);
            assert_eq!(is_refused(&error), refused, "{code} {message}");
            assert_eq!(verdict(&error) == Verdict::Refused, refused, "{code} {message}");
        }
    }

    #[test]
    fn without_nulls_removes_nested_nulls() {
        assert_eq!(
            without_nulls(json!({"a": null, "b": [{"c": null, "d": 1}]})),
            json!({"b": [{"d": 1}]})
        );
    }
}
