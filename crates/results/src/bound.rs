//! Results that fit where there is little room: an annotation, or the status of an object.

use yaml::Value;

use super::{ObjectError, entry};

const MESSAGES: [&str; 2] = ["errors", "warnings"];
const LISTS: [&str; 2] = ["objects", "results"];
/// Maximum number of entries of another list that is too large.
const MOST_ENTRIES: usize = 1000;
/// Maximum size of a message in bytes, if the messages are too large.
const MESSAGE_BYTES: usize = 4 << 10;

/// Returns a result that has at most about `most` bytes of JSON: values of changes are left out first, then messages, then objects, then
/// arguments. If messages are left out, the last one says how many ([`left_out`]): kluctl's types refuse other fields.
#[must_use]
pub fn bounded(mut result: Value, most: usize) -> Value {
    if size(&result) <= most {
        return result;
    }
    drop_values(&mut result);
    if size(&result) > most {
        bound_messages(&mut result, most / 2);
    }
    let mut left = MOST_ENTRIES;
    while size(&result) > most && left > 0 {
        for field in LISTS {
            if let Some(list) = list_mut(&mut result, field) {
                list.truncate(left);
            }
        }
        left /= 2;
    }
    if size(&result) > most {
        drop_arguments(&mut result);
    }
    result
}

fn size(value: &Value) -> usize {
    yaml::print::json_sorted_html(value).len()
}

fn list_mut<'v>(result: &'v mut Value, field: &str) -> Option<&'v mut Vec<Value>> {
    result.get_mut(field)?.as_seq_mut()
}

fn drop_values(result: &mut Value) {
    let objects = list_mut(result, "objects").into_iter().flatten();
    let changes = objects.filter_map(|object| list_mut(object, "changes")).flatten();
    for change in changes.filter_map(Value::as_map_mut) {
        change.retain(|field, _| matches!(field, "type" | "jsonPath"));
    }
}

/// Cuts long messages, and leaves out messages, so that all have about `most` bytes together. Errors take precedence.
fn bound_messages(result: &mut Value, most: usize) {
    let mut room = most;
    for field in MESSAGES {
        let Some(list) = list_mut(result, field) else {
            continue;
        };
        list.iter_mut().for_each(cut);
        // Errors leave a quarter for the warnings.
        let share = room.min(most / 4 * 3);
        let (fitting, used) = fitting(list, share);
        room = room.saturating_sub(used);
        let count = list.len();
        if fitting < count {
            list.truncate(fitting);
            list.push(omission(count - fitting, field));
        }
    }
}

/// Returns the number of leading entries of a list that fit into `room` bytes, and their size.
fn fitting(list: &[Value], room: usize) -> (usize, usize) {
    let mut used = 0;
    for (index, entry) in list.iter().enumerate() {
        let with = used + size(entry) + 1;
        if with > room {
            return (index, used);
        }
        used = with;
    }
    (list.len(), used)
}

fn cut(entry: &mut Value) {
    if let Some(Value::String(text)) = entry.get_mut("message")
        && text.len() > MESSAGE_BYTES
    {
        text.truncate(text.floor_char_boundary(MESSAGE_BYTES));
        text.push_str("...");
    }
}

fn omission(count: usize, what: &str) -> Value {
    entry::message(&ObjectError::general(format!("... and {count} more {what}")))
}

/// Returns the number of messages that this last message of a bounded result stands for; `None` if it is an error or warning itself.
#[must_use]
pub fn left_out(message: &str) -> Option<u64> {
    let (count, what) = message.strip_prefix("... and ")?.split_once(" more ")?;
    MESSAGES.contains(&what).then(|| count.parse().ok())?
}

fn drop_arguments(result: &mut Value) {
    for field in ["target", "commandInfo", "overridesPatch"] {
        if let Some(info) = result.get_mut(field).and_then(Value::as_map_mut) {
            info.remove("args");
            info.remove("images");
        }
    }
    let spec = result.pointer_mut(&["overridesPatch", "spec"]);
    if let Some(spec) = spec.and_then(Value::as_map_mut) {
        spec.remove("args");
        spec.remove("images");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const MOST: usize = 100 << 10;

    fn messages(count: usize, text: &str) -> serde_json::Value {
        let list =
            (0..count).map(|i| json!({"ref": {"kind": "Role", "name": format!("r-{i}")}, "message": text}));
        list.collect()
    }

    fn bounded_json(result: serde_json::Value) -> serde_json::Value {
        let result = bounded(Value::from_json(result), MOST);
        assert!(size(&result) <= MOST, "{}", size(&result));
        result.to_json()
    }

    fn remaining(result: &serde_json::Value, field: &str) -> (usize, String) {
        let list = result[field].as_array().unwrap();
        let last = list.last().unwrap();
        (list.len() - 1, last["message"].as_str().unwrap().to_owned())
    }

    #[test]
    fn small_results_stay_as_they_are() {
        let small = json!({"id": "1", "errors": messages(10, "denied"), "warnings": null});
        assert_eq!(bounded_json(small.clone()), small);
    }

    #[test]
    fn messages_that_are_left_out_are_counted() {
        let text = "is forbidden: <nobody> may do that. ".repeat(10);
        let cut = bounded_json(json!({"errors": messages(1000, &text), "warnings": messages(700, &text)}));
        for (field, all) in [("errors", 1000), ("warnings", 700)] {
            let (count, last) = remaining(&cut, field);
            assert!(count > 10 && count < all, "{count} {field}");
            assert_eq!(last, format!("... and {} more {field}", all - count));
            assert_eq!(left_out(&last), u64::try_from(all - count).ok());
        }
        for message in [
            "",
            "... and more",
            "... and 3 more things",
            "... and x more errors",
            &text,
        ] {
            assert_eq!(left_out(message), None, "{message}");
        }
        let cut = bounded_json(json!({"errors": messages(1000, &text), "warnings": messages(5, &text)}));
        assert_eq!(cut["warnings"].as_array().unwrap().len(), 5);
        assert!(remaining(&cut, "errors").1.starts_with("... and "));
        assert_eq!(cut.as_object().unwrap().len(), 2, "no other fields");
    }

    #[test]
    fn long_messages_are_cut() {
        let cut = bounded_json(json!({"errors": messages(1, &"ü".repeat(MOST))}));
        let message = cut["errors"][0]["message"].as_str().unwrap();
        assert!(
            message.len() <= MESSAGE_BYTES + 3 && message.ends_with("ü..."),
            "{message}"
        );
        assert_eq!(
            cut["errors"].as_array().unwrap().len(),
            1,
            "the only error is there"
        );
    }

    #[test]
    fn values_objects_and_arguments_are_left_out() {
        let change = json!({"type": "update", "jsonPath": "a", "oldValue": "x".repeat(1000)});
        let objects = |count: usize| {
            (0..count)
                .map(|_| json!({"changes": [change]}))
                .collect::<Vec<_>>()
        };
        let cut = bounded_json(json!({"objects": objects(150)}));
        let kept = json!({"type": "update", "jsonPath": "a"});
        assert_eq!(cut["objects"].as_array().unwrap().len(), 150);
        assert_eq!(cut["objects"][0]["changes"][0], kept);
        let cut = bounded_json(json!({"objects": objects(5000), "errors": messages(3, "denied")}));
        let left = cut["objects"].as_array().unwrap().len();
        assert!(
            (100..5000).contains(&left) && cut["errors"].as_array().unwrap().len() == 3,
            "{left}"
        );
        let large = json!({"a": "x".repeat(MOST)});
        let cut = bounded_json(json!({
            "commandInfo": {"args": large, "command": "deploy"}, "overridesPatch": {"spec": {"args": large, "prune": true}},
        }));
        assert_eq!(
            cut,
            json!({"commandInfo": {"command": "deploy"}, "overridesPatch": {"spec": {"prune": true}}})
        );
    }
}
