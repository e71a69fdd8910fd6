//! The kinds and namespaces of what was deployed, which a status has in the result of the last deployment. Pure.
//!
//! Identities with rights in some namespaces only cannot list all objects: a search is complete for them if it saw these.

use api::kluctl::gitops::KluctlDeploymentStatus;
use engine::Inventory;
use objects::ObjectRef;
use serde_json::Value;

/// Field of the result.
const FIELD: &str = "inventory";

/// Returns what may have been deployed; unknown objects if nobody knows.
pub(super) fn of(status: Option<&KluctlDeploymentStatus>) -> Inventory {
    let Some(status) = status else {
        return Inventory::of(Some(&[]));
    };
    match (&status.last_deploy_result, &status.target_key) {
        (Some(result), _) => {
            let noted = result.get(FIELD).cloned().unwrap_or_default();
            Inventory::from_value(&yaml::Value::from_json(noted))
        }
        (None, None) => Inventory::of(Some(&[])),
        // A first deployment may have been interrupted.
        (None, Some(_)) => Inventory::of(None),
    }
}

/// Adds what may be deployed now to the result of a deployment.
pub(super) fn note(result: &mut Value, inventory: &Inventory) {
    let inventory = inventory.to_value().to_json();
    if let Some(map) = result.as_object_mut().filter(|_| !inventory.is_null()) {
        map.insert(FIELD.to_owned(), inventory);
    }
}

/// Returns the inventory after a command: what was deployed before stays in it, unless `replaces` says that all of that is gone.
pub(super) fn after(past: Inventory, deployed: &[ObjectRef], replaces: bool) -> Inventory {
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
        let map = ObjectRef {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespace: Some("apps".to_owned()),
            name: "a".to_owned(),
        };
        let mut result = json!({});
        note(&mut result, &after(Inventory::of(Some(&[])), &[map], false));
        let known = of(Some(&status(json!({ "lastDeployResult": result }))));
        assert_eq!(known.objects().map(|all| all.len()), Some(1));
        assert_eq!(after(known.clone(), &[], false), known);
        assert_eq!(after(known, &[], true).objects(), Some(Vec::new()));
    }
}
