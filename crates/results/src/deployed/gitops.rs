//! The kinds and namespaces of objects that a KluctlDeployment of `gitops.kluctl.io` deployed, which its status has beside the result of the last deployment. Pure.
//!
//! They are not in the result itself, because the types of kluctl refuse results with fields that they don't know.
//!
//! Identities with rights in some namespaces only cannot list all objects: a search is complete for them if it saw these.

use api::kluctl::gitops::KluctlDeploymentStatus;
use objects::ObjectRef;
use serde_json::{Map, Value};

use crate::Inventory;

const FIELD: &str = "inventory";
/// Field with the ID of the result that they belong to: objects that another controller deployed later are not in them.
const RESULT: &str = "resultId";

/// Returns the objects that may have been deployed; unknown objects if nobody knows.
pub fn of(status: Option<&KluctlDeploymentStatus>) -> Inventory {
    let Some(status) = status else {
        return Inventory::of(Some(&[]));
    };
    let begun = in_progress(status);
    let ended = match (&status.last_deploy_result, &status.target_key) {
        (Some(result), _) => ended(status.deployed_inventory.as_ref(), result),
        (None, Some(_)) if begun.is_none() => Inventory::of(None),
        (None, _) => Inventory::of(Some(&[])),
    };
    match begun {
        Some(begun) => ended.with(begun),
        None => ended,
    }
}

fn ended(noted: Option<&Map<String, Value>>, result: &Value) -> Inventory {
    let noted = noted.filter(|noted| noted.get(RESULT) == result.get("id"));
    read(noted.and_then(|noted| noted.get(FIELD)))
}

fn read(value: Option<&Value>) -> Inventory {
    Inventory::from_value(&yaml::Value::from_json(value.cloned().unwrap_or_default()))
}

/// Returns the inventory of deployments that began and have no result; `None` if there are none.
fn in_progress(status: &KluctlDeploymentStatus) -> Option<Inventory> {
    let begun = status.begun_inventory.as_ref()?;
    Some(read(begun.get(FIELD)))
}

/// Returns false if the status of an untyped object shows that it applied no object: no deployment has begun, or the rights to all objects were
/// refused. True if that is unknown, as of a deployment without a result.
pub fn has_applied(object: &Value) -> bool {
    let last = object.pointer("/status/lastDeployResult");
    let Some(last) = last.filter(|last| !last.is_null()) else {
        return object
            .pointer("/status/begunInventory")
            .is_some_and(|begun| !begun.is_null());
    };
    super::has_applied(last)
}

/// Records the objects that a deployment is about to apply, unless the status has their kinds and namespaces. Should the process end
/// before there is a result, a removal knows them.
pub fn begin(status: &mut KluctlDeploymentStatus, rendered: &[ObjectRef]) {
    let planned = Inventory::of(Some(rendered));
    let is_noted = status.last_deploy_result.is_some() || status.begun_inventory.is_some();
    if is_noted && of(Some(status)).covers(&planned) {
        return;
    }
    let all = match in_progress(status) {
        Some(begun) => begun.with(planned),
        None => planned,
    };
    // One that is too large for a status is null, which is unknown.
    let begun = [(FIELD.to_owned(), all.to_value().to_json())];
    status.begun_inventory = Some(begun.into_iter().filter(|(_, value)| !value.is_null()).collect());
}

/// Returns true if a stored status tells a removal as much as one before a deployment: project, target, and inventory.
pub fn records_as_much(stored: &KluctlDeploymentStatus, now: &KluctlDeploymentStatus) -> bool {
    stored.project_key == now.project_key
        && stored.target_key == now.target_key
        && stored.begun_inventory == now.begun_inventory
}

/// Forgets the deployment in progress, as the result of a deployment has it.
pub fn end(status: &mut KluctlDeploymentStatus) {
    status.begun_inventory = None;
}

pub fn note(status: &mut KluctlDeploymentStatus, result: Value, inventory: &Inventory) {
    let inventory = inventory.to_value().to_json();
    let id = result.get("id").cloned().unwrap_or_default();
    // One that is too large for a status is null, which is unknown.
    status.deployed_inventory = (!inventory.is_null())
        .then(|| Map::from_iter([(RESULT.to_owned(), id), (FIELD.to_owned(), inventory)]));
    status.last_deploy_result = Some(result);
}

/// Returns the inventory after a command: older objects stay in it, unless `replaces` says that all of that is gone.
pub fn after(past: Inventory, deployed: &[ObjectRef], replaces: bool) -> Inventory {
    let now = Inventory::of(Some(deployed));
    if replaces { now } else { now.with(past) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn inventory_is_known_from_the_first_deployment_on() {
        let status = |value: Value| serde_json::from_value::<KluctlDeploymentStatus>(value).unwrap();
        assert_eq!(of(None).objects(), Some(Vec::new()));
        assert_eq!(of(Some(&status(json!({})))).objects(), Some(Vec::new()));
        let interrupted = status(json!({ "targetKey": { "clusterId": "c" } }));
        assert_eq!(of(Some(&interrupted)).objects(), None);
        assert_eq!(
            of(Some(&status(json!({ "lastDeployResult": {} })))).objects(),
            None,
            "of the original"
        );
        let mut begun = interrupted.clone();
        let map = ObjectRef {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespace: Some("apps".to_owned()),
            name: "a".to_owned(),
        };
        begin(&mut begun, std::slice::from_ref(&map));
        assert_eq!(of(Some(&begun)).objects().map(|all| all.len()), Some(1));
        let recorded = begun.clone();
        begin(&mut begun, std::slice::from_ref(&map));
        assert_eq!(begun, recorded, "it is recorded once");
        assert!(records_as_much(&recorded, &begun) && !records_as_much(&interrupted, &begun));
        let many: Vec<ObjectRef> = (0..1000)
            .map(|i| ObjectRef {
                namespace: Some(format!("namespace-{i}")),
                ..map.clone()
            })
            .collect();
        let mut large = interrupted;
        begin(&mut large, &many);
        assert_eq!(of(Some(&large)).objects(), None, "too large for a status");
        end(&mut begun);
        assert_eq!(of(Some(&begun)).objects(), None);
        let mut deployed = status(json!({}));
        note(
            &mut deployed,
            json!({ "id": "1" }),
            &after(Inventory::of(Some(&[])), &[map], false),
        );
        assert_eq!(deployed.last_deploy_result, Some(json!({ "id": "1" })));
        let known = of(Some(&deployed));
        assert_eq!(known.objects().map(|all| all.len()), Some(1));
        deployed.last_deploy_result = Some(json!({ "id": "2" }));
        assert_eq!(of(Some(&deployed)).objects(), None, "another controller deployed");
        note(&mut deployed, json!({ "id": "3" }), &Inventory::of(None));
        assert_eq!(of(Some(&deployed)).objects(), None);
        assert_eq!(after(known.clone(), &[], false), known);
        assert_eq!(after(known, &[], true).objects(), Some(Vec::new()));
    }
}
