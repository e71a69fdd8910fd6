//! The text of a comparison, in the form of the original. Pure.

use objects::{
    ObjectRef,
    diff::{Change, ChangeKind},
    path::Key,
};
use yaml::{Map, Value};

const ROOT: &str = "(root level)";
const NUMBERS: [&str; 12] = [
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
];

/// Returns the name of an object in reports, as in `Service/default/podinfo`.
pub(super) fn name(reference: &ObjectRef) -> String {
    match reference
        .namespace
        .as_deref()
        .filter(|namespace| !namespace.is_empty())
    {
        Some(namespace) => format!("{}/{namespace}/{}", reference.kind, reference.name),
        None => format!("{}/{}", reference.kind, reference.name),
    }
}

/// Describes the changes of an object, one block for each place. Changes of the order alone have no [`Change`].
pub(super) fn describe(changes: &[Change], before: &Value, after: &Value) -> String {
    let mut text = String::new();
    if changes.is_empty() {
        text.push_str(&format!("\n{ROOT}\n⇆ order changed\n"));
    }
    let mut rest = changes;
    while let Some(first) = rest.first() {
        let alike = rest.iter().take_while(|other| is_alike(first, other)).count();
        let (group, next) = rest.split_at(alike.max(1));
        rest = next;
        text.push('\n');
        text.push_str(&block(group, first, (before, after)));
    }
    text + "\n"
}

/// Returns true for additions, or removals, at one place: they share a block.
fn is_alike(first: &Change, other: &Change) -> bool {
    first.kind == other.kind && first.kind != ChangeKind::Update && parent(first) == parent(other)
}

fn parent(change: &Change) -> &[Key] {
    change.path.split_last().map_or(&[], |(_, parent)| parent)
}

fn block(group: &[Change], first: &Change, (before, after): (&Value, &Value)) -> String {
    let (sign, done, value) = match first.kind {
        ChangeKind::Update => return updated(first, before),
        ChangeKind::Insert => ("+", "added", after),
        ChangeKind::Delete => ("-", "removed", before),
    };
    let is_list = matches!(first.path.last(), Some(Key::Index(_)));
    let what = if is_list { "list" } else { "map" };
    let entries = if group.len() == 1 { "entry" } else { "entries" };
    let count = NUMBERS.get(group.len().wrapping_sub(1));
    let count = count.map_or_else(|| group.len().to_string(), |word| (*word).to_owned());
    let mut text = format!(
        "{}\n{sign} {count} {what} {entries} {done}:\n",
        dotted(parent(first), value)
    );
    for change in group {
        let value = change.new.as_ref().or(change.old.as_ref());
        let value = value.cloned().unwrap_or_default();
        let entry = match change.path.last() {
            Some(Key::Field(name)) => {
                let mut map = Map::new();
                map.insert(&**name, value);
                Value::Map(map)
            }
            _ => Value::Seq(vec![value]),
        };
        text.push_str(&indented(&yaml::print::goyaml(&entry)));
    }
    text
}

fn updated(change: &Change, before: &Value) -> String {
    let place = dotted(&change.path, before);
    if change.masked {
        return format!("{place}\n± value change\n- *** (before)\n+ *** (after)\n");
    }
    let is_long = |value: &Option<Value>| match value {
        Some(Value::String(text)) => text.contains('\n'),
        Some(Value::Map(_) | Value::Seq(_)) => true,
        _ => false,
    };
    match is_long(&change.old) || is_long(&change.new) {
        true => format!(
            "{place}\n± value change in several lines\n{}",
            indented(&change.unified())
        ),
        false => format!(
            "{place}\n± value change\n- {}\n+ {}\n",
            scalar(change.old.as_ref()),
            scalar(change.new.as_ref())
        ),
    }
}

fn scalar(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(other) => yaml::print::json(other),
        None => String::new(),
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

/// Returns a path with dots. Items of lists have their names, if all have one, otherwise their positions.
fn dotted(path: &[Key], value: &Value) -> String {
    let mut at = Some(value);
    let mut parts: Vec<String> = Vec::with_capacity(path.len());
    for key in path {
        match key {
            Key::Field(name) => {
                parts.push(name.to_string());
                at = at.and_then(|value| value.get(name));
            }
            Key::Index(index) => {
                let items = at.and_then(Value::as_seq).unwrap_or_default();
                let name = |item: &Value| item.get("name").and_then(Value::as_str).map(str::to_owned);
                let item = items.get(*index);
                let named = item
                    .and_then(name)
                    .filter(|_| items.iter().all(|item| name(item).is_some()));
                parts.push(named.unwrap_or_else(|| index.to_string()));
                at = item;
            }
        }
    }
    match parts.is_empty() {
        true => ROOT.to_owned(),
        false => parts.join("."),
    }
}

#[cfg(test)]
mod tests {
    use objects::{diff, secrets};
    use serde_json::{Value as Json, json};

    use super::*;

    fn described(before: Json, after: Json, is_secret: bool) -> String {
        let (before, after) = (Value::from_json(before), Value::from_json(after));
        let mut changes = diff::changes(&before, &after);
        if is_secret {
            secrets::mask(&mut changes);
        }
        describe(&changes, &before, &after)
    }

    #[test]
    fn changed_values_are_named_by_their_place() {
        let service = |port: u16| json!({ "spec": { "ports": [{ "name": "http", "port": port }] } });
        assert_eq!(
            described(service(9899), service(9898), false),
            "\nspec.ports.http.port\n± value change\n- 9899\n+ 9898\n\n"
        );
        let secret = |value: &str| json!({ "data": { "password": value } });
        assert_eq!(
            described(secret("YQ=="), secret("Yg=="), true),
            "\ndata.password\n± value change\n- *** (before)\n+ *** (after)\n\n"
        );
        assert_eq!(
            described(json!({ "a": "x\ny\n" }), json!({ "a": "x\nz\n" }), false)
                .lines()
                .take(3)
                .collect::<Vec<_>>(),
            ["", "a", "± value change in several lines"]
        );
    }

    #[test]
    fn entries_at_one_place_share_a_block() {
        let text = described(
            json!({ "metadata": { "name": "a" }, "args": [1], "old": true }),
            json!({ "metadata": { "name": "a", "labels": { "x": "y" }, "note": 1 }, "args": [1, 2] }),
            false,
        );
        for part in [
            "\nargs\n+ one list entry added:\n  - 2\n",
            "\nmetadata\n+ two map entries added:\n  labels:\n    x: \"y\"\n  note: 1\n",
            "\n(root level)\n- one map entry removed:\n  old: true\n",
        ] {
            assert!(text.contains(part), "{part:?} in {text:?}");
        }
        let secret = described(json!({}), json!({ "data": { "a": "YQ==" } }), true);
        assert_eq!(
            secret,
            "\n(root level)\n+ one map entry added:\n  data:\n    a: '*****'\n\n"
        );
    }

    #[test]
    fn order_alone_is_a_change() {
        let text = described(json!({ "args": [1, 2] }), json!({ "args": [2, 1] }), false);
        assert_eq!(text, "\n(root level)\n⇆ order changed\n\n");
    }
}
