//! Compares the outcome of a command with the recorded one.

use anyhow::{Result, ensure};
use objects::diff;
use yaml::{Map, Value};

/// Fields of results that every run has anew.
const VOLATILE: [&str; 11] = [
    "id",
    "reconcileId",
    "projectKey",
    "targetKey",
    "kluctlDeployment",
    "gitInfo",
    "clusterInfo",
    "renderedObjectsHash",
    "startTime",
    "endTime",
    "initiator",
];

/// Fails with the differences between two values.
pub(crate) fn same(what: &str, recorded: &Value, found: &Value) -> Result<()> {
    let changes = diff::changes(recorded, found);
    let messages: Vec<String> = changes
        .iter()
        .take(6)
        .map(|change| format!("{}: {}", change.json_path(), change.unified().replace('\n', " ")))
        .collect();
    ensure!(
        changes.is_empty(),
        "{what} differ (- recorded, + found): {}",
        messages.join(" || ")
    );
    Ok(())
}

pub(crate) fn result(recorded: &Value, found: &Value) -> Result<()> {
    let (mut recorded, mut found) = (comparable(recorded), comparable(found));
    for list in ["errors", "warnings", "results"] {
        messages(list, take(&mut recorded, list), take(&mut found, list))?;
    }
    same(
        "objects of the results",
        &take(&mut recorded, "objects"),
        &take(&mut found, "objects"),
    )?;
    same("results", &recorded, &found)
}

fn take(value: &mut Value, name: &str) -> Value {
    value
        .as_map_mut()
        .and_then(|map| map.remove(name))
        .unwrap_or_else(|| Value::Seq(Vec::new()))
}

/// Removes values that every run has anew and the contents of objects, and sorts lists by name.
fn comparable(result: &Value) -> Value {
    let mut result = result.clone();
    let Some(map) = result.as_map_mut() else {
        return result;
    };
    if let Some(objects) = map.remove("compactedObjects") {
        map.insert("objects", without_contents(objects));
    }
    for name in VOLATILE {
        map.remove(name);
        if let Some(command) = map.get_mut("command").and_then(Value::as_map_mut) {
            command.remove(name);
        }
    }
    if let Some(context) = map.get_mut("target").and_then(|target| target.get_mut("context")) {
        *context = Value::from("<CONTEXT>");
    }
    for list in ["objects", "errors", "warnings", "results"] {
        if let Some(items) = map.get_mut(list).and_then(Value::as_seq_mut) {
            items.sort_by_cached_key(sort_key);
        }
    }
    result
}

fn without_contents(mut objects: Value) -> Value {
    for object in objects.as_seq_mut().into_iter().flatten() {
        for content in ["rendered", "remote", "applied"] {
            object.as_map_mut().and_then(|object| object.remove(content));
        }
    }
    objects
}

fn sort_key(entry: &Value) -> String {
    let part = |path: &[&str]| {
        entry
            .pointer(path)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let reference = ["group", "version", "kind", "namespace", "name"].map(|field| part(&["ref", field]));
    format!("{} {}", reference.join("/"), part(&["message"]))
}

/// Compares messages, apart from advice that we add at the end, and from identities.
fn messages(what: &str, recorded: Value, found: Value) -> Result<()> {
    let (Value::Seq(recorded), Value::Seq(found)) = (recorded, found) else {
        anyhow::bail!("{what} are no list");
    };
    let text = |entry: &Value| {
        entry
            .get("message")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let alike = |(recorded, found): (&Value, &Value)| {
        recorded.get("ref") == found.get("ref") && begins(&text(found), &text(recorded))
    };
    ensure!(
        recorded.len() == found.len() && recorded.iter().zip(&found).all(alike),
        "{what}: found {}, recorded {}",
        yaml::print::json(&Value::Seq(found)),
        yaml::print::json(&Value::Seq(recorded))
    );
    Ok(())
}

/// Returns true if a string begins as recorded, where `<UID>` stands for any identity.
fn begins(found: &str, recorded: &str) -> bool {
    let mut rest = found;
    for (index, part) in recorded.split("<UID>").enumerate() {
        if index > 0 {
            let Some(after) = rest.get(36..) else { return false };
            rest = after;
        }
        let Some(after) = rest.strip_prefix(part) else {
            return false;
        };
        rest = after;
    }
    true
}

/// Compares written objects by the directories of items, and in order where that was recorded.
pub(crate) fn written(expected: &Value, written: &[(String, String)]) -> Result<()> {
    let mut by_dir = Map::new();
    for (dir, name) in written {
        let list = by_dir.remove(dir);
        let mut list = match list {
            Some(Value::Seq(list)) => list,
            _ => Vec::new(),
        };
        list.push(Value::from(name.as_str()));
        by_dir.insert(dir.as_str(), list);
    }
    // Only ConfigMaps and Secrets have an order: controllers write the status of other objects.
    let empty = Map::new();
    let recorded = expected.get("written").and_then(Value::as_map).unwrap_or(&empty);
    let sorted = |list: &Value| {
        let mut names: Vec<String> = strings(Some(list)).map(str::to_owned).collect();
        names.sort();
        names
    };
    let of_data = |list: &Value| -> Vec<String> {
        let is_data = |name: &&str| name.starts_with("ConfigMap/") || name.starts_with("Secret/");
        strings(Some(list)).filter(is_data).map(str::to_owned).collect()
    };
    let all = |map: &Map| {
        map.iter()
            .map(|(dir, list)| (dir.to_owned(), sorted(list)))
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    ensure!(
        all(recorded) == all(&by_dir),
        "written {by_dir:?}, recorded {recorded:?}"
    );
    for (dir, list) in recorded {
        let found = by_dir.get(dir).map(&of_data).unwrap_or_default();
        ensure!(
            of_data(list) == found,
            "written in {dir}: {found:?}, recorded {list:?}"
        );
    }
    if let Some(order) = expected.get("written_order") {
        let found: Vec<&str> = written.iter().map(|(_, name)| name.as_str()).collect();
        ensure!(
            strings(Some(order)).eq(found.iter().copied()),
            "written {found:?}, recorded {order:?}"
        );
    }
    Ok(())
}

/// Compares the last line of the error output: its end, because ours has more about the location.
pub(crate) fn error(recorded: &str, found: &str) -> Result<()> {
    let essence = recorded
        .rsplit_once(" vars: ")
        .map_or(recorded, |(_, essence)| essence);
    ensure!(found.contains(essence), "error '{found}', recorded '{recorded}'");
    Ok(())
}

/// Returns the strings of a list.
pub(crate) fn strings(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_seq)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}
