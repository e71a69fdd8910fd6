//! Strings that may hold any bytes, as Go's do, in Rust strings.
//!
//! A byte that is not part of valid UTF-8 becomes one of the last 128 characters of the last private use plane, so that
//! decoding and encoding, or cutting a character in two, lose nothing.

use std::borrow::Cow;

const FIRST: u32 = 0x10_FF00;

#[must_use]
pub fn to_string(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(
            chunk
                .invalid()
                .iter()
                .filter_map(|byte| char::from_u32(FIRST + u32::from(*byte))),
        );
    }
    text
}

#[must_use]
pub fn of_str(text: &str) -> Cow<'_, [u8]> {
    if !text.chars().any(|c| invalid_byte(c).is_some()) {
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

/// Returns the byte that a private use character represents, `None` for all other characters.
#[must_use]
pub fn invalid_byte(c: char) -> Option<u8> {
    let byte = u32::from(c).checked_sub(FIRST + 0x80)?;
    u8::try_from(byte + 0x80).ok()
}

/// Replaces each invalid byte with U+FFFD, as `strings.ToValidUTF8` and `encoding/json` do.
#[must_use]
pub fn to_valid_utf8(text: &str) -> String {
    text.replace(|c| invalid_byte(c).is_some(), "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_bytes_survive_a_round_trip() {
        let bytes = b"a\xff\xc3\x28\xc3\xa9\x80";
        let text = to_string(bytes);
        assert_eq!(of_str(&text).as_ref(), bytes);
        assert_eq!(
            text.chars().filter_map(invalid_byte).collect::<Vec<_>>(),
            [0xff, 0xc3, 0x80]
        );
        assert_eq!(to_valid_utf8(&text), "a\u{fffd}\u{fffd}(é\u{fffd}");
    }

    #[test]
    fn valid_strings_are_borrowed() {
        assert!(matches!(of_str("plain é"), Cow::Borrowed(_)));
        assert_eq!(invalid_byte('\u{10ff7f}'), None);
        assert_eq!(invalid_byte('\u{10ff80}'), Some(0x80));
    }
}
