//! Differences between two values as JSON in the form of diff-match-patch: `=n`, `-n` and `+...` with tabs between, where
//! numbers count characters and inserted strings are percent-encoded.
//!
//! The values are walked side by side, instead of their JSON: the API server adds hundreds of words to an object, and the
//! shortest path between two strings takes the square of that.

use std::fmt::Write as _;

use yaml::{Map, Value};

#[derive(Debug, Default)]
pub(super) struct Delta {
    pub(super) text: String,
    /// Length of the new value in JSON, in bytes.
    pub(super) length: usize,
}

/// Returns the difference from one value to the other, as `json_sorted_html` prints them.
pub(super) fn between(old: &Value, new: &Value) -> Delta {
    let mut walk = Walk::default();
    walk.values(old, new);
    walk.flush();
    walk.delta
}

#[derive(Default)]
struct Walk {
    delta: Delta,
    /// Number of unchanged characters up to here.
    unchanged: usize,
    /// Number of removed characters behind them.
    gone: usize,
    come: String,
}

impl Walk {
    fn keep(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.gone > 0 || !self.come.is_empty() {
            self.flush();
        }
        self.unchanged += text.chars().count();
        self.delta.length += text.len();
    }

    fn remove(&mut self, text: &str) {
        self.gone += text.chars().count();
    }

    fn insert(&mut self, text: &str) {
        self.come.push_str(text);
        self.delta.length += text.len();
    }

    fn flush(&mut self) {
        let text = &mut self.delta.text;
        for (sign, count) in [('=', self.unchanged), ('-', self.gone)] {
            if count > 0 {
                separate(text);
                let _ = write!(text, "{sign}{count}");
            }
        }
        if !self.come.is_empty() {
            separate(text);
            text.push('+');
            encode(&self.come, text);
        }
        (self.unchanged, self.gone) = (0, 0);
        self.come.clear();
    }

    fn values(&mut self, old: &Value, new: &Value) {
        match (old, new) {
            (Value::Map(old), Value::Map(new)) => self.maps(old, new),
            (Value::Seq(old), Value::Seq(new)) => self.lists(old, new),
            _ => self.texts(&print(old), &print(new)),
        }
    }

    fn maps(&mut self, old: &Map, new: &Map) {
        let (old_keys, new_keys) = (sorted(old), sorted(new));
        let (mut old_left, mut new_left) = (old_keys.iter().peekable(), new_keys.iter().peekable());
        let mut commas = Commas::default();
        self.keep("{");
        loop {
            let order = match (old_left.peek(), new_left.peek()) {
                (Some((old, _)), Some((new, _))) => old.cmp(new),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (None, None) => break,
            };
            let gone = old_left.next_if(|_| order.is_le());
            let come = new_left.next_if(|_| order.is_ge());
            commas.separate(self, gone.is_some(), come.is_some());
            match (gone, come) {
                (Some((key, old)), Some((_, new))) => {
                    self.keep(&print_key(key));
                    self.values(old, new);
                }
                (Some((key, value)), None) => {
                    self.remove(&print_key(key));
                    self.remove(&print(value));
                }
                (None, Some((key, value))) => {
                    self.insert(&print_key(key));
                    self.insert(&print(value));
                }
                (None, None) => {}
            }
        }
        self.keep("}");
    }

    /// Pairs equal items at both ends, and the items between them in their order.
    fn lists(&mut self, old: &[Value], new: &[Value]) {
        let shorter = old.len().min(new.len());
        let start = old.iter().zip(new).take_while(|(old, new)| old == new).count();
        let ends = old.iter().rev().zip(new.iter().rev());
        let end = ends
            .take(shorter - start)
            .take_while(|(old, new)| old == new)
            .count();
        let middle = shorter - end;
        let mut commas = Commas::default();
        self.keep("[");
        for (old, new) in old.iter().zip(new).take(middle) {
            commas.separate(self, true, true);
            self.values(old, new);
        }
        for old in old.iter().take(old.len() - end).skip(middle) {
            commas.separate(self, true, false);
            self.remove(&print(old));
        }
        for new in new.iter().take(new.len() - end).skip(middle) {
            commas.separate(self, false, true);
            self.insert(&print(new));
        }
        for (old, new) in old
            .iter()
            .skip(old.len() - end)
            .zip(new.iter().skip(new.len() - end))
        {
            commas.separate(self, true, true);
            self.values(old, new);
        }
        self.keep("]");
    }

    /// Strings differ between their equal ends.
    fn texts(&mut self, old: &str, new: &str) {
        let same = |pairs: &mut dyn Iterator<Item = (char, char)>| -> usize {
            let equal = pairs.take_while(|(old, new)| old == new);
            equal.map(|(old, _)| old.len_utf8()).sum()
        };
        let start = same(&mut old.chars().zip(new.chars()));
        let (before, old) = old.split_at_checked(start).unwrap_or((old, ""));
        let new = new.get(start..).unwrap_or_default();
        let end = same(&mut old.chars().rev().zip(new.chars().rev()));
        let (gone, after) = old.split_at_checked(old.len() - end).unwrap_or((old, ""));
        self.keep(before);
        self.remove(gone);
        self.insert(new.get(..new.len() - end).unwrap_or_default());
        self.keep(after);
    }
}

/// Positions of the commas between members: before each member but the first, on each side.
#[derive(Default)]
struct Commas {
    old: bool,
    new: bool,
}

impl Commas {
    fn separate(&mut self, walk: &mut Walk, in_old: bool, in_new: bool) {
        match (in_old && self.old, in_new && self.new) {
            (true, true) => walk.keep(","),
            (true, false) => walk.remove(","),
            (false, true) => walk.insert(","),
            (false, false) => {}
        }
        self.old |= in_old;
        self.new |= in_new;
    }
}

fn sorted(map: &Map) -> Vec<(&str, &Value)> {
    let mut members: Vec<(&str, &Value)> = map.iter().collect();
    members.sort_unstable_by_key(|(key, _)| *key);
    members
}

fn print(value: &Value) -> String {
    yaml::print::json_sorted_html(value)
}

fn print_key(key: &str) -> String {
    format!("{}:", print(&Value::from(key)))
}

fn separate(text: &mut String) {
    if !text.is_empty() {
        text.push('\t');
    }
}

/// Characters that stand for themselves besides letters and digits.
const PLAIN: &[u8] = b"-_.!~*'();/?:@&=+$,# ";

fn encode(text: &str, encoded: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || PLAIN.contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum DeltaError {
    #[error("a difference has an incomplete escape")]
    IncompleteEscape,
    #[error("a difference is not UTF-8")]
    NotUtf8,
    #[error("a difference has the part '{0}'")]
    InvalidPart(String),
    #[error("a difference is longer than its text")]
    TooLong,
    #[error("a difference is shorter than its text")]
    TooShort,
}

fn decode(text: &str) -> Result<String, DeltaError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        let (Some(high), Some(low)) = (digit(rest.next()), digit(rest.next())) else {
            return Err(DeltaError::IncompleteEscape);
        };
        bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
    }
    String::from_utf8(bytes).map_err(|_| DeltaError::NotUtf8)
}

pub(super) fn apply(old: &str, delta: &str) -> Result<String, DeltaError> {
    let mut rest = old.chars();
    let mut new = String::new();
    for part in delta.split('\t').filter(|part| !part.is_empty()) {
        let count = |digits: &str| {
            digits
                .parse::<usize>()
                .map_err(|_| DeltaError::InvalidPart(part.to_owned()))
        };
        let (keep, digits) = match (
            part.strip_prefix('+'),
            part.strip_prefix('='),
            part.strip_prefix('-'),
        ) {
            (Some(text), ..) => {
                new.push_str(&decode(text)?);
                continue;
            }
            (_, Some(digits), _) => (true, digits),
            (_, _, Some(digits)) => (false, digits),
            _ => return Err(DeltaError::InvalidPart(part.to_owned())),
        };
        for _ in 0..count(digits)? {
            match rest.next() {
                Some(c) if keep => new.push(c),
                Some(_) => {}
                None => return Err(DeltaError::TooLong),
            }
        }
    }
    match rest.next() {
        Some(_) => Err(DeltaError::TooShort),
        None => Ok(new),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn delta_restores_the_new_value() {
        for (old, new, delta) in [
            (json!("abc"), json!("abc"), "=5"),
            (json!({"a": 1}), json!({"a": 2}), "=5\t-1\t+2\t=1"),
            (json!({}), json!({"a": "<"}), "=1\t+%22a%22:%22%5Cu003c%22\t=1"),
            (json!({"a": 1, "b": 2}), json!({"b": 2}), "=1\t-6\t=6"),
            (json!({"b": 2}), json!({"a": 1, "b": 2}), "=1\t+%22a%22:1,\t=6"),
            (
                json!({"a": "ü"}),
                json!({"a": "ü", "b": "100%"}),
                "=8\t+,%22b%22:%22100%25%22\t=1",
            ),
            (json!([1, 2, 3]), json!([1, 3]), "=2\t-2\t=3"),
            (json!([1, 3]), json!([0, 1, 3]), "=1\t+0,\t=4"),
            (json!([]), json!([1, 2]), "=1\t+1,2\t=1"),
            (json!([1, 1]), json!([1]), "=2\t-2\t=1"),
            (
                json!("line\none\nend"),
                json!("line\ntwo\nend"),
                "=7\t-3\t+two\t=6",
            ),
            (json!("ää"), json!("ä"), "=2\t-1\t=1"),
            (json!({"a": {"x": 1}}), json!({"a": [1]}), "=5\t-7\t+%5B1%5D\t=1"),
            (json!({"a": null}), json!({"a": 1.5}), "=5\t-4\t+1.5\t=1"),
        ] {
            let (old, new) = (Value::from_json(old), Value::from_json(new));
            let found = between(&old, &new);
            let (old, new) = (print(&old), print(&new));
            assert_eq!(apply(&old, &found.text).as_ref(), Ok(&new), "{found:?}");
            assert_eq!(
                (found.text.as_str(), found.length),
                (delta, new.len()),
                "{old} {new}"
            );
        }
    }

    #[test]
    fn differences_of_others_are_read() {
        for broken in ["=1", "=4", "x", "=a", "=3\t+%2", "=3\t+%FF"] {
            assert!(apply("abc", broken).is_err(), "{broken}");
        }
        assert_eq!(apply("abc", "=1\t-1\t+x y%09\t=1").as_deref(), Ok("ax y\tc"));
    }
}
