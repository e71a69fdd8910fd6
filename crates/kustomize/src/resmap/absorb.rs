//! A generated object that merges with or replaces an older one.

use std::collections::BTreeMap;

use yaml::{Node, node::Mapping};

use crate::{
    lookup::raw_text,
    resource::{self, Behavior, History, Resource, encode},
};

/// Merges a generated object with an older one, or replaces it, by its behavior: the result has the name and the history of
/// the older one, and the labels and annotations of both.
pub(crate) fn absorbed(old: &Resource, mut new: Resource) -> Resource {
    for field in ["labels", "annotations"] {
        let mut map = old.metadata_map(field);
        map.extend(new.metadata_map(field));
        new.set_metadata_map(field, &map);
    }
    new.note();
    let (name, namespace) = (old.name().to_owned(), old.namespace().to_owned());
    new.set_name(&name);
    new.set_namespace(&namespace);
    let merges = new.history.behavior == Behavior::Merge;
    let origin = match (merges, &new.history.origin) {
        (true, _) if old.history.origin.is_some() => old.history.origin.clone(),
        (_, Some(_)) => new.history.origin.clone(),
        _ => old.history.origin.clone(),
    };
    new.history = History {
        // Objects that are read from files have no hash, and don't get one by a generated object that merges into them.
        needs_hash: old.history.needs_hash && new.history.needs_hash,
        origin,
        ..old.history.clone()
    };
    if merges {
        new.file = old.file.clone();
        new.line = old.line;
        merge_data(old, &mut new);
    }
    new
}

/// quirk: nothing else of the older object stays: the type, and `immutable`, are the generator's.
fn merge_data(old: &Resource, new: &mut Resource) {
    let mut data = texts(old, "data");
    data.extend(texts(new, "data"));
    let mut binary = texts(old, "binaryData");
    binary.extend(texts(new, "binaryData"));
    let node = new.node_mut();
    node.remove("data");
    node.remove("binaryData");
    for (key, text) in data {
        let (field, text) = encode::for_config_map(text.as_bytes());
        put(node, field, &key, text);
    }
    for (key, text) in binary {
        put(node, "binaryData", &key, text);
    }
}

fn texts(resource: &Resource, field: &str) -> BTreeMap<String, String> {
    let map = resource.node().get(field).and_then(Node::as_map);
    let text = |node: &Node| if node.is_null() { "" } else { raw_text(node) }.to_owned();
    map.into_iter()
        .flat_map(Mapping::iter)
        .map(|(key, node)| (key.to_owned(), text(node)))
        .collect()
}

fn put(object: &mut Node, field: &str, key: &str, text: String) {
    if object.get(field).is_none() {
        object.set(field, Node::map());
    }
    if let Some(map) = object.get_mut(field).and_then(Node::as_map_mut) {
        resource::put(map, key, Node::string(text));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        origin::Origin,
        transform::testing::{object, text},
    };

    const OLD: &str = "{apiVersion: v1, kind: ConfigMap, immutable: true, metadata: {name: p-x, namespace: n, labels: {a: '1', b: '1'}}, \
                        data: {a: '1', b: null, c: 3}, binaryData: {z: AA==}}";
    const NEW: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {b: '2'}, annotations: {c: d}}, data: {a: '2'}}";

    fn pair(behavior: Behavior) -> (Resource, Resource) {
        let (mut old, mut new) = (object(OLD), object(NEW));
        old.history.prefixes = vec!["p-".into()];
        old.history.needs_hash = true;
        old.history.vars = vec!["V".into()];
        old.line = 7;
        new.history.behavior = behavior;
        new.history.needs_hash = true;
        (old, new)
    }

    fn printed(resource: Resource) -> String {
        text(&[resource].into_iter().collect())
    }

    const METADATA: &str = "metadata:\n  annotations:\n    c: d\n  labels:\n    a: \"1\"\n    b: \"2\"\n  name: p-x\n  namespace: \"n\"\n";

    #[test]
    fn data_is_merged() {
        let (old, new) = pair(Behavior::Merge);
        let merged = absorbed(&old, new);
        assert_eq!(merged.line, 7);
        assert_eq!(
            printed(merged),
            format!(
                "apiVersion: v1\nbinaryData:\n  z: AA==\ndata:\n  a: \"2\"\n  b: \"\"\n  c: \"3\"\nkind: ConfigMap\n{METADATA}"
            )
        );
    }

    #[test]
    fn data_is_replaced() {
        let (old, new) = pair(Behavior::Replace);
        let expected = format!("apiVersion: v1\ndata:\n  a: \"2\"\nkind: ConfigMap\n{METADATA}");
        assert_eq!(printed(absorbed(&old, new)), expected);
    }

    #[test]
    fn absorbed_object_keeps_the_older_history() {
        let (old, new) = pair(Behavior::Replace);
        let merged = absorbed(&old, new);
        assert_eq!(merged.history.prefixes, ["p-"]);
        assert_eq!(merged.history.vars, ["V"]);
        for (before, now) in [(false, true), (true, false), (true, true), (false, false)] {
            let (mut old, mut new) = pair(Behavior::Replace);
            old.history.needs_hash = before;
            new.history.needs_hash = now;
            assert_eq!(absorbed(&old, new).history.needs_hash, before && now);
        }
    }

    #[test]
    fn merge_keeps_the_older_origin() {
        let origin = |path: &str| {
            Arc::new(Origin {
                path: path.to_owned(),
                ..Origin::default()
            })
        };
        for (behavior, before, expected) in [
            (Behavior::Merge, Some("old"), "old"),
            (Behavior::Merge, None, "new"),
            (Behavior::Replace, Some("old"), "new"),
        ] {
            let (mut old, mut new) = pair(behavior);
            old.history.origin = before.map(origin);
            new.history.origin = Some(origin("new"));
            assert_eq!(absorbed(&old, new).history.origin, Some(origin(expected)));
        }
        let (mut old, new) = pair(Behavior::Replace);
        old.history.origin = Some(origin("old"));
        assert_eq!(absorbed(&old, new).history.origin, Some(origin("old")));
    }
}
