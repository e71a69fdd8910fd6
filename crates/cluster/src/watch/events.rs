//! The lines of a watch.

use std::sync::Arc;

use serde::Deserialize;
use yaml::Value;

#[derive(Debug, PartialEq)]
pub(super) enum Event {
    Object {
        name: String,
        version: String,
        object: Option<Arc<Value>>,
    },
    /// Another object changed, or nothing; the version to go on from.
    Progress(String),
    /// The version to go on from is too old.
    Expired,
    /// An error of the API server, or invalid.
    Invalid,
}

#[derive(Deserialize)]
struct Line {
    r#type: String,
    object: Head,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    code: Option<u16>,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: String,
    resource_version: String,
}

#[derive(Deserialize)]
struct Full {
    object: Value,
}

/// Parses a line; only wanted objects are parsed as a whole.
pub(super) fn parse(line: &[u8], is_wanted: impl Fn(&str) -> bool) -> Event {
    let Ok(Line { r#type, object }) = serde_json::from_slice::<Line>(line) else {
        return Event::Invalid;
    };
    let Metadata {
        name,
        resource_version,
    } = object.metadata;
    match r#type.as_str() {
        "ERROR" if object.code == Some(410) => return Event::Expired,
        _ if resource_version.is_empty() => return Event::Invalid,
        "BOOKMARK" => return Event::Progress(resource_version),
        "ADDED" | "MODIFIED" | "DELETED" => {}
        _ => return Event::Invalid,
    }
    if name.is_empty() || !is_wanted(&name) {
        return Event::Progress(resource_version);
    }
    let object = match r#type.as_str() {
        "DELETED" => None,
        _ => match serde_json::from_slice::<Full>(line) {
            Ok(full) => Some(Arc::new(full.object)),
            Err(_) => return Event::Invalid,
        },
    };
    Event::Object {
        name,
        version: resource_version,
        object,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lines_are_parsed_as_far_as_they_are_wanted() {
        let line = |kind: &str, name: &str, version: &str| {
            let object = json!({"kind": "A", "metadata": {"name": name, "resourceVersion": version}});
            json!({"type": kind, "object": object}).to_string()
        };
        let parsed = |line: String| parse(line.as_bytes(), |name| name == "a");
        let progress = |version: &str| Event::Progress(version.to_owned());
        let object = json!({"kind": "A", "metadata": {"name": "a", "resourceVersion": "7"}});
        let found = |object: Option<serde_json::Value>| Event::Object {
            name: "a".to_owned(),
            version: "7".to_owned(),
            object: object.map(|object| Arc::new(Value::from_json(object))),
        };
        for (line, expected) in [
            (line("ADDED", "a", "7"), found(Some(object.clone()))),
            (line("MODIFIED", "a", "7"), found(Some(object))),
            (line("DELETED", "a", "7"), found(None)),
            (line("MODIFIED", "b", "8"), progress("8")),
            (line("BOOKMARK", "", "9"), progress("9")),
            (line("MODIFIED", "a", ""), Event::Invalid),
            (line("ODD", "a", "7"), Event::Invalid),
            (
                json!({"type": "ERROR", "object": {"code": 410}}).to_string(),
                Event::Expired,
            ),
            (
                json!({"type": "ERROR", "object": {"code": 500}}).to_string(),
                Event::Invalid,
            ),
            ("nonsense".to_owned(), Event::Invalid),
        ] {
            assert_eq!(parsed(line.clone()), expected, "{line}");
        }
    }
}
