//! The objects that a KluctlDeployment of `flux.kluctl.io` may have deployed, by its status: the objects of the last result, and the kinds and namespaces of a deployment that has begun, until its
//! result has them. Pure.
//!
//! If the process ends in the middle, a later removal or prune that may list objects in some namespaces only still searches the namespaces
//! of the interrupted deployment. They are part of the target in the status, as previous discriminators are.

use api::kluctl::KluctlDeployment;
use objects::ObjectRef;
use yaml::Map;

use crate::Inventory;

const FIELD: &str = "begunInventory";

/// Returns the inventory of deployments that began and have no result; `None` if there are none.
pub fn in_progress(object: &KluctlDeployment) -> Option<Inventory> {
    let target = object.status.as_ref()?.raw_target.as_deref()?;
    if !target.contains(FIELD) {
        return None;
    }
    let target = yaml::read::goyaml(target, &tree::Budget::default()).ok()?.value;
    target.get(FIELD).map(Inventory::from_value)
}

/// Returns the objects that may have been deployed, as the last result in the status lists them, those that it has no room
/// for and objects of deployments without a result without their names; `None` if not all kinds are known.
pub fn deployed_objects(object: &KluctlDeployment) -> Option<Vec<ObjectRef>> {
    let status = object.status.as_ref();
    let mut objects = match status.and_then(|status| status.last_deploy_result.as_ref()) {
        None => Vec::new(),
        Some(result) => crate::status_objects(result.raw_result.as_deref()?)?,
    };
    if let Some(begun) = in_progress(object) {
        objects.extend(begun.objects()?);
    }
    Some(objects)
}

/// Returns the inventory to record before the first of these objects is applied; `None` if the status has all of it.
pub fn unrecorded(object: &KluctlDeployment, rendered: &[ObjectRef], hash: &str) -> Option<Inventory> {
    let last = object
        .status
        .as_ref()
        .and_then(|status| status.last_deploy_result.as_ref());
    if last.is_some_and(|last| last.objects_hash.as_deref() == Some(hash)) {
        return None;
    }
    let known = Inventory::of(deployed_objects(object).as_deref());
    let planned = Inventory::of(Some(rendered));
    if known.covers(&planned) {
        return None;
    }
    Some(match in_progress(object) {
        Some(begun) => begun.with(planned),
        None => planned,
    })
}

/// Returns false if the status of an untyped object shows that it applied no object: no deployment has begun, or the rights to all objects were
/// refused. True if that is unknown, as of a deployment without a result.
pub fn has_applied(object: &serde_json::Value) -> bool {
    let text = |pointer: &str| object.pointer(pointer).and_then(serde_json::Value::as_str);
    if object
        .pointer("/status/lastDeployResult")
        .is_none_or(serde_json::Value::is_null)
    {
        return text("/status/rawTarget").is_some_and(|target| target.contains(FIELD));
    }
    let raw = text("/status/lastDeployResult/rawResult").unwrap_or_default();
    let result = yaml::read::goyaml(raw, &tree::Budget::default());
    result
        .ok()
        .is_none_or(|result| super::has_applied(&result.value.to_json()))
}

pub fn remember(target: &mut Map, begun: Option<&Inventory>) {
    if let Some(begun) = begun {
        target.insert(FIELD, begun.to_value());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use yaml::Value;

    use super::*;

    fn reference(kind: &str, namespace: &str) -> ObjectRef {
        ObjectRef {
            group: String::new(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            namespace: Some(namespace.to_owned()),
            name: "a".to_owned(),
        }
    }

    fn object(begun: Option<&Inventory>, last: Option<(&str, &str)>) -> KluctlDeployment {
        let mut target = Map::from([("name", "test")]);
        remember(&mut target, begun);
        let result = last.map(|(hash, kind)| {
            let raw = format!("objects:\n- ref:\n    kind: {kind}\n    namespace: apps\n    name: a\n");
            json!({ "time": "2026-01-01T00:00:00Z", "objectsHash": hash, "rawResult": raw })
        });
        serde_json::from_value(json!({
            "apiVersion": "flux.kluctl.io/v1alpha1", "kind": "KluctlDeployment",
            "metadata": { "name": "shop", "namespace": "apps" }, "spec": { "interval": "5m" },
            "status": { "rawTarget": yaml::print::goyaml(&Value::Map(target)), "lastDeployResult": result },
        }))
        .expect("decodes")
    }

    #[test]
    fn inventory_is_recorded_once_for_each_deployment_with_new_kinds_or_namespaces() {
        let map = [reference("ConfigMap", "apps")];
        let both = [reference("ConfigMap", "apps"), reference("Secret", "other")];
        let of = |objects: &[ObjectRef]| Inventory::of(Some(objects));

        let fresh = object(None, None);
        assert_eq!(in_progress(&fresh), None);
        assert_eq!(unrecorded(&fresh, &map, "1"), Some(of(&map)));
        let interrupted = object(Some(&of(&map)), None);
        assert_eq!(in_progress(&interrupted), Some(of(&map)));
        assert_eq!(unrecorded(&interrupted, &map, "1"), None);
        assert_eq!(unrecorded(&interrupted, &both, "2"), Some(of(&both)));

        let deployed = object(None, Some(("1", "ConfigMap")));
        assert_eq!(unrecorded(&deployed, &map, "2"), None, "the kinds are the same");
        assert_eq!(unrecorded(&deployed, &both, "1"), None, "it was deployed");
        assert_eq!(unrecorded(&deployed, &both, "2"), Some(of(&both)));
        let again = object(Some(&of(&both[1..])), Some(("1", "ConfigMap")));
        assert_eq!(unrecorded(&again, &both, "2"), None);
        let known: Vec<String> = deployed_objects(&again)
            .expect("all kinds are known")
            .into_iter()
            .map(|one| one.kind)
            .collect();
        assert_eq!(known, ["ConfigMap", "Secret"]);
    }

    #[test]
    fn inventory_that_is_too_large_for_a_status_is_unknown_and_recorded_once() {
        let many: Vec<ObjectRef> = (0..1000)
            .map(|i| reference("ConfigMap", &format!("namespace-{i}")))
            .collect();
        let begun = unrecorded(&object(None, None), &many, "1").expect("an inventory");
        let interrupted = object(Some(&begun), None);
        assert_eq!(in_progress(&interrupted), Some(Inventory::of(None)));
        assert_eq!(unrecorded(&interrupted, &many, "1"), None);
        assert_eq!(deployed_objects(&interrupted), None);
    }
}
