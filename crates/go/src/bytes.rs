//! Strings that may hold any bytes, as Go's do, in Rust strings.
//!
//! A byte that is not part of valid UTF-8 becomes one of the last 128 characters of the last private use plane. The bytes of these
//! characters themselves do, too, so that each sequence of bytes has one form, and nothing is lost by decoding and encoding, or by
//! cutting a character in two. Other strings are their own form; an ASCII string always is.

use std::borrow::Cow;

const FIRST: u32 = 0x10_FF00;

/// The first byte of the characters that stand for bytes, in UTF-8.
const LEAD: u8 = 0xf4;

#[must_use]
pub fn to_string(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => of_utf8(text).into_owned(),
        Err(_) => encoded(bytes),
    }
}

/// Returns the form of a Rust string, which is nearly always the string itself.
#[must_use]
pub fn of_utf8(text: &str) -> Cow<'_, str> {
    if has_invalid(text) {
        encoded(text.as_bytes()).into()
    } else {
        text.into()
    }
}

fn encoded(bytes: &[u8]) -> String {
    let form = |byte: &u8| char::from_u32(FIRST + u32::from(*byte));
    let mut text = String::with_capacity(bytes.len().saturating_mul(2));
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match invalid_byte(c) {
                None => text.push(c),
                Some(_) => text.extend(c.encode_utf8(&mut [0; 4]).as_bytes().iter().filter_map(form)),
            }
        }
        text.extend(chunk.invalid().iter().filter_map(form));
    }
    text
}

#[must_use]
pub fn of_str(text: &str) -> Cow<'_, [u8]> {
    if !has_invalid(text) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        match invalid_byte(c) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(bytes)
}

/// Returns the number of bytes that a string stands for.
#[must_use]
pub fn len(text: &str) -> usize {
    if !has_invalid(text) {
        return text.len();
    }
    let width = |c: char| invalid_byte(c).map_or(c.len_utf8(), |_| 1);
    text.chars().map(width).sum()
}

/// Returns true if a string stands for other bytes than its own.
#[must_use]
pub fn has_invalid(text: &str) -> bool {
    // Most strings are short and ASCII: a search for the first byte costs more than this.
    !text.is_ascii()
        && memchr::memchr(LEAD, text.as_bytes()).is_some()
        && text.chars().any(|c| invalid_byte(c).is_some())
}

/// Returns the byte that a private use character represents, `None` for all other characters.
#[must_use]
pub fn invalid_byte(c: char) -> Option<u8> {
    let byte = u32::from(c).checked_sub(FIRST + 0x80)?;
    u8::try_from(byte + 0x80).ok()
}

/// Returns the one form of a string that was joined of others: bytes of both may be a character together. `None` if it is the
/// string itself.
#[must_use]
pub fn joined(text: &str) -> Option<String> {
    if !has_invalid(text) {
        return None;
    }
    Some(encoded(&of_str(text))).filter(|form| form != text)
}

/// Replaces each invalid byte with U+FFFD, as `strings.ToValidUTF8` and `encoding/json` do. The result is a Rust string.
#[must_use]
pub fn to_valid_utf8(text: &str) -> Cow<'_, str> {
    replace_invalid(text, "\u{fffd}")
}

/// Replaces each invalid byte. The result is a Rust string.
#[must_use]
pub fn replace_invalid<'t>(text: &'t str, by: &str) -> Cow<'t, str> {
    if !has_invalid(text) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    for chunk in of_str(text).utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| by));
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_bytes_survive_a_round_trip() {
        let bytes = b"a\xff\xc3\x28\xc3\xa9\x80";
        let text = to_string(bytes);
        assert_eq!(of_str(&text).as_ref(), bytes);
        assert_eq!(len(&text), bytes.len());
        assert_eq!(
            text.chars().filter_map(invalid_byte).collect::<Vec<_>>(),
            [0xff, 0xc3, 0x80]
        );
        assert_eq!(to_valid_utf8(&text), "a\u{fffd}\u{fffd}(é\u{fffd}");
    }

    #[test]
    fn characters_that_stand_for_bytes_survive_too() {
        for plain in ["\u{10ff80}", "a\u{10ffff}é", "\u{10fffe}\u{10ff7f}"] {
            let text = to_string(plain.as_bytes());
            assert_eq!(of_str(&text).as_ref(), plain.as_bytes());
            assert_eq!(to_valid_utf8(&text), plain);
            assert_eq!(len(&text), plain.len());
        }
    }

    #[test]
    fn halves_of_a_character_join() {
        let halves = to_string(b"\xc3") + &to_string(b"\xa9\xff");
        assert_eq!(joined(&halves), Some("é".to_owned() + &to_string(b"\xff")));
        assert_eq!(joined(&to_string(b"\xa9\xc3")), None);
        assert_eq!(joined("é"), None);
    }

    #[test]
    fn valid_strings_are_borrowed() {
        assert!(matches!(of_str("plain é"), Cow::Borrowed(_)));
        assert!(matches!(of_utf8("\u{100000}"), Cow::Borrowed(_)));
        assert_eq!(invalid_byte('\u{10ff7f}'), None);
        assert_eq!(invalid_byte('\u{10ff80}'), Some(0x80));
    }
}
