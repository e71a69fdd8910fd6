//! Patterns of paths: those of Go's `path.Match`, and those of `.Files.Glob`.

use regex::Regex;

/// What both call a pattern that is none.
const BAD: &str = "syntax error in pattern";

/// Whether a name matches a pattern of `path.Match`: `*` and `?` stop at slashes.
///
/// # Errors
/// When it is no pattern.
pub(crate) fn path_match(pattern: &str, name: &str) -> Result<bool, String> {
    Ok(path_pattern(pattern)?.is_match(name))
}

/// A pattern of `path.Match`, for many names.
///
/// # Errors
/// When it is no pattern.
pub(super) fn path_pattern(pattern: &str) -> Result<Regex, String> {
    let mut text = String::from("(?s)^");
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '*' => text.push_str("[^/]*"),
            '?' => text.push_str("[^/]"),
            '[' => path_class(&mut rest, &mut text)?,
            '\\' => literal(rest.next().ok_or(BAD)?, &mut text),
            c => literal(c, &mut text),
        }
    }
    text.push('$');
    Regex::new(&text).map_err(|_| BAD.to_owned())
}

fn literal(c: char, text: &mut String) {
    text.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
}

/// `[a-z]`, `[^a]`, with escapes. A class never matches more than Go's does: a range that is none matches nothing.
fn path_class(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, text: &mut String) -> Result<(), String> {
    let negated = rest.next_if_eq(&'^').is_some();
    let mut ranges = Vec::new();
    while ranges.is_empty() || rest.peek() != Some(&']') {
        let low = class_character(rest)?;
        let high = if rest.next_if_eq(&'-').is_some() {
            class_character(rest)?
        } else {
            low
        };
        ranges.push((low, high));
    }
    rest.next();
    class(&ranges, negated, text);
    Ok(())
}

fn class_character(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<char, String> {
    match rest.next() {
        None | Some('-' | ']') => Err(BAD.to_owned()),
        Some('\\') => rest.next().ok_or_else(|| BAD.to_owned()),
        Some(c) => Ok(c),
    }
}

fn class(ranges: &[(char, char)], negated: bool, text: &mut String) {
    let real: Vec<_> = ranges.iter().filter(|(low, high)| low <= high).collect();
    if real.is_empty() {
        // Matches no character, or any.
        text.push_str(if negated { "." } else { "[^\\s\\S]" });
        return;
    }
    text.push_str(if negated { "[^" } else { "[" });
    for (low, high) in real {
        literal_in_class(*low, text);
        text.push('-');
        literal_in_class(*high, text);
    }
    text.push(']');
}

fn literal_in_class(c: char, text: &mut String) {
    if c.is_ascii_punctuation() {
        text.push('\\');
    }
    text.push(c);
}

/// The pattern of `.Files.Glob` as a regular expression: `*` stops at slashes, `**` doesn't, `{a,b}` are alternatives.
/// There is none when it is no pattern.
pub(super) fn files_pattern(pattern: &str) -> Option<Regex> {
    let mut text = String::from("(?s)^");
    let mut rest = pattern.chars().peekable();
    let mut depth = 0_usize;
    while let Some(c) = rest.next() {
        match c {
            '*' if rest.next_if_eq(&'*').is_some() => text.push_str(".*"),
            '*' => text.push_str("[^/]*"),
            '?' => text.push_str("[^/]"),
            '[' => files_class(&mut rest, &mut text)?,
            '{' => {
                depth = depth.checked_add(1)?;
                text.push_str("(?:");
            }
            '}' if depth > 0 => {
                depth = depth.checked_sub(1)?;
                text.push(')');
            }
            ',' if depth > 0 => text.push('|'),
            '\\' => literal(rest.next()?, &mut text),
            c => literal(c, &mut text),
        }
    }
    if depth > 0 {
        return None;
    }
    text.push('$');
    Regex::new(&text).ok()
}

/// Either one range or a list of characters, `!` before it negates.
fn files_class(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, text: &mut String) -> Option<()> {
    let negated = rest.next_if_eq(&'!').is_some();
    let first = rest.next()?;
    if rest.next_if_eq(&'-').is_some() {
        let last = rest.next()?;
        rest.next_if_eq(&']')?;
        if last < first {
            return None;
        }
        class(&[(first, last)], negated, text);
        return Some(());
    }
    let mut ranges = Vec::new();
    let mut next = Some(first);
    loop {
        match next? {
            ']' => break,
            '\\' => {
                let c = rest.next()?;
                ranges.push((c, c));
            }
            c => ranges.push((c, c)),
        }
        next = rest.next();
    }
    class(&ranges, negated, text);
    Some(())
}
