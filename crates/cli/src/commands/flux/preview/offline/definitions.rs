//! The definitions of Weir's kinds, by which objects are checked. Pure.

use std::collections::HashMap;

use serde_json::Value as Json;

use super::{
    metadata, rules,
    schema::{Invalid, Validator, complete},
};

/// Maximum nesting of lists.
const NESTED: usize = 8;

/// The definitions that the program has.
#[derive(Debug)]
pub(super) struct Definitions {
    /// The definitions by group and kind.
    kinds: HashMap<(String, String), Json>,
    validator: Validator,
}

/// The result for an object.
#[derive(Debug)]
pub(super) struct Checked {
    /// Kind, namespace and name.
    pub(super) name: String,
    pub(super) found: Vec<Invalid>,
}

impl Definitions {
    pub(super) fn embedded() -> Self {
        let all = api::crd::all().into_iter();
        let kinds = all.filter_map(|definition| {
            let definition = serde_json::to_value(definition).ok()?;
            let spec = definition.get("spec")?;
            let group = text(spec, &["group"]).to_owned();
            let kind = text(spec, &["names", "kind"]).to_owned();
            Some(((group, kind), definition))
        });
        Self {
            kinds: kinds.collect(),
            validator: Validator::default(),
        }
    }

    /// Checks an object; `None` if it has another kind.
    pub(super) fn check(&mut self, mut object: Json) -> Option<Checked> {
        let (group, version) = text(&object, &["apiVersion"]).split_once('/')?;
        let key = (group.to_owned(), text(&object, &["kind"]).to_owned());
        let definition = self.kinds.get(&key)?;
        let name = name(&object);
        let versions = definition.pointer("/spec/versions").and_then(Json::as_array)?;
        let Some(served) = versions.iter().find(|one| text(one, &["name"]) == version) else {
            let known: Vec<&str> = versions.iter().map(|one| text(one, &["name"])).collect();
            let message = format!(
                "unknown version {version:?}: supported versions: {}",
                known.join(", ")
            );
            let found = vec![Invalid {
                field: "apiVersion".to_owned(),
                message,
            }];
            return Some(Checked { name, found });
        };
        let schema = served.pointer("/schema/openAPIV3Schema")?;
        complete(&mut object, schema);
        let mut found = metadata::check(&object);
        found.extend(self.validator.validate(&object, schema, ""));
        // Values that a schema can't describe.
        if found.is_empty() {
            let spec = object.get("spec").unwrap_or(&Json::Null);
            found = rules::check(&key.0, &key.1, spec);
            if let Some(Err(error)) = api::crd::decode(object) {
                found.push(Invalid {
                    field: String::new(),
                    message: format!("the object can't be decoded: {error}"),
                });
            }
        }
        Some(Checked { name, found })
    }
}

fn name(object: &Json) -> String {
    let (kind, name) = (text(object, &["kind"]), text(object, &["metadata", "name"]));
    match text(object, &["metadata", "namespace"]) {
        "" => format!("{kind}/{name}"),
        namespace => format!("{kind}/{namespace}/{name}"),
    }
}

fn text<'v>(value: &'v Json, path: &[&str]) -> &'v str {
    let found = path.iter().try_fold(value, |value, name| value.get(name));
    found.and_then(Json::as_str).unwrap_or_default()
}

/// Returns the items of a list, also of nested ones; other values as they are.
pub(super) fn items(value: Json) -> Vec<Json> {
    let mut open = vec![(value, 0)];
    let mut all = Vec::new();
    while let Some((mut value, depth)) = open.pop() {
        let is_list = text(&value, &["kind"]).ends_with("List") && depth < NESTED;
        match value
            .get_mut("items")
            .and_then(Json::as_array_mut)
            .filter(|_| is_list)
        {
            Some(items) => open.extend(
                std::mem::take(items)
                    .into_iter()
                    .rev()
                    .map(|item| (item, depth + 1)),
            ),
            None => all.push(value),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kustomization(spec: &Json) -> Json {
        json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": { "name": "apps", "namespace": "n" }, "spec": spec,
        })
    }

    fn found(object: Json) -> Vec<String> {
        let checked = Definitions::embedded().check(object).unwrap();
        checked.found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn objects_are_checked_by_the_schema_of_their_kind() {
        let spec =
            json!({ "interval": "5m", "prune": true, "sourceRef": { "kind": "GitRepository", "name": "r" } });
        assert_eq!(found(kustomization(&spec)), [""; 0]);
        let mut wrong = spec.clone();
        wrong["prune"] = json!("yes");
        wrong["pruned"] = json!(true);
        wrong.as_object_mut().unwrap().remove("interval");
        let found_fields = found(kustomization(&wrong));
        for start in [
            "spec.interval: Required value",
            "spec.prune: Invalid value",
            "spec.pruned: unknown field",
        ] {
            assert!(
                found_fields.iter().any(|one| one.starts_with(start)),
                "{start}: {found_fields:?}"
            );
        }
        let mut both = spec;
        both["kubeConfig"] = json!({ "secretRef": { "name": "a" }, "configMapRef": { "name": "b" } });
        let found = found(kustomization(&both));
        assert!(
            found[0].starts_with("spec.kubeConfig: Invalid value: \"object\": exactly one of"),
            "{found:?}"
        );
    }

    #[test]
    fn versions_and_names_are_checked() {
        let mut object = kustomization(&json!({}));
        object["apiVersion"] = json!("kustomize.toolkit.fluxcd.io/v9");
        let found = found(object);
        assert!(
            found[0].starts_with("apiVersion: unknown version \"v9\": supported versions: v1, "),
            "{found:?}"
        );
        let mut object = kustomization(&json!({}));
        object["metadata"] = json!({});
        let checked = Definitions::embedded().check(object).unwrap();
        assert_eq!(
            (checked.name.as_str(), checked.found[0].field.as_str()),
            ("Kustomization/", "metadata.name")
        );
        let other = json!({ "apiVersion": "apps/v1", "kind": "Deployment" });
        assert!(Definitions::embedded().check(other).is_none());
    }

    #[test]
    fn items_of_lists_are_objects() {
        let list = |items: Json| json!({ "apiVersion": "v1", "kind": "List", "items": items });
        let all = items(list(json!([{ "a": 1 }, list(json!([{ "b": 2 }])), { "c": 3 }])));
        assert_eq!(all, [json!({ "a": 1 }), json!({ "b": 2 }), json!({ "c": 3 })]);
        assert_eq!(items(json!(null)), [json!(null)]);
    }
}
