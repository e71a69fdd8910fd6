//! Merging and normalising values.

use yaml::{Map, Value};

/// Merges `over` into `base`: maps key by key, everything else is replaced.
pub(crate) fn deep(base: &mut Map, over: &Map) {
    for (key, value) in over {
        match (base.get_mut(key), value) {
            (Some(Value::Map(old)), Value::Map(new)) => deep(old, new),
            (Some(old), new) => *old = new.clone(),
            (None, new) => {
                base.insert(key, new.clone());
            }
        }
    }
}

/// A float holds every integer up to this.
const EXACT: u64 = 1 << 53;

/// Converts numbers as a round through Go's JSON does, where every number is a float.
pub(crate) fn through_json(value: &Value) -> Value {
    match value {
        Value::Int(number) if number.unsigned_abs() > EXACT => Value::from_json_float(*number as f64),
        Value::UInt(number) => Value::from_json_float(*number as f64),
        Value::Float(number) => Value::from_json_float(*number),
        Value::Seq(items) => Value::Seq(items.iter().map(through_json).collect()),
        Value::Map(map) => Value::Map(map_through_json(map)),
        other => other.clone(),
    }
}

pub(crate) fn map_through_json(map: &Map) -> Map {
    map.iter()
        .map(|(key, value)| (key.to_owned(), through_json(value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merge_replaces_everything_but_maps() {
        let read = |text: &str| yaml::read::goyaml(text, &tree::Budget::default()).unwrap().value;
        let mut base = read("{a: {b: 1, c: [1]}, d: 1}");
        let over = read("{a: {c: [2], e: 2}, d: null, f: {}}");
        deep(base.as_map_mut().unwrap(), over.as_map().unwrap());
        assert_eq!(base, read("{a: {b: 1, c: [2], e: 2}, d: null, f: {}}"));
    }

    #[test]
    fn large_integers_lose_precision_as_floats() {
        let cases = [
            (Value::Int(5), Value::Int(5)),
            (
                Value::Int(9_007_199_254_740_993),
                Value::Int(9_007_199_254_740_992),
            ),
            (Value::Int(i64::MAX), Value::UInt(9_223_372_036_854_776_000)),
            (Value::Int(i64::MIN), Value::Float(i64::MIN as f64)),
            (
                Value::UInt(12_345_678_901_234_567_890),
                Value::UInt(12_345_678_901_234_567_000),
            ),
            (Value::UInt(u64::MAX), Value::Float(u64::MAX as f64)),
            (Value::Float(2.0), Value::Int(2)),
            (Value::Float(1.5), Value::Float(1.5)),
            (Value::Float(1e21), Value::Float(1e21)),
        ];
        for (value, expected) in cases {
            assert_eq!(through_json(&value), expected);
        }
    }
}
