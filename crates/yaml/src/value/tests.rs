use serde_json::json;

use super::*;
use crate::Position;

fn sample() -> Value {
    Value::from_json(json!({"b": [1, {"c": "x"}], "a": null, "big": u64::MAX, "f": 1.5, "t": true}))
}

#[test]
fn maps_keep_their_order_and_positions() {
    let mut map = Map::new();
    let at = Position { line: 3, column: 5 };
    map.insert_at("z", 1, at);
    map.insert("a", "x");
    assert_eq!(map.insert("z", 2), Some(Value::Int(1)), "replaced where it was");
    assert_eq!(map.keys().collect::<Vec<_>>(), ["z", "a"]);
    assert_eq!(map.position("z"), None, "a new value comes from nowhere");
    map.insert_at("z", 3, at);
    assert_eq!(map.position("z").unwrap().to_string(), "line 3, column 5");
    map.insert("m", Value::Null);
    assert_eq!(map.remove("z"), Some(Value::Int(3)));
    assert_eq!(
        map.keys().collect::<Vec<_>>(),
        ["a", "m"],
        "removal keeps the order"
    );
    map.insert("0", true);
    map.sort_keys();
    assert_eq!(map.keys().collect::<Vec<_>>(), ["0", "a", "m"]);
    map.retain(|key, _| key != "a");
    assert_eq!(map.len(), 2);
    for (_, value) in &mut map {
        *value = Value::Int(7);
    }
    assert_eq!(
        map,
        Map::from([("m", 7), ("0", 7)]),
        "order doesn't count in comparisons"
    );
    assert_ne!(map, Map::from([("m", 7), ("1", 7)]));
}

#[test]
fn nested_maps_are_created_only_for_missing_keys() {
    let mut map = Map::from([("null", Value::Null), ("text", "x".into())]);
    map.get_or_insert_map("new").unwrap().insert("k", 1);
    map.get_or_insert_map("new").unwrap().insert("l", 2);
    assert_eq!(map.get_map("new").unwrap().len(), 2);
    assert!(map.get_or_insert_map("null").unwrap().is_empty());
    assert!(map.get_or_insert_map("text").is_none());
    assert_eq!(map.get_str("text"), Some("x"));
}

#[test]
fn accessors_return_only_their_own_type() {
    let value = sample();
    assert_eq!(value.pointer(&["b", "1", "c"]).and_then(Value::as_str), Some("x"));
    assert_eq!(value.pointer(&["b", "2"]), None);
    assert_eq!(value.pointer(&["b", "x"]), None);
    assert_eq!(value.pointer(&[]), Some(&value));
    assert_eq!(value.get("big").and_then(Value::as_u64), Some(u64::MAX));
    assert_eq!(value.get("big").and_then(Value::as_i64), None);
    assert_eq!(value.get("f").and_then(Value::as_f64), Some(1.5));
    assert_eq!(value.get("f").and_then(Value::as_i64), None);
    assert_eq!(value.get("t").and_then(Value::as_bool), Some(true));
    assert!(value.get("a").unwrap().is_null());
    assert!(value.as_seq().is_none() && value.as_str().is_none());
    let names: Vec<_> = value.as_map().unwrap().values().map(Value::type_name).collect();
    assert_eq!(names, ["list", "null", "integer", "number", "boolean"]);

    let mut value = value;
    *value.pointer_mut(&["b", "0"]).unwrap() = "changed".into();
    value
        .get_mut("b")
        .unwrap()
        .as_seq_mut()
        .unwrap()
        .push(Value::from(3u64));
    assert_eq!(
        value.get("b").unwrap().to_json(),
        json!(["changed", {"c": "x"}, 3])
    );
}

#[test]
fn integers_are_equal_in_either_representation() {
    assert_eq!(Value::from(5u64), Value::Int(5));
    assert_eq!(Value::from(u64::MAX), Value::UInt(u64::MAX));
    assert_eq!(Value::from_json(json!(5u64)), Value::Int(5));
    assert_eq!(Value::from(None::<i64>), Value::Null);
}

#[test]
fn serde_round_trips_values() {
    let value = sample();
    let text = serde_json::to_string(&value).unwrap();
    assert_eq!(
        text,
        r#"{"b":[1,{"c":"x"}],"a":null,"big":18446744073709551615,"f":1.5,"t":true}"#
    );
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    assert_eq!(Value::from_json(value.to_json()), value);
    assert!(
        serde_json::from_str::<Map>("[]")
            .unwrap_err()
            .to_string()
            .contains("expected a map")
    );
    assert_eq!(Value::Float(f64::NAN).to_json(), json!(null));
}

#[test]
fn value_size_is_bounded() {
    assert!(size_of::<Value>() <= 32, "{}", size_of::<Value>());
}
