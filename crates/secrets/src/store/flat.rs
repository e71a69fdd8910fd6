//! Metadata in formats without nesting: `age__list_0__map_enc`.

use yaml::{Map, Value};

use crate::{Error, document};

const MAP: &str = "__map_";
const LIST: &str = "__list_";
/// Longer lists are not metadata.
const MAX_ITEMS: usize = 1000;
/// Maximum number of items of all lists together.
const MAX_ALL_ITEMS: usize = 20_000;
/// Maximum length of a name in bytes.
const MAX_NAME: usize = 1024;
/// Maximum number of nested lists and maps; the metadata has five.
const MAX_DEPTH: usize = 16;

pub(super) fn unflatten<'t>(entries: impl IntoIterator<Item = (&'t str, &'t str)>) -> Result<Value, Error> {
    let (mut root, mut left) = (Value::Null, MAX_ALL_ITEMS);
    for (name, text) in entries {
        let text = text.replace("\\n", "\n");
        let slot = slot(&mut root, name, &mut left)
            .ok_or_else(|| Error::Metadata(format!("`{}` contradicts other names", printable(name))))?;
        *slot = Value::String(text);
    }
    Ok(if root.is_null() {
        Value::Map(Map::new())
    } else {
        root
    })
}

fn printable(name: &str) -> String {
    name.chars().take(100).collect()
}

/// Returns the slot for the value of a flattened name. `left` is the number of items that lists may still get.
fn slot<'v>(root: &'v mut Value, name: &str, left: &mut usize) -> Option<&'v mut Value> {
    if name.len() > MAX_NAME {
        return None;
    }
    let end = next(name);
    let (first, mut rest) = name.split_at_checked(end)?;
    let mut slot = entry(root, first)?;
    let mut depth = 0;
    while !rest.is_empty() {
        depth += 1;
        if depth > MAX_DEPTH {
            return None;
        }
        let (step, is_map) = match rest.strip_prefix(MAP) {
            Some(step) => (step, true),
            None => (rest.strip_prefix(LIST)?, false),
        };
        let (part, behind) = step.split_at_checked(next(step))?;
        slot = if is_map {
            entry(slot, part)?
        } else {
            item(slot, part.parse().ok()?, left)?
        };
        rest = behind;
    }
    Some(slot)
}

/// Returns the byte index of the next separator, or the length of the name if it has none.
fn next(name: &str) -> usize {
    let ends = [name.find(MAP), name.find(LIST)];
    ends.into_iter().flatten().min().unwrap_or(name.len())
}

fn entry<'v>(slot: &'v mut Value, key: &str) -> Option<&'v mut Value> {
    if slot.is_null() {
        *slot = Value::Map(Map::new());
    }
    let map = slot.as_map_mut()?;
    if !map.contains_key(key) {
        map.insert(key, Value::Null);
    }
    map.get_mut(key)
}

fn item<'v>(slot: &'v mut Value, index: usize, left: &mut usize) -> Option<&'v mut Value> {
    if slot.is_null() {
        *slot = Value::Seq(Vec::new());
    }
    let items = slot.as_seq_mut().filter(|_| index < MAX_ITEMS)?;
    if items.len() <= index {
        *left = left.checked_sub(index + 1 - items.len())?;
        items.resize(index + 1, Value::Null);
    }
    items.get_mut(index)
}

/// Formats a value as a string, for formats without other types.
pub(super) fn text(value: &document::Value) -> Option<Vec<u8>> {
    use document::Value as V;
    Some(match value {
        V::Null => b"<nil>".to_vec(),
        V::Bool(flag) => flag.to_string().into_bytes(),
        V::Int(number) => number.to_string().into_bytes(),
        V::Float(number) => float(*number).into_bytes(),
        V::Text(text) | V::Time(text) => text.clone().into_bytes(),
        V::Bytes(bytes) => bytes.clone(),
        V::Comment(_) | V::Seq(_) | V::Map(_) => return None,
    })
}

/// Formats a float so that it can't be taken for an integer; the exponent is upper case.
fn float(number: f64) -> String {
    let value = Value::Float(number);
    let text = yaml::print::json(&value).to_uppercase();
    if text.contains(['.', 'E']) {
        text
    } else {
        format!("{text}.0")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_lists_and_maps() {
        let found = unflatten([
            ("age__list_1__map_enc", "b\\nc"),
            ("age__list_0__map_enc", "a"),
            ("kms__list_0__map_context__map_x", "1"),
            ("mac", "m"),
        ])
        .unwrap();
        assert_eq!(
            yaml::print::json(&found),
            r#"{"age":[{"enc":"a"},{"enc":"b\nc"}],"kms":[{"context":{"x":"1"}}],"mac":"m"}"#
        );
    }

    #[test]
    fn invalid_flat_metadata_is_refused() {
        for names in [
            &["a__list_1000"][..],
            &["a__list_x"],
            &["a", "a__map_b"],
            &["a__map_b", "a__list_0"],
            &["a__list_99999999999999999999"],
        ] {
            let entries = names.iter().map(|name| (*name, "x"));
            assert!(unflatten(entries).is_err(), "{names:?}");
        }
    }

    #[test]
    fn deep_and_long_flat_metadata_is_refused_before_it_is_made() {
        let deep = format!("a{}", "__map_b".repeat(700_000));
        let lists = format!("a{}", "__list_999".repeat(400_000));
        let nested = format!("a{}", "__map_b".repeat(MAX_DEPTH + 1));
        for name in [&deep, &lists, &nested] {
            let error = unflatten([(name.as_str(), "x")]).unwrap_err().to_string();
            assert!(
                error.len() < 300 && error.contains("contradicts other names"),
                "{error}"
            );
        }
        assert!(unflatten([(format!("a{}", "__map_b".repeat(MAX_DEPTH)).as_str(), "x")]).is_ok());
        let names: Vec<_> = (0..30).map(|number| format!("a{number}__list_999")).collect();
        let all = |count: usize| unflatten(names.iter().take(count).map(|name| (name.as_str(), "x")));
        assert!(all(20).is_ok() && all(21).is_err());
    }
}
