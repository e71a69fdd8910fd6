//! Bounds of the strings of a status: an object with its status must fit into the store of the API server. Pure.

use std::borrow::Cow;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

const TEXT_BYTES: usize = 96 << 10;
/// Maximum length of a message of a condition in bytes: schemas of conditions refuse more.
const MESSAGE_BYTES: usize = 32 << 10;
/// Maximum size of a whole status in bytes of JSON: half of the store's maximum for an object.
const STATUS_BYTES: usize = 768 << 10;
const NOTE_BYTES: usize = 128;

/// Returns a string that fits into a status. A longer one is cut at the boundary of a character, and ends with its length and its digest,
/// so that different strings stay different.
#[must_use]
pub fn bounded_text(text: &str) -> Cow<'_, str> {
    cut(text, TEXT_BYTES)
}

fn cut(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(most.saturating_sub(NOTE_BYTES));
    let digest = hex::encode(Sha256::digest(text.as_bytes()));
    let start = text.get(..end).unwrap_or_default();
    let digest = digest.get(..16).unwrap_or_default();
    Cow::Owned(format!(
        "{start}... (cut from {} bytes, sha256 {digest})",
        text.len()
    ))
}

pub(super) fn bounded(status: Value) -> Value {
    let mut most = TEXT_BYTES;
    let mut status = within(status, most);
    while most > NOTE_BYTES && size(&status) > STATUS_BYTES {
        most /= 2;
        status = within(status, most);
    }
    status
}

fn size(status: &Value) -> usize {
    serde_json::to_vec(status).map_or(0, |text| text.len())
}

/// Cuts all strings but the handled values of annotations, which are compared with the annotations, and bounded with them.
fn within(value: Value, most: usize) -> Value {
    match value {
        Value::String(text) if text.len() > most => Value::String(cut(&text, most).into_owned()),
        Value::Array(list) => Value::Array(list.into_iter().map(|each| within(each, most)).collect()),
        Value::Object(map) => {
            let field = |(name, value): (String, Value)| {
                let value = match name.as_str() {
                    "message" => within(value, most.min(MESSAGE_BYTES)),
                    handled if handled.starts_with("lastHandled") => value,
                    _ => within(value, most),
                };
                (name, value)
            };
            Value::Object(map.into_iter().map(field).collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_text_is_cut_at_a_character_and_says_so() {
        assert_eq!(bounded_text("short"), "short");
        let (one, other) = ("ä".repeat(TEXT_BYTES), format!("{}b", "ä".repeat(TEXT_BYTES)));
        let cut = bounded_text(&one);
        assert!(
            cut.len() <= TEXT_BYTES && cut.contains("... (cut from 196608 bytes, sha256 "),
            "{}",
            cut.len()
        );
        assert_ne!(cut, bounded_text(&other));
    }

    #[test]
    fn status_of_any_size_is_bounded() {
        let message = "x".repeat(40_000);
        let status = bounded(json!({
            "conditions": [{ "type": "Ready", "message": message }],
            "many": vec!["y".repeat(90_000); 50],
            "small": "as it is",
        }));
        let message = status
            .pointer("/conditions/0/message")
            .and_then(Value::as_str)
            .unwrap();
        assert!(message.len() <= MESSAGE_BYTES && message.ends_with(')'));
        assert!(size(&status) <= STATUS_BYTES);
        assert_eq!(status["small"], "as it is");
        let small = json!({ "a": [1, { "b": "c" }] });
        assert_eq!(bounded(small.clone()), small);
    }
}
