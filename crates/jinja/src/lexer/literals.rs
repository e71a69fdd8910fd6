//! Numbers and strings.

use num_bigint::BigInt;

use super::{names, token::TokenKind};

/// Digits with single underscores between them.
fn digits(text: &str, valid: fn(u8) -> bool) -> usize {
    let bytes = text.as_bytes();
    let at = |index: usize| bytes.get(index).copied().is_some_and(valid);
    let mut end = 0;
    while at(end) || end > 0 && bytes.get(end) == Some(&b'_') && at(end + 1) {
        end += 1;
    }
    end
}

/// The maximum digits of a decimal integer, as in Python: its conversion takes the square of their number.
const MAX_DIGITS: usize = 4300;

/// An integer of too many digits, in Python's words.
#[derive(Debug, thiserror::Error)]
#[error(
    "Exceeds the limit ({MAX_DIGITS} digits) for integer string conversion: value has {0} digits; use \
     sys.set_int_max_str_digits() to increase the limit"
)]
pub(super) struct TooManyDigits(usize);

pub(super) fn number(text: &str, after_point: bool) -> Result<(TokenKind, usize), TooManyDigits> {
    let whole = digits(text, |byte| byte.is_ascii_digit());
    if !after_point && let Some((kind, length)) = float(text, whole) {
        return Ok((kind, length));
    }
    let prefix = text.get(..2).unwrap_or_default().to_ascii_lowercase();
    let (radix, valid): (u32, fn(u8) -> bool) = match prefix.as_str() {
        "0b" => (2, |byte| matches!(byte, b'0' | b'1')),
        "0o" => (8, |byte| (b'0'..=b'7').contains(&byte)),
        "0x" => (16, |byte| byte.is_ascii_hexdigit()),
        _ => (10, |byte| byte.is_ascii_digit()),
    };
    let body = text.get(2..).unwrap_or_default();
    // An underscore may follow the prefix.
    let skipped = usize::from(body.starts_with('_'));
    let length = digits(body.get(skipped..).unwrap_or_default(), valid);
    let (part, length) = if radix != 10 && length > 0 {
        (body.get(..skipped + length), 2 + skipped + length)
    } else if text.starts_with('0') {
        // Leading zeros are invalid, except in zero.
        let zeros = digits(text, |byte| byte == b'0');
        (text.get(..zeros), zeros)
    } else {
        (text.get(..whole), whole)
    };
    let digits = part.unwrap_or_default().replace('_', "");
    if radix == 10 && digits.len() > MAX_DIGITS {
        return Err(TooManyDigits(digits.len()));
    }
    let number = BigInt::parse_bytes(digits.as_bytes(), radix).unwrap_or_default();
    Ok((TokenKind::Integer(number), length))
}

fn float(text: &str, whole: usize) -> Option<(TokenKind, usize)> {
    let rest = text.get(whole..)?;
    let digit = |byte: u8| byte.is_ascii_digit();
    let fraction = match rest.strip_prefix('.').map(|rest| digits(rest, digit)) {
        Some(length) if length > 0 => length + 1,
        _ => 0,
    };
    let tail = rest.get(fraction..)?;
    let exponent = match tail.strip_prefix(['e', 'E']) {
        Some(after) => {
            let unsigned = after.strip_prefix(['+', '-']).unwrap_or(after);
            match digits(unsigned, digit) {
                0 => 0,
                length => 1 + (after.len() - unsigned.len()) + length,
            }
        }
        None => 0,
    };
    if fraction == 0 && exponent == 0 {
        return None;
    }
    let length = whole + fraction + exponent;
    let number = text.get(..length)?.replace('_', "").parse().ok()?;
    Some((TokenKind::Float(number), length))
}

/// The reason why the escapes of a string can't be decoded, in Python's words.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidEscape {
    #[error("\\ at end of string")]
    AtEnd,
    #[error("truncated \\{0}{digits} escape", digits = "X".repeat(*.1))]
    Truncated(char, usize),
    #[error("illegal Unicode character")]
    TooLarge,
    #[error("malformed \\N character escape")]
    Malformed,
    #[error("unknown Unicode character name")]
    UnknownName,
}

/// Resolves the escapes of Python's strings.
pub(super) fn unescaped(text: &str) -> Result<String, InvalidEscape> {
    if !text.contains('\\') {
        return Ok(text.to_owned());
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(rest.get(..at).unwrap_or_default());
        rest = rest.get(at + 1..).unwrap_or_default();
        let Some(letter) = rest.chars().next() else {
            return Err(InvalidEscape::AtEnd);
        };
        rest = rest.get(letter.len_utf8()..).unwrap_or_default();
        let width = match letter {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        match letter {
            '\n' => {}
            '\\' | '\'' | '"' => out.push(letter),
            'a' => out.push('\u{7}'),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'v' => out.push('\u{b}'),
            'x' | 'u' | 'U' => {
                let digits = rest
                    .get(..width)
                    .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
                let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
                let Some(code) = code else {
                    return Err(InvalidEscape::Truncated(letter, width));
                };
                if code > u32::from(char::MAX) {
                    return Err(InvalidEscape::TooLarge);
                }
                // A lone surrogate has no character.
                out.push(char::from_u32(code).unwrap_or('\u{fffd}'));
                rest = rest.get(width..).unwrap_or_default();
            }
            'N' => {
                let name = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
                let Some((name, after)) = name.filter(|(name, _)| !name.is_empty()) else {
                    return Err(InvalidEscape::Malformed);
                };
                out.push(names::character(name).ok_or(InvalidEscape::UnknownName)?);
                rest = after;
            }
            '0'..='7' => {
                let more = rest
                    .bytes()
                    .take(2)
                    .take_while(|byte| (b'0'..=b'7').contains(byte))
                    .count();
                let digits = format!("{letter}{}", rest.get(..more).unwrap_or_default());
                let code = u32::from_str_radix(&digits, 8).unwrap_or_default();
                out.push(char::from_u32(code).unwrap_or('\u{fffd}'));
                rest = rest.get(more..).unwrap_or_default();
            }
            other => {
                out.push('\\');
                out.push(other);
            }
        }
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_escapes_fail_as_in_python() {
        for (text, expected) in [
            (r"\N{X}", r"unknown Unicode character name"),
            (r"\N{BULLET", r"malformed \N character escape"),
            (r"\N{}", r"malformed \N character escape"),
            (r"\Nx", r"malformed \N character escape"),
            (r"\x1", r"truncated \xXX escape"),
            (r"\u12", r"truncated \uXXXX escape"),
            (r"\U0011", r"truncated \UXXXXXXXX escape"),
            (r"\U00110000", r"illegal Unicode character"),
        ] {
            assert_eq!(unescaped(text).unwrap_err().to_string(), expected, "{text}");
        }
    }
}
