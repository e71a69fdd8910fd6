//! Patterns of paths: those of Go's `path.Match`, and those of `.Files.Glob`.

use regex::Regex;

/// What both call a pattern that is none.
const BAD: &str = "syntax error in pattern";

/// A pattern of `path.Match`: `*` and `?` stop at slashes.
#[derive(Debug)]
pub(crate) struct Pattern {
    parts: Vec<Part>,
    /// What names end with where the rest of the pattern is one star, as in `*.bak`.
    suffix: Option<String>,
}

#[derive(Debug)]
enum Part {
    Char(char),
    /// `?`
    One,
    /// `*`
    Star,
    /// Ranges, and whether all but these are meant.
    Class(Vec<(char, char)>, bool),
}

impl Part {
    /// The only character that it may be.
    fn character(&self) -> Option<char> {
        match self {
            Self::Char(c) => Some(*c),
            _ => None,
        }
    }

    fn fits(&self, c: char) -> bool {
        match self {
            Self::Char(wanted) => *wanted == c,
            Self::One => c != '/',
            Self::Star => false,
            Self::Class(ranges, negated) => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
            }
        }
    }
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// When it is none.
    pub(crate) fn parse(pattern: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = pattern.chars().peekable();
        while let Some(c) = rest.next() {
            parts.push(match c {
                '*' => Part::Star,
                '?' => Part::One,
                '[' => path_class(&mut rest)?,
                '\\' => Part::Char(rest.next().ok_or(BAD)?),
                c => Part::Char(c),
            });
        }
        let suffix = match parts.split_first() {
            Some((Part::Star, behind)) => behind.iter().map(Part::character).collect(),
            _ => None,
        };
        Ok(Self { parts, suffix })
    }

    /// Whether a name matches.
    pub(crate) fn is_match(&self, name: &str) -> bool {
        if let Some(suffix) = &self.suffix {
            let before = name.strip_suffix(suffix.as_str());
            return before.is_some_and(|before| !before.contains('/'));
        }
        let (mut parts, mut rest) = (self.parts.as_slice(), name);
        // What comes behind the last star, and what was there when it took nothing more.
        let mut star: Option<(&[Part], &str)> = None;
        loop {
            let mut chars = rest.chars();
            match (parts.split_first(), chars.next()) {
                (Some((Part::Star, behind)), _) => {
                    parts = behind;
                    star = Some((behind, rest));
                }
                (Some((part, behind)), Some(c)) if part.fits(c) => {
                    parts = behind;
                    rest = chars.as_str();
                }
                (None, None) => return true,
                _ => {
                    let Some((behind, from)) = star else { return false };
                    let mut chars = from.chars();
                    if matches!(chars.next(), None | Some('/')) {
                        return false;
                    }
                    parts = behind;
                    rest = chars.as_str();
                    star = Some((behind, rest));
                }
            }
        }
    }
}

fn literal(c: char, text: &mut String) {
    text.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
}

/// `[a-z]`, `[^a]`, with escapes. A class never matches more than Go's does: a range that is none matches nothing.
fn path_class(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Part, String> {
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
    Ok(Part::Class(ranges, negated))
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
