//! Characters, lines and words as in Python.

use std::{borrow::Cow, collections::HashSet, fmt::Write as _};

/// Python's `str.isspace`.
pub(crate) fn is_space(letter: char) -> bool {
    letter.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&letter)
}

/// A set of characters that is asked for many of them.
pub(crate) struct CharSet {
    ascii: u128,
    others: HashSet<char>,
}

impl CharSet {
    pub(crate) fn of(letters: &str) -> Self {
        let ascii = letters.bytes().filter(u8::is_ascii);
        Self {
            ascii: ascii.fold(0, |set, letter| set | 1 << letter),
            others: letters.chars().filter(|letter| !letter.is_ascii()).collect(),
        }
    }

    pub(crate) fn contains(&self, letter: char) -> bool {
        match u8::try_from(letter) {
            Ok(letter) if letter.is_ascii() => self.ascii >> letter & 1 == 1,
            _ => self.others.contains(&letter),
        }
    }
}

/// The zeros of all scripts; the other digits follow each.
const ZEROS: [u32; 66] = [
    0x30, 0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50,
    0xed0, 0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40,
    0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10, 0x104a0, 0x10d30, 0x11066,
    0x110f0, 0x11136, 0x111d0, 0x112f0, 0x11450, 0x114d0, 0x11650, 0x116c0, 0x11730, 0x118e0, 0x11950,
    0x11c50, 0x11d50, 0x11da0, 0x16a60, 0x16ac0, 0x16b50, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6,
    0x1e140, 0x1e2f0, 0x1e950, 0x1fbf0,
];

/// Returns the value of a decimal digit of any script.
pub(crate) fn decimal(letter: char) -> Option<u32> {
    if letter.is_ascii() {
        return letter.to_digit(10);
    }
    let code = u32::from(letter);
    let after = ZEROS.partition_point(|zero| *zero <= code);
    let zero = ZEROS.get(after.checked_sub(1)?)?;
    Some(code - zero).filter(|digit| *digit < 10)
}

/// Converts decimal digits to ASCII.
pub(crate) fn ascii_digits(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return text.into();
    }
    let digit = |letter: char| decimal(letter).and_then(|digit| char::from_digit(digit, 10));
    text.chars()
        .map(|letter| digit(letter).unwrap_or(letter))
        .collect::<String>()
        .into()
}

pub(crate) fn is_decimal(letter: char) -> bool {
    decimal(letter).is_some()
}

pub(crate) fn is_digit(letter: char) -> bool {
    is_decimal(letter) || is_digit_only(letter)
}

/// Returns true for superscripts, subscripts and circled digits.
fn is_digit_only(letter: char) -> bool {
    matches!(letter, '²' | '³' | '¹' | '⁰' | '⁴'..='⁹' | '₀'..='₉' | '①'..='⑨' | '⑴'..='⑼' | '⒈'..='⒐' | '⓪')
}

pub(crate) fn is_line_end(letter: char) -> bool {
    matches!(
        letter,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

pub(crate) fn lines(text: &str, keep: bool) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(is_line_end) {
        let after = rest.get(at..).unwrap_or_default();
        let length = if after.starts_with("\r\n") {
            2
        } else {
            after.chars().next().map_or(1, char::len_utf8)
        };
        lines.extend(rest.get(..if keep { at + length } else { at }));
        rest = rest.get(at + length..).unwrap_or_default();
    }
    if !rest.is_empty() {
        lines.push(rest);
    }
    lines
}

pub(crate) fn split<'t>(text: &'t str, separator: &str, limit: usize, from_end: bool) -> Vec<&'t str> {
    let limit = limit.saturating_add(1);
    if from_end {
        let mut parts: Vec<&str> = text.rsplitn(limit, separator).collect();
        parts.reverse();
        return parts;
    }
    text.splitn(limit, separator).collect()
}

/// Splits at runs of space.
pub(crate) fn split_space(text: &str, limit: usize, from_end: bool) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        rest = if from_end {
            rest.trim_end_matches(is_space)
        } else {
            rest.trim_start_matches(is_space)
        };
        if rest.is_empty() {
            break;
        }
        if parts.len() >= limit {
            parts.push(if from_end {
                rest.trim_end_matches(is_space)
            } else {
                rest
            });
            break;
        }
        let (word, after) = if from_end {
            let at = rest.char_indices().rev().find(|(_, letter)| is_space(*letter));
            let at = at.map_or(0, |(at, letter)| at + letter.len_utf8());
            let (before, word) = rest.split_at_checked(at).unwrap_or(("", rest));
            (word, before)
        } else {
            rest.split_at_checked(rest.find(is_space).unwrap_or(rest.len()))
                .unwrap_or((rest, ""))
        };
        parts.push(word);
        rest = after;
    }
    if from_end {
        parts.reverse();
    }
    parts
}

/// Pads a string to a width. `center` puts the larger part of an odd padding to the left when the width is odd.
pub(crate) fn justified(text: &str, width: usize, fill: char, how: &str) -> String {
    let margin = width.saturating_sub(char_count(text));
    let left = match how {
        "ljust" => 0,
        "rjust" => margin,
        _ => margin / 2 + (margin & width & 1),
    };
    let pad = |count: usize| std::iter::repeat_n(fill, count);
    pad(left).chain(text.chars()).chain(pad(margin - left)).collect()
}

/// Inserts zeros after the sign.
pub(crate) fn zero_filled(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(char_count(text));
    let (sign, digits) = match text.chars().next() {
        Some(sign @ ('+' | '-')) => (Some(sign), text.get(1..).unwrap_or_default()),
        _ => (None, text),
    };
    sign.into_iter()
        .chain(std::iter::repeat_n('0', missing))
        .chain(digits.chars())
        .collect()
}

/// Folds case for comparisons. The full case folding of Unicode is the lower case of the upper case, with few exceptions.
pub(crate) fn folded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            'ı' => out.push(letter),
            'ẞ' => out.push_str("ss"),
            // Cherokee.
            '\u{13a0}'..='\u{13ff}' | '\u{ab70}'..='\u{abbf}' => out.extend(letter.to_uppercase()),
            _ => out.extend(letter.to_uppercase().flat_map(char::to_lowercase)),
        }
    }
    out
}

/// Appends the first letter of a word in title case.
fn push_title(letter: char, out: &mut String) {
    match letter {
        'ß' => out.push_str("Ss"),
        'ǆ' | 'ǅ' | 'Ǆ' => out.push('ǅ'),
        'ǉ' | 'ǈ' | 'Ǉ' => out.push('ǈ'),
        'ǌ' | 'ǋ' | 'Ǌ' => out.push('ǋ'),
        'ﬁ' => out.push_str("Fi"),
        'ﬂ' => out.push_str("Fl"),
        other => out.extend(other.to_uppercase()),
    }
}

pub(crate) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let mut out = String::with_capacity(text.len());
    if let Some(first) = letters.next() {
        push_title(first, &mut out);
    }
    out + &letters.as_str().to_lowercase()
}

fn is_cased(letter: char) -> bool {
    letter.is_lowercase() || letter.is_uppercase() || matches!(letter, 'ǅ' | 'ǈ' | 'ǋ' | 'ǲ')
}

pub(crate) fn titled(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut inside = false;
    for letter in text.chars() {
        if inside {
            out.extend(letter.to_lowercase());
        } else {
            push_title(letter, &mut out);
        }
        inside = is_cased(letter);
    }
    out
}

pub(crate) fn is_titled(text: &str) -> bool {
    let (mut inside, mut any) = (false, false);
    for letter in text.chars() {
        if letter.is_uppercase() && inside || letter.is_lowercase() && !inside {
            return false;
        }
        inside = is_cased(letter);
        any |= inside;
    }
    any
}

pub(crate) fn swapped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_uppercase() {
            out.extend(letter.to_lowercase());
        } else {
            out.extend(letter.to_uppercase());
        }
    }
    out
}

/// Removes HTML comments and tags, and collapses spaces.
pub(crate) fn without_tags(text: &str) -> String {
    let mut remaining = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("<!--") {
        let after = rest.get(at + 4..).unwrap_or_default();
        let Some(end) = after.find("-->") else { break };
        remaining.push_str(rest.get(..at).unwrap_or_default());
        rest = after.get(end + 3..).unwrap_or_default();
    }
    remaining.push_str(rest);
    let mut plain = String::new();
    let mut rest = remaining.as_str();
    while let Some(at) = rest.find('<') {
        let after = rest.get(at..).unwrap_or_default();
        let Some(end) = after.find('>') else { break };
        plain.push_str(rest.get(..at).unwrap_or_default());
        rest = after.get(end + 1..).unwrap_or_default();
    }
    plain.push_str(rest);
    let words: Vec<&str> = split_space(&plain, usize::MAX, false);
    unescaped(&words.join(" "))
}

/// Replaces the usual character references.
pub(crate) fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        let (before, after) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.push_str(before);
        let end = semicolon(after, 12);
        let letter = end.and_then(|end| reference(after.get(1..end)?));
        match (letter, end) {
            (Some(letter), Some(end)) => {
                out.push(letter);
                rest = after.get(end + 1..).unwrap_or_default();
            }
            _ => {
                out.push('&');
                rest = after.get(1..).unwrap_or_default();
            }
        }
    }
    out + rest
}

/// Returns the position of a semicolon among the first bytes.
pub(crate) fn semicolon(text: &str, within: usize) -> Option<usize> {
    text.bytes().take(within).position(|byte| byte == b';')
}

/// Returns the character of `amp`, `#38` or `#x26`.
pub(crate) fn reference(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(code).filter(|letter| *letter != '\0');
    }
    crate::entities::named(name)
}

/// Returns the lower case, for filters that ignore case.
pub(crate) fn folded_only(text: &str) -> String {
    text.to_lowercase()
}

/// Quotes a string as Python's `repr` does.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_quoted(text, &mut out);
    out
}

pub(crate) fn push_quoted(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    out.push(quote);
    for letter in text.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            letter if letter == quote => {
                out.push('\\');
                out.push(letter);
            }
            ' '..='~' => out.push(letter),
            letter if is_printable(letter) => out.push(letter),
            letter => {
                let code = u32::from(letter);
                let _ = match code {
                    0..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push(quote);
}

/// Python's `str.isprintable`.
pub(crate) fn is_printable(letter: char) -> bool {
    if letter.is_ascii() {
        return (' '..='~').contains(&letter);
    }
    // Rust escapes unprintable characters, and combining marks at the start of a string.
    let mut buffer = [b'a'; 5];
    let end = 1 + letter.encode_utf8(buffer.get_mut(1..).unwrap_or_default()).len();
    let text = buffer.get(..end).unwrap_or_default();
    let mut escaped = std::str::from_utf8(text)
        .unwrap_or_default()
        .escape_debug()
        .skip(1);
    escaped.next() == Some(letter) && escaped.next().is_none()
}

pub(crate) fn char_count(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.chars().count()
    }
}
