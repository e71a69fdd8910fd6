//! ConfigMaps and Secrets that objects refer to, and the values of HelmReleases that are composed of them.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context as _, Result, bail, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use objects::ObjectRef;
use tree::Budget;
use yaml::{Map, Value};

use super::read;
use crate::commands::flux::Flux;

type Data = BTreeMap<String, String>;

/// ConfigMaps and Secrets, each read once.
pub(super) struct References<'a> {
    flux: &'a Flux,
    known: HashMap<(String, String), Option<Data>>,
}

impl<'a> References<'a> {
    pub(super) fn new(flux: &'a Flux) -> Self {
        Self {
            flux,
            known: HashMap::new(),
        }
    }

    /// Returns the data of a ConfigMap or Secret; `None` if it does not exist.
    pub(super) async fn data(&mut self, kind: &str, name: &str) -> Result<Option<Data>> {
        ensure!(
            matches!(kind, "ConfigMap" | "Secret"),
            "unsupported kind '{kind}' of a reference: ConfigMap and Secret are supported"
        );
        let key = (kind.to_owned(), name.to_owned());
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let reference = ObjectRef::core(kind, &self.flux.namespace, name);
        let object = self.flux.cluster.get(&reference).await?;
        let data = object.map(|object| decoded(kind, &object)).transpose()?;
        self.known.insert(key, data.clone());
        Ok(data)
    }
}

fn decoded(kind: &str, object: &Value) -> Result<Data> {
    let data = object.get("data").and_then(Value::as_map);
    let pairs = data.into_iter().flat_map(|data| data.iter());
    pairs
        .map(|(key, value)| {
            let text = value.as_str().unwrap_or_default();
            let text = match kind {
                "Secret" => String::from_utf8_lossy(&STANDARD.decode(text)?).into_owned(),
                _ => text.to_owned(),
            };
            Ok((key.to_owned(), text))
        })
        .collect()
}

/// Returns the values of a HelmRelease: later references override earlier ones, and inline values override all.
pub(super) async fn merged(flux: &Flux, release: &Value) -> Result<Value> {
    let mut values = Map::new();
    let mut references = References::new(flux);
    let listed = release.pointer(&["spec", "valuesFrom"]).and_then(Value::as_seq);
    let inline = release.pointer(&["spec", "values"]).and_then(Value::as_map);
    for reference in listed.unwrap_or_default() {
        let (kind, name) = (read::text(reference, &["kind"]), read::text(reference, &["name"]));
        let key = match read::text(reference, &["valuesKey"]) {
            "" => "values.yaml",
            key => key,
        };
        let is_optional = reference
            .get("optional")
            .and_then(Value::as_bool)
            .unwrap_or_default();
        let data = references.data(kind, name).await?;
        let Some(text) = data.as_ref().and_then(|data| data.get(key)) else {
            ensure!(
                is_optional,
                "could not resolve {kind} chart values reference '{name}' with key '{key}'"
            );
            continue;
        };
        match read::text(reference, &["targetPath"]) {
            "" => {
                let document = yaml::read::goyaml(text, &Budget::default())
                    .with_context(|| format!("{kind} '{name}' with key '{key}'"))?;
                if let Value::Map(map) = document.value {
                    merge(&mut values, &map);
                }
            }
            path => {
                // Inline values are merged before, as the controller does.
                inline.into_iter().for_each(|inline| merge(&mut values, inline));
                set(&mut values, path, scalar(text))?;
            }
        }
    }
    inline.into_iter().for_each(|inline| merge(&mut values, inline));
    Ok(Value::Map(values))
}

/// Merges maps: values of `from` win.
fn merge(into: &mut Map, from: &Map) {
    for (key, value) in from.iter() {
        match (into.get_mut(key).and_then(Value::as_map_mut), value) {
            (Some(own), Value::Map(other)) => merge(own, other),
            _ => {
                into.insert(key, value.clone());
            }
        }
    }
}

/// Sets the value at a path of keys with dots between them; `\.` is a dot in a key.
fn set(values: &mut Map, path: &str, value: Value) -> Result<()> {
    if path.contains('[') {
        bail!("targetPath {path}: paths with list indexes are not supported here");
    }
    let (key, rest) = split(path);
    let Some(rest) = rest else {
        values.insert(key.as_str(), value);
        return Ok(());
    };
    if values.get(&key).and_then(Value::as_map).is_none() {
        values.insert(key.as_str(), Value::Map(Map::new()));
    }
    match values.get_mut(&key).and_then(Value::as_map_mut) {
        Some(inner) => set(inner, rest, value),
        None => Ok(()),
    }
}

/// Splits a path after its first key.
fn split(path: &str) -> (String, Option<&str>) {
    let mut key = String::new();
    let mut chars = path.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => key.extend(chars.next().map(|(_, c)| c)),
            '.' => return (key, path.get(at + 1..)),
            c => key.push(c),
        }
    }
    (key, None)
}

/// Returns a value as Helm's `--set` types it; quotes make a string.
fn scalar(text: &str) -> Value {
    for quote in ['\'', '"'] {
        let inner = text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
        if let Some(inner) = inner {
            return Value::from(inner);
        }
    }
    match text {
        "true" => Value::from(true),
        "false" => Value::from(false),
        "null" => Value::Null,
        "0" => Value::from(0_i64),
        _ if text.starts_with('0') => Value::from(text),
        _ => text
            .parse::<i64>()
            .map_or_else(|_| Value::from(text), Value::from),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_and_maps_are_merged_as_by_the_controller() {
        let Value::Map(mut values) = Value::from_json(json!({"a": {"b": 1, "c": [1]}})) else {
            panic!("no map");
        };
        let Value::Map(other) = Value::from_json(json!({"a": {"c": [2]}, "d": null})) else {
            panic!("no map");
        };
        merge(&mut values, &other);
        set(&mut values, "a.e.x\\.y", scalar("7")).unwrap();
        set(&mut values, "d.f", scalar("'7'")).unwrap();
        let expected = json!({"a": {"b": 1, "c": [2], "e": {"x.y": 7}}, "d": {"f": "7"}});
        assert_eq!(Value::Map(values.clone()).to_json(), expected);
        assert!(set(&mut values, "a[0]", Value::Null).is_err());
        let typed = ["true", "null", "0", "012", "-3", "x"].map(|text| scalar(text).to_json());
        assert_eq!(
            typed,
            [
                json!(true),
                json!(null),
                json!(0),
                json!("012"),
                json!(-3),
                json!("x")
            ]
        );
    }
}
