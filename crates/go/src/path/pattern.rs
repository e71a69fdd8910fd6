//! Patterns of `path.Match`.

use std::{iter::Peekable, str::Chars};

/// An invalid pattern: an unclosed class, an incomplete range, or a backslash at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("syntax error in pattern")]
pub struct PatternError;

/// A pattern of `path.Match`: `*` and `?` match no slashes, `[a-z]` and `[^a]` are classes, a backslash escapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    parts: Vec<Part>,
    /// The suffix of names that match, if the pattern is one star and a suffix, as in `*.bak`.
    suffix: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Char(char),
    /// `?`
    One,
    /// `*`
    Star,
    /// Ranges; if true, all characters outside of them.
    Class(Vec<(char, char)>, bool),
}

impl Part {
    /// Returns the character of a literal part.
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
    /// Parses a pattern.
    ///
    /// # Errors
    /// Returns an error if a class is not closed, a range is incomplete, or the pattern ends with a backslash.
    pub fn parse(pattern: &str) -> Result<Self, PatternError> {
        let mut parts = Vec::new();
        let mut rest = pattern.chars().peekable();
        while let Some(c) = rest.next() {
            parts.push(match c {
                '*' => Part::Star,
                '?' => Part::One,
                '[' => class(&mut rest)?,
                '\\' => Part::Char(rest.next().ok_or(PatternError)?),
                c => Part::Char(c),
            });
        }
        let suffix = match parts.split_first() {
            Some((Part::Star, after)) => after.iter().map(Part::character).collect(),
            _ => None,
        };
        Ok(Self { parts, suffix })
    }

    /// Returns true if the pattern matches the whole name, in time linear in pattern times name.
    #[must_use]
    pub fn is_match(&self, name: &str) -> bool {
        if let Some(suffix) = &self.suffix {
            let before = name.strip_suffix(suffix.as_str());
            return before.is_some_and(|before| !before.contains('/'));
        }
        let (mut parts, mut rest) = (self.parts.as_slice(), name);
        // The parts after the last star, and the rest of the name where it began. An earlier star need not be tried again: it
        // could not do better.
        let mut star: Option<(&[Part], &str)> = None;
        loop {
            let mut chars = rest.chars();
            match (parts.split_first(), chars.next()) {
                (Some((Part::Star, after)), _) => {
                    parts = after;
                    star = Some((after, rest));
                }
                (Some((part, after)), Some(c)) if part.fits(c) => {
                    parts = after;
                    rest = chars.as_str();
                }
                (None, None) => return true,
                _ => {
                    let Some((after, from)) = star else { return false };
                    let mut chars = from.chars();
                    if matches!(chars.next(), None | Some('/')) {
                        return false;
                    }
                    parts = after;
                    rest = chars.as_str();
                    star = Some((after, rest));
                }
            }
        }
    }
}

/// Parses `[a-z]` or `[^a]`, with escapes. A range whose end is below its start matches nothing.
fn class(rest: &mut Peekable<Chars<'_>>) -> Result<Part, PatternError> {
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

fn class_character(rest: &mut Peekable<Chars<'_>>) -> Result<char, PatternError> {
    match rest.next() {
        None | Some('-' | ']') => Err(PatternError),
        Some('\\') => rest.next().ok_or(PatternError),
        Some(c) => Ok(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_in_go() {
        for (pattern, name, expected) in [
            ("abc", "abc", true),
            ("*", "abc", true),
            ("*", "", true),
            ("*c", "abc", true),
            ("a*", "ab/c", false),
            ("a*/b", "a/c/b", false),
            ("a*b*c*d*e*/f", "axbxcxdxexxx/f", true),
            ("a*b?c*x", "abxbbxdbxebxczzx", true),
            ("a*b?c*x", "abxbbxdbxebxczzy", false),
            ("ab[e-g]", "abc", false),
            ("ab[^c]", "abc", false),
            ("a\\*b", "a*b", true),
            ("a?b", "a☺b", true),
            ("a?b", "a/b", false),
            ("[\\]a]", "]", true),
            ("[x\\-]", "-", true),
            ("*x", "xxx", true),
            ("ü*?", "üx", true),
            ("*.bak", "a.bak", true),
            ("*.bak", "d/a.bak", false),
        ] {
            assert_eq!(
                Pattern::parse(pattern).unwrap().is_match(name),
                expected,
                "{pattern} {name}"
            );
        }
    }

    #[test]
    fn invalid_patterns_are_refused() {
        for pattern in ["[]a]", "[-]", "[x-]", "[-x]", "[", "[^", "[^bc", "a[", "\\"] {
            assert_eq!(Pattern::parse(pattern), Err(PatternError), "{pattern}");
        }
    }

    #[test]
    fn many_stars_take_linear_time() {
        let pattern = Pattern::parse(&"*a".repeat(2000)).unwrap();
        assert!(!pattern.is_match(&("a".repeat(1999) + "b")));
    }
}
