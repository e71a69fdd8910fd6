//! Take-over of the fields that other managers set before the owner applied, and removal of metadata that they left.
//!
//! Fields that move into the owner's entry are removed by its next apply, unless its manifest has them. A plain apply, even by
//! force, would leave them to their managers for ever.

use std::borrow::Cow;

use yaml::{Map, Value};

use crate::meta;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Apply,
    Update,
}

impl Operation {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenManager {
    pub name: Cow<'static, str>,
    /// If set, all names that begin with `name` are meant.
    pub is_prefix: bool,
    /// The only operation that is meant; both if absent.
    pub operation: Option<Operation>,
}

impl TakenManager {
    fn matches(&self, manager: &str, operation: &str) -> bool {
        let name = if self.is_prefix {
            manager.starts_with(self.name.as_ref())
        } else {
            manager == self.name
        };
        name && self.operation.is_none_or(|own| own.as_str() == operation)
    }
}

/// The managers and the metadata that an owner takes over or removes before it applies an object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Takeover {
    pub managers: Vec<TakenManager>,
    pub annotations: Vec<Cow<'static, str>>,
    pub labels: Vec<Cow<'static, str>>,
}

impl Takeover {
    /// Returns true if the fields of a manager are taken over.
    #[must_use]
    pub fn takes(&self, manager: &str, operation: Operation) -> bool {
        self.managers
            .iter()
            .any(|taken| taken.matches(manager, operation.as_str()))
    }
}

/// Returns the operations of a JSON patch that takes over a live object for a manager; `None` if there is nothing to do. The API
/// server refuses the patch with a conflict if the object was changed since.
#[must_use]
pub fn plan(live: &Value, manager: &str, takeover: &Takeover) -> Option<Value> {
    let mut operations = Vec::new();
    if let Some(entries) = merged(live, manager, takeover) {
        operations.push(operation("replace", "/metadata/managedFields", Some(entries)));
    }
    let metadata = [
        ("annotations", &takeover.annotations),
        ("labels", &takeover.labels),
    ];
    for (part, names) in metadata {
        let found = meta::metadata(live).and_then(|metadata| metadata.get_map(part));
        for name in names
            .iter()
            .filter(|name| found.is_some_and(|found| found.contains_key(name)))
        {
            let name = name.replace('~', "~0").replace('/', "~1");
            operations.push(operation("remove", &format!("/metadata/{part}/{name}"), None));
        }
    }
    if operations.is_empty() {
        return None;
    }
    let version = Value::from(meta::resource_version(live)?);
    operations.insert(
        0,
        operation("replace", "/metadata/resourceVersion", Some(version)),
    );
    Some(Value::Seq(operations))
}

fn operation(kind: &str, path: &str, value: Option<Value>) -> Value {
    let mut operation = Map::from([("op", Value::from(kind)), ("path", Value::from(path))]);
    if let Some(value) = value {
        operation.insert("value", value);
    }
    Value::Map(operation)
}

/// Returns the entries of managed fields with all taken ones merged into the manager's own; `None` if none is taken.
fn merged(live: &Value, manager: &str, takeover: &Takeover) -> Option<Value> {
    if takeover.managers.is_empty() {
        return None;
    }
    let entries = live.pointer(&["metadata", "managedFields"])?.as_seq()?;
    let text = |entry: &Value, field: &str| {
        let text = entry.get(field).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let is_own = |entry: &Value| {
        text(entry, "manager") == manager
            && text(entry, "operation") == "Apply"
            && text(entry, "subresource").is_empty()
    };
    let is_taken = |entry: &&Value| {
        let (name, operation) = (text(entry, "manager"), text(entry, "operation"));
        !is_own(entry)
            && text(entry, "subresource").is_empty()
            && takeover.managers.iter().any(|one| one.matches(&name, &operation))
    };
    let mut taken = entries.iter().filter(is_taken).peekable();
    taken.peek()?;
    let own = entries.iter().find(|entry| is_own(entry)).and_then(Value::as_map);
    let mut own = own.cloned().unwrap_or_else(|| {
        Map::from([
            ("manager", Value::from(manager)),
            ("operation", Value::from("Apply")),
            ("apiVersion", Value::from(text(live, "apiVersion"))),
            ("fieldsType", Value::from("FieldsV1")),
        ])
    });
    let mut fields = own.get_map("fieldsV1").cloned().unwrap_or_default();
    for tree in taken.filter_map(|entry| entry.get("fieldsV1")?.as_map()) {
        unite(&mut fields, tree);
    }
    own.insert("fieldsV1", fields);
    let others = entries.iter().filter(|entry| !is_own(entry) && !is_taken(entry));
    Some([Value::Map(own)].into_iter().chain(others.cloned()).collect())
}

fn unite(tree: &mut Map, other: &Map) {
    for (name, below) in other {
        match (tree.get_mut(name).and_then(Value::as_map_mut), below.as_map()) {
            (Some(tree), Some(below)) => unite(tree, below),
            _ => {
                tree.insert(name, below.clone());
            }
        }
    }
}

#[cfg(test)]
#[allow(
    clippy::needless_pass_by_value,
    reason = "a json! literal reads best by value"
)]
mod tests {
    use super::*;
    use serde_json::{Value as Json, json};

    fn takeover() -> Takeover {
        let taken = |name: &'static str, is_prefix, operation| TakenManager {
            name: name.into(),
            is_prefix,
            operation,
        };
        Takeover {
            managers: vec![
                taken("kubectl", false, Some(Operation::Apply)),
                taken("kubectl", true, Some(Operation::Update)),
                taken("before-first-apply", false, Some(Operation::Update)),
                taken("deployer", false, Some(Operation::Update)),
                taken("ci", true, None),
            ],
            annotations: vec!["kubectl.kubernetes.io/last-applied-configuration".into()],
            labels: vec!["example.com/mark".into()],
        }
    }

    fn entry(manager: &str, operation: &str, fields: Json) -> Json {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    fn planned(metadata: Json) -> Option<Json> {
        let live = Value::from_json(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}));
        plan(&live, "deployer", &takeover()).map(|patch| patch.to_json())
    }

    #[test]
    fn entries_of_taken_managers_are_merged_into_the_own_one() {
        let data = |field: &str| json!({"f:data": {field: {}}});
        let mut status = entry("kubectl-edit", "Update", data("f:s"));
        status["subresource"] = json!("status");
        let all = [
            entry("hpa", "Update", data("f:h")),
            entry("deployer", "Apply", data("f:a")),
            entry("kubectl", "Apply", data("f:b")),
            entry("kubectl-edit", "Update", data("f:c")),
            entry("before-first-apply", "Update", data("f:d")),
            entry(
                "deployer",
                "Update",
                json!({"f:metadata": {"f:labels": {"f:e": {}}}}),
            ),
            entry("ci-job", "Apply", data("f:a")),
            entry("kubectl-edit", "Apply", data("f:other")),
            status.clone(),
        ];
        let found = planned(json!({"resourceVersion": "7", "managedFields": all})).unwrap();
        let own = entry(
            "deployer",
            "Apply",
            json!({"f:data": {"f:a": {}, "f:b": {}, "f:c": {}, "f:d": {}}, "f:metadata": {"f:labels": {"f:e": {}}}}),
        );
        let rest = [own, all[0].clone(), all[7].clone(), status];
        let expected = json!([
            {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
            {"op": "replace", "path": "/metadata/managedFields", "value": rest},
        ]);
        assert_eq!(found, expected);
    }

    #[test]
    fn an_own_entry_is_made_if_there_is_none() {
        let fields = json!({"f:data": {"f:a": {}}});
        let before = entry("before-first-apply", "Update", fields.clone());
        let found = planned(json!({"resourceVersion": "7", "managedFields": [before]})).unwrap();
        assert_eq!(found[1]["value"], json!([entry("deployer", "Apply", fields)]));
    }

    #[test]
    fn left_metadata_is_removed_and_nothing_is_done_without_need() {
        let left = json!({"resourceVersion": "7", "labels": {"example.com/mark": "x", "other": "y"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}});
        let paths: Vec<Json> = planned(left)
            .unwrap()
            .as_array()
            .unwrap()
            .iter()
            .map(|op| op["path"].clone())
            .collect();
        let expected = [
            "/metadata/resourceVersion",
            "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration",
            "/metadata/labels/example.com~1mark",
        ];
        assert_eq!(paths, expected);
        let own = entry("deployer", "Apply", json!({"f:data": {}}));
        for clean in [
            json!({"resourceVersion": "7"}),
            json!({"resourceVersion": "7", "managedFields": [own, entry("hpa", "Update", json!({}))]}),
        ] {
            assert_eq!(planned(clean.clone()), None, "{clean}");
        }
    }
}
