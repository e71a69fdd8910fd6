//! Words and letters: cases, initials, wrapping, abbreviations.

mod cases;

use go::bytes;

use super::{
    arguments::{int, text},
    context::Context,
    table::{Answer, Entry, fixed},
};
use crate::{Value, template::Type};

const ONE: &[Type] = &[Type::String];

pub(super) const TABLE: &[Entry] = &[
    fixed("upper", ONE, |_, arguments| Ok(mapped(arguments, upper))),
    fixed("lower", ONE, |_, arguments| Ok(mapped(arguments, lower))),
    fixed("title", ONE, title),
    fixed("untitle", ONE, untitle),
    fixed("swapcase", ONE, swapcase),
    fixed("nospace", ONE, nospace),
    fixed("initials", ONE, initials),
    fixed("abbrev", &[Type::Int, Type::String], abbrev),
    fixed("abbrevboth", &[Type::Int, Type::Int, Type::String], abbrevboth),
    fixed("wrap", &[Type::Int, Type::String], wrap),
    fixed("wrapWith", &[Type::Int, Type::String, Type::String], wrap_with),
    fixed("snakecase", ONE, |_, arguments| {
        Ok(Value::string(cases::joined(text(arguments, 0), '_')))
    }),
    fixed("kebabcase", ONE, |_, arguments| {
        Ok(Value::string(cases::joined(text(arguments, 0), '-')))
    }),
    fixed("camelcase", ONE, |_, arguments| {
        let full = bytes::to_valid_utf8(text(arguments, 0));
        Ok(Value::utf8(&cases::camel(&full)))
    }),
];

fn mapped(arguments: &[Value], map: impl FnMut(char) -> char) -> Value {
    let mapped: String = bytes::to_valid_utf8(text(arguments, 0))
        .chars()
        .map(map)
        .collect();
    Value::utf8(&mapped)
}

/// Converts a character to upper case, if the result is one character.
fn upper(c: char) -> char {
    let mut letters = c.to_uppercase();
    match (letters.next(), letters.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

/// Converts to title case: digraphs become a capital and a small letter, Georgian is unchanged.
fn title_case(c: char) -> char {
    match c {
        '\u{1c4}'..='\u{1c6}' => '\u{1c5}',
        '\u{1c7}'..='\u{1c9}' => '\u{1c8}',
        '\u{1ca}'..='\u{1cc}' => '\u{1cb}',
        '\u{1f1}'..='\u{1f3}' => '\u{1f2}',
        'ა'..='ჿ' => c,
        c => upper(c),
    }
}

fn lower(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

/// Returns true if a character ends a word, according to `title`.
fn separates(c: char) -> bool {
    match c {
        '_' => false,
        c if c.is_alphanumeric() => false,
        c if c.is_ascii() => true,
        c => c.is_whitespace(),
    }
}

fn title(_: &Context<'_>, arguments: &[Value]) -> Answer {
    let mut before = ' ';
    let capital = |c: char| {
        let made = if separates(before) { title_case(c) } else { c };
        before = c;
        made
    };
    Ok(mapped(arguments, capital))
}

fn untitle(_: &Context<'_>, arguments: &[Value]) -> Answer {
    let mut first = true;
    let small = |c: char| {
        let made = if first && !c.is_whitespace() { lower(c) } else { c };
        first = c.is_whitespace();
        made
    };
    Ok(mapped(arguments, small))
}

/// Swaps upper and lower case; the first letter of a word gets title case.
fn swapcase(_: &Context<'_>, arguments: &[Value]) -> Answer {
    let mut begins = true;
    let swap = |c: char| {
        let is_start = std::mem::take(&mut begins);
        if c.is_uppercase() || (lower(c) != c && title_case(c) == c) {
            lower(c)
        } else if !c.is_lowercase() {
            begins = c.is_whitespace();
            c
        } else if is_start {
            title_case(c)
        } else {
            upper(c)
        }
    };
    Ok(mapped(arguments, swap))
}

/// Returns true if a byte, as a Latin-1 character, is white space.
fn is_space(byte: u8) -> bool {
    char::from(byte).is_whitespace()
}

/// Removes white space. Bytes are converted as Latin-1, unless there is no white space.
fn nospace(_: &Context<'_>, arguments: &[Value]) -> Answer {
    let full = text(arguments, 0);
    let bytes = bytes::of_str(full);
    if !bytes.iter().copied().any(is_space) {
        return Ok(Value::string(full));
    }
    let remaining = bytes.iter().filter(|byte| !is_space(**byte));
    Ok(Value::string(
        remaining.map(|byte| char::from(*byte)).collect::<String>(),
    ))
}

/// Returns the first byte of each word as a Latin-1 character.
fn initials(_: &Context<'_>, arguments: &[Value]) -> Answer {
    let bytes = bytes::of_str(text(arguments, 0));
    let firsts = bytes.split(|byte| is_space(*byte)).filter_map(<[u8]>::first);
    Ok(Value::string(
        firsts.map(|byte| char::from(*byte)).collect::<String>(),
    ))
}

fn abbrev(_: &Context<'_>, arguments: &[Value]) -> Answer {
    let (width, full) = (int(arguments, 0), text(arguments, 1));
    let Some(width) = usize::try_from(width).ok().filter(|width| *width >= 4) else {
        return Ok(Value::string(full));
    };
    Ok(Value::string(bytes::to_string(&shortened(
        &bytes::of_str(full),
        0,
        width,
    ))))
}

fn abbrevboth(_: &Context<'_>, arguments: &[Value]) -> Answer {
    let (left, right, full) = (int(arguments, 0), int(arguments, 1), text(arguments, 2));
    if right < 4 || (left > 0 && right < 7) {
        return Ok(Value::string(full));
    }
    let width = usize::try_from(right).unwrap_or(usize::MAX);
    Ok(Value::string(bytes::to_string(&shortened(
        &bytes::of_str(full),
        left,
        width,
    ))))
}

/// Shortens a string to a width with `...` at its ends, so that the part at `offset` stays visible.
fn shortened(full: &[u8], offset: i64, width: usize) -> Vec<u8> {
    let available = width.saturating_sub(3);
    if full.len() <= width {
        return full.to_vec();
    }
    let offset = offset.min((full.len() - available) as i64);
    let head = |part: &[u8], available: usize| [part.get(..available).unwrap_or(part), b"..."].concat();
    let Some(offset) = usize::try_from(offset).ok().filter(|offset| *offset > 4) else {
        return head(full, available);
    };
    if width < 7 {
        return Vec::new();
    }
    let tail = full.get(offset..).unwrap_or_default();
    if offset + available < full.len() {
        // A part from the middle has its own width, which includes its dots.
        let middle = if tail.len() <= available {
            tail.to_vec()
        } else {
            head(tail, available - 3)
        };
        return [b"...", middle.as_slice()].concat();
    }
    [b"...", full.get(full.len() - available..).unwrap_or_default()].concat()
}

fn wrap(context: &Context<'_>, arguments: &[Value]) -> Answer {
    wrapped(context, text(arguments, 1), int(arguments, 0), "\n", false)
}

fn wrap_with(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let end = text(arguments, 1);
    let end = if end.is_empty() { "\n" } else { end };
    wrapped(context, text(arguments, 2), int(arguments, 0), end, true)
}

/// Breaks a string at spaces into lines of at most `width` bytes; `cut` breaks longer words.
fn wrapped(context: &Context<'_>, full: &str, width: i64, end: &str, cut: bool) -> Answer {
    let width = usize::try_from(width).unwrap_or(0).max(1);
    let bytes = bytes::of_str(full);
    let lines = bytes.len() / width + 1 + full.matches(' ').count();
    context.text(bytes.len().saturating_add(lines.saturating_mul(end.len())))?;
    let mut out = Vec::with_capacity(bytes.len());
    let mut tail: &[u8] = &bytes;
    while tail.len() > width {
        if let Some(after) = tail.strip_prefix(b" ") {
            tail = after;
            continue;
        }
        let (head, beyond) = tail.split_at(width + 1);
        let space = head.iter().rposition(|byte| *byte == b' ').or_else(|| {
            let later = beyond
                .iter()
                .position(|byte| *byte == b' ')
                .map(|at| at + width + 1);
            later.filter(|_| !cut)
        });
        let (line, skip) = match space {
            Some(space) => (space, 1),
            None if cut => (width, 0),
            None => break,
        };
        out.extend_from_slice(tail.get(..line).unwrap_or_default());
        out.extend_from_slice(&bytes::of_str(end));
        tail = tail.get(line + skip..).unwrap_or_default();
    }
    out.extend_from_slice(tail);
    Ok(Value::string(bytes::to_string(&out)))
}
