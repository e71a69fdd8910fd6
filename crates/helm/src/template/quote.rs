//! Go's strconv: texts and characters as literals, and literals as texts.

use std::{borrow::Cow, fmt::Write as _};

use crate::functions::bytes::{stand_in, to_text};

/// Whether Go prints a character as it is: letters, marks, numbers, punctuation, symbols and the space.
pub(crate) fn is_print(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    // Escaping escapes what isn't printable, and a mark where it is the first character.
    let mut buffer = String::with_capacity(8);
    buffer.push('a');
    buffer.push(c);
    !buffer.escape_debug().skip(1).any(|c| c == '\\')
}

/// `%#U`.
pub(super) fn code_point(c: char) -> String {
    let number = u32::from(c);
    if is_print(c) {
        format!("U+{number:04X} '{c}'")
    } else {
        format!("U+{number:04X}")
    }
}

/// `strconv.Quote`, as `%q` prints a string.
#[must_use]
pub fn quote(text: &str) -> String {
    quote_with(text, '"', false)
}

/// A text in quotation marks; when `ascii`, with every other character escaped.
pub(super) fn quote_with(text: &str, mark: char, ascii: bool) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push(mark);
    for c in text.chars() {
        escape(&mut out, c, mark, ascii);
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
    if let Some(byte) = stand_in(c) {
        // Writing to a string cannot fail.
        let _ = write!(out, "\\x{byte:02x}");
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

/// Whether a text can be written between backquotes.
pub(super) fn can_backquote(text: &str) -> bool {
    !text.chars().any(|c| {
        (c.is_ascii_control() && c != '\t') || matches!(c, '`' | '\u{feff}') || stand_in(c).is_some()
    })
}

/// One character of a literal: as it stands there, or a byte by its number.
enum Piece {
    Char(char),
    Byte(u8),
}

/// What a string literal means, `None` when it is none. Bytes that make no character get stand-ins.
pub(super) fn unquote(literal: &str) -> Option<Cow<'_, str>> {
    if let Some(raw) = literal.strip_prefix('`') {
        let inner = raw.strip_suffix('`')?;
        return Some(if inner.contains('\r') {
            inner.replace('\r', "").into()
        } else {
            inner.into()
        });
    }
    let inner = literal.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.bytes().any(|byte| matches!(byte, b'\\' | b'"' | b'\n')) {
        return Some(inner.into());
    }
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while !rest.is_empty() {
        let (piece, after) = unquote_char(rest, '"')?;
        match piece {
            Piece::Char(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Piece::Byte(byte) => bytes.push(byte),
        }
        rest = after;
    }
    let text = String::from_utf8(bytes).unwrap_or_else(|error| to_text(error.as_bytes()));
    Some(text.into())
}

/// The number of a character literal.
///
/// # Errors
/// What is wrong with it.
pub(super) fn unquote_rune(literal: &str) -> Result<u32, String> {
    let inner = literal.strip_prefix('\'').unwrap_or(literal);
    let (piece, rest) = unquote_char(inner, '\'').ok_or("invalid syntax")?;
    if rest != "'" {
        return Err(format!("malformed character constant: {literal}"));
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
