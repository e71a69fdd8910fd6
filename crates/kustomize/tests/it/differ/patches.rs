//! Random patches and replacements, which mostly fit the objects.

use serde_json::{Value as Json, json};

use super::{
    dice::Dice,
    objects::{self, Known, NAMES, VALUES, scalar},
    tame,
};

/// A path of keys and indices in an object, and its value.
pub(super) type FieldPath = (Vec<String>, Json);

pub(super) fn field_paths(value: &Json, path: &mut Vec<String>, out: &mut Vec<FieldPath>) {
    if !path.is_empty() {
        out.push((path.clone(), value.clone()));
    }
    let members: Vec<(String, &Json)> = match value {
        Json::Object(map) => map.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Json::Array(list) => list
            .iter()
            .enumerate()
            .map(|(n, value)| (n.to_string(), value))
            .collect(),
        _ => Vec::new(),
    };
    for (key, value) in members {
        path.push(key);
        field_paths(value, path, out);
        path.pop();
    }
}

fn random_path(dice: &mut Dice, known: &Known) -> FieldPath {
    let mut out = Vec::new();
    field_paths(&known.object, &mut Vec::new(), &mut out);
    dice.pick(&out).clone()
}

/// Removes some values, and adds directives and nulls.
fn damage(dice: &mut Dice, value: &mut Json, depth: usize) {
    match value {
        Json::Object(map) => {
            let keys: Vec<String> = map.keys().cloned().collect();
            for key in keys {
                if depth > 0 && dice.one_in(5) && key != "name" {
                    map.shift_remove(&key);
                } else if depth > 0 && dice.one_in(14) && key != "name" {
                    map.insert(key, Json::Null);
                } else {
                    damage(dice, &mut map[&key], depth + 1);
                }
            }
            if depth > 0 && dice.one_in(20) {
                let directive = dice.text(&["delete", "replace", "merge"]);
                map.insert("$patch".to_owned(), directive.into());
            }
        }
        Json::Array(list) => {
            for item in list.iter_mut() {
                damage(dice, item, depth + 1);
            }
            if dice.one_in(20) {
                let directive = dice.text(&["delete", "replace", "merge"]);
                list.push(json!({"$patch": directive}));
            }
            if dice.one_in(12) {
                list.clear();
            }
        }
        _ => {}
    }
}

/// Makes a strategic merge patch of an object.
pub(super) fn strategic(dice: &mut Dice, known: &Known) -> Json {
    let mut patch = json!({"apiVersion": known.api, "kind": known.kind, "metadata": known.metadata()});
    if dice.slips(15) {
        patch["$patch"] = dice.text(&["delete", "replace"]).into();
        return patch;
    }
    let mut body = objects::body(dice, &known.kind, &known.api);
    damage(dice, &mut body, 0);
    if let Json::Object(fields) = body {
        for (key, value) in fields {
            patch[&key] = value;
        }
    }
    for key in ["labels", "annotations"] {
        dice.field(&mut patch["metadata"], 5, key, |dice| {
            let mut map = dice.pairs(objects::LABELS, VALUES);
            dice.field(&mut map, 4, "app", |_| Json::Null);
            map
        });
    }
    dice.field(&mut patch["metadata"], 10, "finalizers", |_| {
        json!(["f/a", "f/c"])
    });
    patch
}

/// Makes the operations of a JSON patch.
pub(super) fn operations(dice: &mut Dice, known: &Known) -> Json {
    if !dice.is_wild() {
        return tame::operations(dice, known);
    }
    let operation = |dice: &mut Dice| {
        let (path, value) = match dice.below(3) {
            0 => (
                vec!["metadata".to_owned(), "name".to_owned()],
                dice.text(NAMES).into(),
            ),
            1 => match random_path(dice, known) {
                // The original hashes its own memory for an object that is not a ConfigMap or Secret any more.
                (path, _) if path == ["kind"] => (
                    vec!["metadata".to_owned(), "name".to_owned()],
                    dice.text(NAMES).into(),
                ),
                path => path,
            },
            _ => {
                let (mut path, _) = random_path(dice, known);
                let last = dice.text(&["-", "0", "new", "a~1b"]);
                path.pop();
                path.push(last);
                (path, scalar(dice))
            }
        };
        let path = format!(
            "/{}",
            path.iter()
                .map(|part| part.replace('/', "~1"))
                .collect::<Vec<_>>()
                .join("/")
        );
        match dice.below(10) {
            0 => json!({"op": "remove", "path": path}),
            1 => json!({"op": "test", "path": path, "value": value}),
            2 => json!({"op": "copy", "from": "/metadata/name", "path": path}),
            3 => json!({"op": "move", "from": path, "path": "/metadata/moved"}),
            4..7 => json!({"op": "add", "path": path, "value": value}),
            _ => json!({"op": "replace", "path": path, "value": scalar(dice)}),
        }
    };
    dice.list(1..3, operation).into()
}

/// Makes a selector of objects for a patch: regular expressions.
pub(super) fn target(dice: &mut Dice, known: &Known) -> Json {
    let mut target = json!({});
    dice.field(&mut target, 1, "kind", |_| known.kind.clone().into());
    dice.field(&mut target, 2, "name", |dice| match dice.below(3) {
        0 => ".*".into(),
        1 => format!("{}|w.*", known.name).into(),
        _ => known.name.clone().into(),
    });
    dice.field(&mut target, 5, "version", |_| known.version().into());
    dice.field(&mut target, 5, "group", |_| known.group().into());
    dice.field(&mut target, 6, "namespace", |dice| {
        dice.text(objects::NAMESPACES).into()
    });
    dice.field(&mut target, 8, "labelSelector", |dice| {
        dice.text(&["app=a", "app in (a, b)", "!tier", "app!=a"]).into()
    });
    dice.field(&mut target, 12, "annotationSelector", |dice| {
        dice.text(&["app=a", "tier"]).into()
    });
    target
}

/// Formats a path for replacements.
fn field_path(dice: &mut Dice, known: &Known, source: bool) -> String {
    let (path, _) = match dice.below(5) {
        0 => return "metadata.name".to_owned(),
        1 if !source || dice.one_in(8) => {
            return format!("metadata.{}.app", dice.pick(&["labels", "annotations"]));
        }
        2 if known.kind == "Thing" => {
            return dice.text(&[
                "spec.url",
                "spec.json.a.b",
                "spec.yaml.a.b",
                "spec.json.l.0",
                "spec.yaml.l.0.x",
                "spec.nested.b.[name=x].v",
            ]);
        }
        _ => random_path(dice, known),
    };
    // The original uses annotations for bookkeeping: it prints them when they are copied, and loses them when they are
    // replaced.
    if path
        .last()
        .is_some_and(|last| last == "metadata" || last == "annotations")
        || path == ["kind"]
    {
        return "metadata.name".to_owned();
    }
    let part = |part: &String| {
        if part.parse::<usize>().is_ok() {
            dice.text(&[part, part, part, "*", "1", "[name=main]", "[name=v1]", "[name=A]"])
        } else {
            part.replace('.', "\\.")
        }
    };
    path.iter().map(part).collect::<Vec<_>>().join(".")
}

fn options(dice: &mut Dice, create: usize) -> Json {
    let mut options = json!({});
    dice.field(&mut options, 3, "delimiter", |dice| {
        dice.text(&[":", "/", "-", "."]).into()
    });
    dice.field(&mut options, 3, "index", |dice| (dice.below(4) as i64 - 1).into());
    dice.field(&mut options, create, "create", |_| true.into());
    options
}

pub(super) fn replacement(dice: &mut Dice, known: &[Known]) -> Json {
    if !dice.is_wild() {
        return tame::replacement(dice, known);
    }
    let from = dice.pick(known).clone();
    let mut source = json!({"kind": from.kind, "name": from.name});
    if !from.namespace.is_empty() {
        dice.field(&mut source, 2, "namespace", |_| from.namespace.clone().into());
    }
    dice.field(&mut source, 5, "version", |_| from.version().into());
    dice.field(&mut source, 2, "fieldPath", |dice| {
        field_path(dice, &from, true).into()
    });
    dice.field(&mut source, 5, "options", |dice| options(dice, 99));
    let target = |dice: &mut Dice| {
        let to = dice.pick(known).clone();
        let mut select = json!({"kind": to.kind});
        dice.field(&mut select, 2, "name", |_| to.name.clone().into());
        let mut target =
            json!({"select": select, "fieldPaths": dice.list(1..3, |dice| field_path(dice, &to, false))});
        dice.field(&mut target, 3, "options", |dice| options(dice, 2));
        dice.field(
            &mut target,
            5,
            "reject",
            |dice| json!([{"name": dice.text(NAMES)}]),
        );
        target
    };
    let targets = dice.list(1..3, target);
    if dice.one_in(5) {
        return json!({"sourceValue": dice.text(VALUES), "targets": targets});
    }
    json!({"source": source, "targets": targets})
}
