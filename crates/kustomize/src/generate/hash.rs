//! The hash of the content in the names of generated objects.

use sha2::{Digest as _, Sha256};
use yaml::{Map, Value, node::Content};

use crate::{
    Error,
    error::{Context as _, Step},
    lookup::raw_text,
    resmap::ResMap,
    resource::Resource,
};

const DIGITS: usize = 10;

/// The largest number that is exact in a double: larger ones go through one.
const EXACT: u64 = 1 << 53;

/// Adds a hash of the content to the names of the objects that want it. Fails if a content can't be printed.
pub(crate) fn add_hashes(resources: &mut ResMap) -> Result<(), Error> {
    if !resources.iter().any(|resource| resource.history.needs_hash) {
        return Ok(());
    }
    for resource in resources
        .iter_mut()
        .filter(|resource| resource.history.needs_hash)
    {
        let hash = hash(resource).context(|| format!("hashing {}", resource.id()))?;
        resource.store_previous_id();
        let name = format!("{}-{hash}", resource.name());
        resource.set_name(&name);
    }
    Ok(())
}

fn hash(resource: &Resource) -> Result<String, Error> {
    let kind = &*resource.gvk().kind;
    let content = match kind {
        "ConfigMap" => content(resource, kind, &["data"], "binaryData")?,
        "Secret" => content(resource, kind, &["data", "type"], "stringData")?,
        // The original hashes its own memory here, with positions in the source.
        _ => value(resource.node())?,
    };
    let text = yaml::print::json_sorted_html(&content);
    Ok(encoded(&Sha256::digest(text.as_bytes())))
}

/// quirk: the name is always empty, and a missing field is an empty string.
fn content(resource: &Resource, kind: &str, fields: &[&str], only_if_map: &str) -> Result<Value, Error> {
    let mut content = Map::new();
    content.insert("kind", kind);
    content.insert("name", "");
    for field in fields {
        content.insert(*field, field_value(resource, field)?);
    }
    match resource.node().get(only_if_map).map(|node| &node.content) {
        None | Some(Content::Scalar(_)) => {}
        Some(_) => {
            content.insert(only_if_map, field_value(resource, only_if_map)?);
        }
    }
    Ok(Value::Map(content))
}

fn field_value(resource: &Resource, field: &str) -> Result<Value, Error> {
    let Some(node) = resource.node().get(field) else {
        return Ok(Value::from(""));
    };
    match &node.content {
        Content::Scalar(_) => Ok(Value::from(raw_text(node))),
        Content::Seq(_) => Ok(Value::Null),
        Content::Map(_) => value(node),
    }
}

fn value(node: &yaml::Node) -> Result<Value, Error> {
    let mut value = node.to_value().map_err(|error| Error::new(Step::Output, error))?;
    through_doubles(&mut value);
    Ok(value)
}

fn through_doubles(value: &mut Value) {
    match value {
        Value::Int(number) if number.unsigned_abs() > EXACT => *value = Value::Float(*number as f64),
        Value::UInt(number) if *number > EXACT => *value = Value::Float(*number as f64),
        Value::Seq(items) => items.iter_mut().for_each(through_doubles),
        Value::Map(map) => map.values_mut().for_each(through_doubles),
        _ => {}
    }
}

/// Encodes the first digits; those that could form words or be confused are replaced.
fn encoded(hash: &[u8]) -> String {
    let digits = hash.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let digit = |digit: u8| match digit {
        0 => 'g',
        1 => 'h',
        3 => 'k',
        10 => 'm',
        14 => 't',
        other => char::from_digit(other.into(), 16).unwrap_or_default(),
    };
    digits.take(DIGITS).map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transform::testing::{object, objects};

    #[test]
    fn hashes_match_the_original() {
        let cases = [
            ("{kind: ConfigMap, data: {b: '2', a: '1'}}", "7gdc49gk6d"),
            (
                "{kind: ConfigMap, metadata: {name: x, namespace: y, labels: {a: b}}, immutable: true}",
                "6ct58987ht",
            ),
            ("{kind: ConfigMap, data: {x: <a>&b}}", "ffmgktb5f5"),
            ("{kind: Secret, type: Opaque, data: {a: MQ==}}", "25khgmg44c"),
            ("{kind: Secret, type: foo, data: {a: MQ==}}", "7bt9bg5mm9"),
            ("{kind: ConfigMap, binaryData: {bin.dat: //4A}}", "9594kbfk55"),
        ];
        for (text, expected) in cases {
            assert_eq!(hash(&object(text)).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn hash_is_added_only_on_request() {
        let object = "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: '1', b: '2'}}";
        let mut resources = objects(&format!(
            "{object}\n---\n{}",
            object.replace("name: x", "name: y")
        ));
        if let Some(first) = resources.get_mut(0) {
            first.history.needs_hash = true;
        }
        add_hashes(&mut resources).unwrap();
        let names: Vec<_> = resources.iter().map(Resource::name).collect();
        assert_eq!(names, ["x-7gdc49gk6d", "y"]);
        assert_eq!(resources.get(0).unwrap().original_id().name, "x");
    }

    #[test]
    fn unprintable_objects_have_no_hash() {
        let mut resources = objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {1: a}}");
        resources.get_mut(0).unwrap().history.needs_hash = true;
        let error = add_hashes(&mut resources).unwrap_err().to_string();
        assert!(
            error.starts_with("hashing ConfigMap.v1.[noGrp]/x.[noNs]: "),
            "{error}"
        );
    }
}
