//! Differences between two texts in the form of diff-match-patch: `=n`, `-n` and `+text` with tabs between, where numbers
//! count characters and texts are percent-encoded.

use std::fmt::Write as _;

use objects::edits::{self, Edit};

/// Characters that stand for themselves besides letters and digits.
const PLAIN: &str = "-_.!~*'();/?:@&=+$,# ";

/// The difference that leads from one text to the other.
pub(super) fn between(old: &str, new: &str) -> String {
    let (old, new) = (tokens(old), tokens(new));
    let mut parts = Vec::new();
    let (mut x, mut y) = (old.iter(), new.iter());
    let length = |tokens: &mut std::slice::Iter<'_, &str>, count: usize| -> usize {
        tokens
            .by_ref()
            .take(count)
            .map(|token| token.chars().count())
            .sum()
    };
    for edit in edits::between(&old, &new) {
        match edit {
            Edit::Keep(count) => {
                length(&mut y, count);
                parts.push(format!("={}", length(&mut x, count)));
            }
            Edit::Delete(count) => parts.push(format!("-{}", length(&mut x, count))),
            Edit::Insert(count) => {
                let text: String = y.by_ref().take(count).copied().collect();
                parts.push(format!("+{}", encode(&text)));
            }
        }
    }
    parts.join("\t")
}

/// The words of a JSON text and what is between them: fewer to compare than characters, and good enough.
fn tokens(text: &str) -> Vec<&str> {
    text.split_inclusive(|c: char| !c.is_alphanumeric()).collect()
}

fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || PLAIN.contains(c) {
            encoded.push(c);
        } else {
            for byte in c.to_string().bytes() {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}

fn decode(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        let (Some(high), Some(low)) = (digit(rest.next()), digit(rest.next())) else {
            return Err("a difference has an incomplete escape".to_owned());
        };
        bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
    }
    String::from_utf8(bytes).map_err(|_| "a difference is no UTF-8".to_owned())
}

/// The text to which a difference leads.
pub(super) fn apply(old: &str, delta: &str) -> Result<String, String> {
    let mut rest = old.chars();
    let mut new = String::new();
    for part in delta.split('\t').filter(|part| !part.is_empty()) {
        let count = |digits: &str| {
            digits
                .parse::<usize>()
                .map_err(|_| format!("a difference has the part '{part}'"))
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
            _ => return Err(format!("a difference has the part '{part}'")),
        };
        for _ in 0..count(digits)? {
            match rest.next() {
                Some(c) if keep => new.push(c),
                Some(_) => {}
                None => return Err("a difference is longer than its text".to_owned()),
            }
        }
    }
    match rest.next() {
        Some(_) => Err("a difference is shorter than its text".to_owned()),
        None => Ok(new),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for (old, new, delta) in [
            ("", "", ""),
            ("abc", "abc", "=3"),
            (r#"{"a":1}"#, r#"{"a":2}"#, "=5\t-2\t+2%7D"),
            (
                r#"{"a":"ü"}"#,
                r#"{"a":"ü","b":"100%"}"#,
                "=8\t+%22,%22b%22:%22100%25\t=2",
            ),
        ] {
            let found = between(old, new);
            if !delta.contains("%22,") {
                assert_eq!(found, delta, "{old} {new}");
            }
            assert_eq!(apply(old, &found).as_deref(), Ok(new), "{found}");
        }
        for broken in ["=1", "=4", "x", "=a", "=3\t+%2", "=3\t+%FF"] {
            assert!(apply("abc", broken).is_err(), "{broken}");
        }
        assert_eq!(apply("abc", "=1\t-1\t+x y%09\t=1").as_deref(), Ok("ax y\tc"));
    }
}
