//! JSON patches and replacements that fit the objects, so that trees with them can be built.

use serde_json::{Value as Json, json};

use super::{
    dice::Dice,
    objects::{Known, NAMES, VALUES, scalar},
    patches::{FieldPath, field_paths},
};

/// Returns the paths of an object that may change without a change of its identity.
fn inner_paths(known: &Known) -> Vec<FieldPath> {
    let mut out = Vec::new();
    if !known.is_changed {
        field_paths(&known.object, &mut Vec::new(), &mut out);
    }
    out.retain(|(path, _)| {
        let last = path.last().map_or("", String::as_str);
        path.len() > 1
            && !matches!(
                last,
                "name" | "namespace" | "kind" | "apiGroup" | "labels" | "annotations"
            )
            && path[1] != "annotations"
    });
    out
}

/// Picks the path of a string in the usual style, or another leaf, if there is any.
fn leaf(dice: &mut Dice, known: &Known, is_wanted: impl Fn(&Json) -> bool) -> Option<FieldPath> {
    let mut leaves = inner_paths(known);
    leaves.retain(|(_, value)| is_wanted(value));
    (!leaves.is_empty()).then(|| dice.pick(&leaves).clone())
}

fn is_text(value: &Json) -> bool {
    value
        .as_str()
        .is_some_and(|text| !text.is_empty() && !text.starts_with("RAW"))
}

fn is_leaf(value: &Json) -> bool {
    is_text(value) || value.is_number()
}

fn pointer(path: &[String]) -> String {
    let part = |part: &String| format!("/{}", part.replace('~', "~0").replace('/', "~1"));
    path.iter().map(part).collect()
}

/// Makes an operation that moves nothing.
fn gentle(dice: &mut Dice, known: &Known) -> Json {
    let extra = |dice: &mut Dice| json!({"op": "add", "path": "/extra", "value": scalar(dice)});
    let Some((path, value)) = leaf(dice, known, |value| !value.is_null()) else {
        return extra(dice);
    };
    let pointer = pointer(&path);
    let is_not_metadata = path[0] != "metadata";
    match value {
        Json::Object(_) if is_not_metadata => {
            json!({"op": "add", "path": format!("{pointer}/{}", dice.pick(&["new", "a~1b"])), "value": dice.text(VALUES)})
        }
        Json::Array(items) if is_not_metadata && !items.is_empty() => {
            json!({"op": "add", "path": format!("{pointer}/-"), "value": dice.pick(&items)})
        }
        Json::Number(_) if dice.one_in(4) => json!({"op": "test", "path": pointer, "value": value}),
        Json::Number(_) => json!({"op": "replace", "path": pointer, "value": dice.below(9)}),
        Json::String(_) => {
            let value = if dice.one_in(2) {
                dice.text(NAMES)
            } else {
                dice.text(VALUES)
            };
            json!({"op": dice.pick(&["replace", "add"]), "path": pointer, "value": value})
        }
        _ => extra(dice),
    }
}

/// Makes the operations of a JSON patch that applies; removals come last.
pub(super) fn operations(dice: &mut Dice, known: &Known) -> Json {
    let mut list = dice.list(1..3, |dice| gentle(dice, known));
    let path_and_value = leaf(dice, known, |_| true).filter(|(path, _)| path[0] != "metadata");
    if let Some((path, value)) = path_and_value {
        let pointer = pointer(&path);
        match dice.below(6) {
            0 | 1 => list.push(json!({"op": "remove", "path": pointer})),
            2 if is_leaf(&value) => list.push(json!({"op": "copy", "from": pointer, "path": "/copied"})),
            3 => list.push(json!({"op": "move", "from": pointer, "path": "/moved"})),
            _ => {}
        }
    }
    list.into()
}

/// Makes a selector of one object for a patch.
pub(super) fn target(known: &Known) -> Json {
    json!({"group": known.group(), "version": known.version(), "kind": known.kind, "name": known.name})
}

/// Formats a path for replacements, with conditions instead of some indices.
fn dotted(dice: &mut Dice, known: &Known, path: &[String]) -> String {
    let mut value = &known.object;
    let mut parts = Vec::new();
    for part in path {
        value = match value {
            Json::Array(items) => &items[part.parse::<usize>().unwrap()],
            value => &value[part],
        };
        let name = value["name"].as_str().filter(|name| !name.starts_with("RAW"));
        parts.push(match name {
            Some(name) if part.parse::<usize>().is_ok() && dice.one_in(2) => format!("[name={name}]"),
            _ => part.replace('.', "\\."),
        });
    }
    parts.join(".")
}

/// Picks the path of a source, with true if it is a string.
fn source_path(dice: &mut Dice, from: &Known) -> (String, bool) {
    let path_and_value = if dice.one_in(3) {
        leaf(dice, from, |value| {
            value.as_object().is_some_and(|map| !map.is_empty())
                || value.as_array().is_some_and(|list| !list.is_empty())
        })
    } else {
        leaf(dice, from, is_text)
    };
    match path_and_value {
        Some((path, value)) if !dice.one_in(3) => (dotted(dice, from, &path), value.is_string()),
        _ => ("metadata.name".to_owned(), true),
    }
}

fn options(dice: &mut Dice) -> Json {
    let mut options = json!({});
    if dice.one_in(2) {
        options["delimiter"] = dice.text(&[":", "/", "-", "."]).into();
        options["index"] = (dice.below(4) as i64 - 1).into();
    }
    options
}

fn replaced(dice: &mut Dice, known: &[Known], is_text_source: bool) -> Json {
    let to = dice.pick(known).clone();
    let select = json!({"kind": to.kind, "name": to.name, "version": to.version()});
    let path_and_value = |dice: &mut Dice| leaf(dice, &to, is_text);
    match path_and_value(dice) {
        Some((path, _)) if is_text_source && !dice.one_in(4) => {
            let mut paths = vec![dotted(dice, &to, &path)];
            if dice.one_in(3)
                && let Some((path, _)) = path_and_value(dice)
            {
                paths.push(dotted(dice, &to, &path));
            }
            let mut target = json!({"select": select, "fieldPaths": paths});
            dice.field(&mut target, 3, "options", options);
            target
        }
        _ => {
            let path = match is_text_source {
                true => dice.text(&["metadata.annotations.copied", "metadata.labels.app", "extra.a"]),
                false => dice.text(&["extra.b", "extra.c.[name=x].d"]),
            };
            json!({"select": select, "fieldPaths": [path], "options": {"create": true}})
        }
    }
}

/// Makes a replacement whose source and targets exist.
pub(super) fn replacement(dice: &mut Dice, known: &[Known]) -> Json {
    let from = dice.pick(known).clone();
    let (path, is_text) = source_path(dice, &from);
    let targets = dice.list(1..3, |dice| replaced(dice, known, is_text));
    if dice.one_in(5) && is_text {
        return json!({"sourceValue": dice.text(VALUES), "targets": targets});
    }
    let source = json!({"kind": from.kind, "name": from.name, "version": from.version(), "fieldPath": path});
    json!({"source": source, "targets": targets})
}
