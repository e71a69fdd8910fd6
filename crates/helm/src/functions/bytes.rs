//! Strings of Go hold any bytes. Here a byte that is no part of a UTF-8 text is kept as one of the last 128 characters of
//! the last private plane, so that decoding and encoding, or cutting a character in two, lose nothing.

use std::borrow::Cow;

const FIRST: u32 = 0x10_FF00;

/// Bytes as a text.
pub(crate) fn to_text(bytes: &[u8]) -> String {
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

/// The bytes of a text.
pub(crate) fn of_text(text: &str) -> Cow<'_, [u8]> {
    if !text.chars().any(|c| stand_in(c).is_some()) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        match stand_in(c) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(bytes)
}

/// The byte that a character stands for.
pub(crate) fn stand_in(c: char) -> Option<u8> {
    let byte = u32::from(c).checked_sub(FIRST + 0x80)?;
    u8::try_from(byte + 0x80).ok()
}

/// The text with the character for what is none in place of each byte that is no part of one.
pub(crate) fn replaced(text: &str) -> String {
    text.replace(|c| stand_in(c).is_some(), "\u{fffd}")
}
