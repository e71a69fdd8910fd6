//! Random objects as inputs of the selection.

use testkit::fuzz;
use yaml::Value;

use crate::{keep_reason, select, tests::owner};

/// Words with a meaning in metadata, so that random values get past the first check.
const WORDS: &[&str] = &[
    "apiVersion",
    "kind",
    "metadata",
    "name",
    "namespace",
    "annotations",
    "managedFields",
    "manager",
    "deployer",
    "ownerReferences",
    "uid",
    "resourceVersion",
    "example.com/skip-delete",
    "true",
];

#[test]
fn fuzz_selection() {
    fuzz::run("selection", |random| {
        let mut json = serde_json::json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "n", "namespace": "ns", "uid": "u", "resourceVersion": "1", "annotations": {},
                "managedFields": [{"manager": random.pick(&["deployer", "hpa"]), "operation": "Apply"}]},
        });
        let times = random.below(6);
        random.damage_json(&mut json, WORDS, times);
        let live = Value::from_json(json);
        random.note("live", &live);
        if let Ok(selection) = select(&owner(), std::slice::from_ref(&live), &Default::default()) {
            assert_eq!(selection.orphans.len() + selection.retained.len(), 1);
            assert!(selection.orphans.is_empty() || keep_reason(&owner(), &live).is_none());
        }
    });
}
