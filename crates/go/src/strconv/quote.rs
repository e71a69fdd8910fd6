//! String and character literals.

use std::{borrow::Cow, fmt::Write as _};

use crate::bytes::{has_invalid, invalid_byte, of_str, to_string, to_valid_utf8};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuoteError {
    /// An unknown or incomplete escape, or an empty literal.
    #[error("invalid syntax")]
    Syntax,
    #[error("malformed character constant: {0}")]
    Malformed(String),
}

/// Returns true for characters that Go prints unescaped (`strconv.IsPrint`): letters, marks, numbers, punctuation, symbols
/// and the space.
#[must_use]
pub fn is_print(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    // Escaping escapes unprintable characters, and a mark if it is the first character.
    let mut buffer = String::with_capacity(8);
    buffer.push('a');
    buffer.push(c);
    !buffer.escape_debug().skip(1).any(|c| c == '\\')
}

/// Formats a character as the verb `%#U` does: `U+0041 'A'`.
#[must_use]
pub fn unicode_point(c: char) -> String {
    let c = invalid_byte(c).map_or(c, |_| char::REPLACEMENT_CHARACTER);
    let number = u32::from(c);
    if is_print(c) {
        format!("U+{number:04X} '{c}'")
    } else {
        format!("U+{number:04X}")
    }
}

/// Quotes as `strconv.Quote` and `%q` do.
#[must_use]
pub fn quote(text: &str) -> String {
    quote_with(text, '"', false)
}

/// Quotes as `strconv.QuoteToASCII` and `%+q` do.
#[must_use]
pub fn quote_to_ascii(text: &str) -> String {
    quote_with(text, '"', true)
}

/// Quotes in the given quotation marks; if `ascii`, all other characters are escaped.
pub(crate) fn quote_with(text: &str, mark: char, ascii: bool) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push(mark);
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'\\' && char::from(byte) != mark;
    if text.bytes().all(is_plain) {
        out.push_str(text);
    } else if has_invalid(text) {
        for chunk in of_str(text).utf8_chunks() {
            chunk
                .valid()
                .chars()
                .for_each(|c| escape(&mut out, c, mark, ascii));
            for byte in chunk.invalid() {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    } else {
        text.chars().for_each(|c| escape(&mut out, c, mark, ascii));
    }
    out.push(mark);
    out
}

fn escape(out: &mut String, c: char, mark: char, ascii: bool) {
    if c == mark || c == '\\' {
        out.push('\\');
        out.push(c);
        return;
    }
    if (c.is_ascii() || !ascii) && is_print(c) {
        out.push(c);
        return;
    }
    let short = match c {
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\u{c}' => 'f',
        '\n' => 'n',
        '\r' => 'r',
        '\t' => 't',
        '\u{b}' => 'v',
        _ => {
            let number = u32::from(c);
            let _ = match number {
                0..0x80 => write!(out, "\\x{number:02x}"),
                0x80..0x10000 => write!(out, "\\u{number:04x}"),
                _ => write!(out, "\\U{number:08x}"),
            };
            return;
        }
    };
    out.push('\\');
    out.push(short);
}

/// Returns true if a string can be written between backquotes (`strconv.CanBackquote`).
#[must_use]
pub fn can_backquote(text: &str) -> bool {
    let odd = |c: char| (c.is_ascii_control() && c != '\t') || matches!(c, '`' | '\u{feff}');
    !text.contains(odd) && (!has_invalid(text) || str::from_utf8(&of_str(text)).is_ok())
}

enum Piece {
    Char(char),
    Byte(u8),
}

/// Returns the string of a literal in double quotes or backquotes (`strconv.Unquote`); `None` if invalid. Bytes that are not
/// valid UTF-8 become characters as [`crate::bytes`] describes.
#[must_use]
pub fn unquote(literal: &str) -> Option<Cow<'_, str>> {
    if let Some(raw) = literal.strip_prefix('`') {
        let inner = raw.strip_suffix('`')?;
        return Some(if inner.contains('\r') {
            inner.replace('\r', "").into()
        } else {
            inner.into()
        });
    }
    let inner = literal.strip_prefix('"')?.strip_suffix('"')?;
    let is_odd = has_invalid(inner);
    if !is_odd && !inner.bytes().any(|byte| matches!(byte, b'\\' | b'"' | b'\n')) {
        return Some(inner.into());
    }
    // Only escapes make invalid bytes; invalid bytes of the source are replaced.
    let inner = if is_odd {
        to_valid_utf8(inner)
    } else {
        inner.into()
    };
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest: &str = &inner;
    while !rest.is_empty() {
        let (piece, after) = unquote_char(rest, '"')?;
        match piece {
            Piece::Char(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Piece::Byte(byte) => bytes.push(byte),
        }
        rest = after;
    }
    Some(to_string(&bytes).into())
}

/// Returns the number of a character literal such as `'a'` or `'\n'`.
pub fn unquote_char_literal(literal: &str) -> Result<u32, QuoteError> {
    let inner = literal.strip_prefix('\'').unwrap_or(literal);
    let (piece, rest) = unquote_char(inner, '\'').ok_or(QuoteError::Syntax)?;
    if rest != "'" {
        return Err(QuoteError::Malformed(literal.to_owned()));
    }
    Ok(match piece {
        Piece::Char(c) => c.into(),
        Piece::Byte(byte) => byte.into(),
    })
}

fn unquote_char(text: &str, mark: char) -> Option<(Piece, &str)> {
    let mut chars = text.chars();
    let first = chars.next()?;
    if first == mark || first == '\n' {
        return None;
    }
    if first != '\\' {
        return Some((Piece::Char(first), chars.as_str()));
    }
    let escaped = chars.next()?;
    let rest = chars.as_str();
    let plain = match escaped {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        '\\' => '\\',
        c if c == mark => c,
        'x' => {
            let (number, rest) = digits(rest, 2, 16)?;
            return Some((Piece::Byte(u8::try_from(number).ok()?), rest));
        }
        'u' | 'U' => {
            let (number, rest) = digits(rest, if escaped == 'u' { 4 } else { 8 }, 16)?;
            return Some((Piece::Char(char::from_u32(number)?), rest));
        }
        '0'..='7' => {
            let (number, rest) = digits(text.get(1..)?, 3, 8)?;
            return Some((Piece::Byte(u8::try_from(number).ok()?), rest));
        }
        _ => return None,
    };
    Some((Piece::Char(plain), rest))
}

fn digits(text: &str, count: usize, base: u32) -> Option<(u32, &str)> {
    let (number, rest) = text.split_at_checked(count)?;
    if !number.chars().all(|c| c.is_digit(base)) {
        return None;
    }
    Some((u32::from_str_radix(number, base).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_strings_unquote_to_themselves() {
        for text in [
            "",
            "plain",
            "a\"b\\",
            "tab\t\u{7}\u{0}",
            "é\u{200b}😀",
            &to_string(b"\xff\xfe"),
        ] {
            assert_eq!(unquote(&quote(text)).as_deref(), Some(text), "{text:?}");
            assert!(quote_to_ascii(text).is_ascii(), "{text:?}");
        }
        assert_eq!(quote(&to_string(b"\xff")), r#""\xff""#);
        assert_eq!(quote("\u{200b}"), r#""\u200b""#);
    }

    #[test]
    fn invalid_literals_are_refused() {
        for literal in ["", "\"", "\"a", "`a", r#""\q""#, "\"a\nb\"", r#""\x4""#] {
            assert_eq!(unquote(literal), None, "{literal}");
        }
        assert_eq!(unquote_char_literal("'a'"), Ok(97));
        assert_eq!(unquote_char_literal(r"'\xff'"), Ok(255));
        assert_eq!(unquote_char_literal(r"'\q'"), Err(QuoteError::Syntax));
        assert_eq!(
            unquote_char_literal("'ab'"),
            Err(QuoteError::Malformed("'ab'".to_owned()))
        );
    }
}
