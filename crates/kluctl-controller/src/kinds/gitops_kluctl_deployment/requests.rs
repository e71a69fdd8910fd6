//! Requests by annotation. Pure, but for the removal of the annotation.

use api::{
    Fault, Reason,
    kluctl::gitops::{InvalidRequest, KluctlDeployment, KluctlDeploymentStatus, ManualRequest, RequestKind},
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams},
};
use runtime::client::describe;
use serde_json::{Value, json};

/// Attempts to remove an annotation of an object that others change meanwhile.
const ATTEMPTS: usize = 5;
/// Fields of the spec that change the time, but not the content of deployments.
const UNDEPLOYED: [&str; 8] = [
    "interval",
    "retryInterval",
    "timeout",
    "deployInterval",
    "validate",
    "validateInterval",
    "suspend",
    "noWait",
];

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PendingRequest {
    pub(crate) kind: RequestKind,
    pub(crate) text: String,
    pub(crate) request: Result<ManualRequest, InvalidRequest>,
    /// True if the status already has the result of this request.
    pub(crate) is_done: bool,
}

pub(crate) fn pending(object: &KluctlDeployment) -> Option<PendingRequest> {
    let mut status = object.status.clone().unwrap_or_default();
    RequestKind::ALL.into_iter().find_map(|kind| {
        let text = object.annotations().get(kind.annotation())?.clone();
        let request = ManualRequest::parse(&text);
        let last = kind
            .result(&mut status)
            .as_ref()
            .filter(|last| last.end_time.is_some());
        let is_done = last
            .zip(request.as_ref().ok())
            .is_some_and(|(last, request)| last.request.request_value == request.request_value);
        Some(PendingRequest {
            kind,
            text,
            request,
            is_done,
        })
    })
}

pub(crate) fn is_pending(object: &KluctlDeployment) -> bool {
    RequestKind::ALL
        .iter()
        .any(|kind| object.annotations().contains_key(kind.annotation()))
}

/// Ends requests whose pass broke off: those who wait for their results need not wait for ever.
pub(crate) fn end_interrupted(status: &mut KluctlDeploymentStatus, why: &str, now: &api::Time) {
    for kind in RequestKind::ALL {
        if let Some(result) = kind.result(status)
            && result.end_time.is_none()
        {
            result.end_time = Some(now.clone());
            result.command_error = Some(why.to_owned());
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidOverrides {
    #[error("override patch tried to modify non-spec fields")]
    NotSpec,
    #[error("the overrides of the request are invalid: {0}")]
    Undecodable(String),
}

/// Returns the object as the request wants it.
///
/// # Errors
/// If the patch changes something else than the spec, or makes an invalid object.
pub(crate) fn overridden(
    object: &KluctlDeployment,
    request: &ManualRequest,
) -> Result<KluctlDeployment, InvalidOverrides> {
    let Some(patch) = &request.overrides_patch else {
        return Ok(object.clone());
    };
    let failed = |error: serde_json::Error| InvalidOverrides::Undecodable(error.to_string());
    let before = serde_json::to_value(object).map_err(failed)?;
    let mut after = before.clone();
    json_patch::merge(&mut after, &Value::Object(patch.clone()));
    let others = |value: &Value| {
        let mut value = value.clone();
        value.as_object_mut().and_then(|map| map.remove("spec"));
        value
    };
    if others(&before) != others(&after) {
        return Err(InvalidOverrides::NotSpec);
    }
    serde_json::from_value(after).map_err(failed)
}

/// Returns true if the overrides of a request change the deployment. Fields that are not known as harmless do.
pub(crate) fn changes_deployment(object: &KluctlDeployment, overridden: &KluctlDeployment) -> bool {
    let deployed = |object: &KluctlDeployment| {
        let mut spec = serde_json::to_value(&object.spec).unwrap_or_default();
        if let Some(spec) = spec.as_object_mut() {
            spec.retain(|field, _| !UNDEPLOYED.contains(&field.as_str()));
        }
        spec
    };
    deployed(object) != deployed(overridden)
}

/// Removes the annotation of a request, unless it has another value by now.
///
/// # Errors
/// If the object cannot be read or changed.
pub(crate) async fn remove(
    client: &Client,
    manager: &str,
    object: &KluctlDeployment,
    request: &PendingRequest,
) -> Result<(), Fault> {
    let namespace = object.namespace().unwrap_or_default();
    let api: Api<KluctlDeployment> = Api::namespaced(client.clone(), &namespace);
    let (name, annotation) = (object.name_any(), request.kind.annotation());
    let failed = |error: kube::Error| {
        let message = format!("cannot remove the annotation {annotation}: {}", describe(&error));
        Fault::retry(Reason::Failed, message)
    };
    let params = PatchParams {
        field_manager: Some(manager.to_owned()),
        ..PatchParams::default()
    };
    for _ in 0..ATTEMPTS {
        let Some(live) = deployer::objects::found(api.get_metadata(&name).await).map_err(failed)? else {
            return Ok(());
        };
        let value = live
            .metadata
            .annotations
            .as_ref()
            .and_then(|all| all.get(annotation));
        if value != Some(&request.text) {
            return Ok(());
        }
        let patch = json!({
            "metadata": { "annotations": { annotation: null }, "resourceVersion": live.metadata.resource_version },
        });
        match api.patch_metadata(&name, &params, &Patch::Merge(patch)).await {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Err(Fault::retry(
        Reason::Failed,
        format!("the annotation {annotation} changes too often to be removed"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(annotations: &Value, status: &Value) -> KluctlDeployment {
        serde_json::from_value(json!({
            "apiVersion": "gitops.kluctl.io/v1beta1", "kind": "KluctlDeployment",
            "metadata": { "name": "shop", "annotations": annotations },
            "spec": { "interval": "5m", "source": {}, "args": { "a": 1, "b": 2 } }, "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn requests_are_handled_in_order_and_once() {
        let both = json!({ api::annotation::REQUEST_RECONCILE: "1", api::annotation::REQUEST_PRUNE: "{\"requestValue\":\"2\"}" });
        let request = pending(&object(&both, &json!({}))).unwrap();
        assert_eq!((request.kind, request.is_done), (RequestKind::Prune, false));
        let result = |end: Option<&str>| {
            json!({ "pruneRequestResult": {
                "request": { "requestValue": "2" }, "startTime": "2026-01-01T00:00:00Z", "endTime": end, "reconcileId": "",
            }})
        };
        assert!(
            pending(&object(&both, &result(Some("2026-01-01T00:00:01Z"))))
                .unwrap()
                .is_done
        );
        assert!(
            !pending(&object(&both, &result(None))).unwrap().is_done,
            "it was interrupted"
        );
        assert!(pending(&object(&json!({ "a": "b" }), &json!({}))).is_none());
        assert!(!is_pending(&object(&json!({ "a": "b" }), &json!({}))));
    }

    #[test]
    fn overrides_change_the_spec_alone() {
        let object = object(&json!({}), &json!({}));
        let with = |patch: Value| {
            let request = ManualRequest {
                request_value: "1".to_owned(),
                overrides_patch: patch.as_object().cloned(),
            };
            overridden(&object, &request)
        };
        let changed = with(json!({ "spec": { "args": { "a": null, "c": 3 }, "dryRun": true } })).unwrap();
        assert!(changed.spec.dry_run);
        assert_eq!(json!(changed.spec.args), json!({ "b": 2, "c": 3 }));
        for patch in [
            json!({ "metadata": { "name": "other" } }),
            json!({ "status": { "observedGeneration": 3 } }),
        ] {
            assert_eq!(with(patch), Err(InvalidOverrides::NotSpec));
        }
        assert!(matches!(
            with(json!({ "spec": { "interval": 3 } })),
            Err(InvalidOverrides::Undecodable(_))
        ));
        let changes = |patch: Value| changes_deployment(&object, &with(json!({ "spec": patch })).unwrap());
        for harmless in [
            json!({}),
            json!({ "args": { "a": 1 } }),
            json!({ "noWait": true, "validate": false, "interval": "1m", "retryInterval": "1m" }),
            json!({ "deployInterval": "1m", "validateInterval": "1m", "timeout": "1m", "suspend": true }),
        ] {
            assert!(!changes(harmless.clone()), "{harmless}");
        }
        for change in [
            json!({ "args": { "a": 2 } }),
            json!({ "dryRun": true }),
            json!({ "prune": true }),
            json!({ "includeTags": ["a"] }),
            json!({ "abortOnError": true }),
            json!({ "target": "other" }),
        ] {
            assert!(changes(change.clone()), "{change}");
        }
    }
}
