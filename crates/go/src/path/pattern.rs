//! Patterns of `path.Match`.

use std::{iter::Peekable, str::Chars};

/// An unclosed class, an incomplete range, or a backslash at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("syntax error in pattern")]
pub struct PatternError;

/// A pattern of `path.Match`: `*` and `?` match no slashes, `[a-z]` and `[^a]` are classes, a backslash escapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    form: Form,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    Literal(String),
    /// One star and the suffix of names that match, as in `*.bak`.
    Suffix(String),
    Parts(Vec<Part>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Char(char),
    One,
    Star,
    /// Ranges; if true, all characters but these.
    Class(Vec<(char, char)>, bool),
}

impl Part {
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
        let literal = |parts: &[Part]| parts.iter().map(Part::character).collect::<Option<String>>();
        let suffix = match parts.split_first() {
            Some((Part::Star, after)) => literal(after),
            _ => None,
        };
        let form = match (literal(&parts), suffix) {
            (Some(name), _) => Form::Literal(name),
            (None, Some(suffix)) => Form::Suffix(suffix),
            (None, None) => Form::Parts(parts),
        };
        Ok(Self { form })
    }

    /// Returns the only name that matches, if the pattern has no wildcards.
    #[must_use]
    pub fn literal(&self) -> Option<&str> {
        match &self.form {
            Form::Literal(name) => Some(name),
            _ => None,
        }
    }

    /// Returns the suffix of a pattern that is one star and a suffix, as in `*.bak`.
    #[must_use]
    pub fn suffix(&self) -> Option<&str> {
        match &self.form {
            Form::Suffix(suffix) => Some(suffix),
            _ => None,
        }
    }

    /// Matches the whole name, in time linear in pattern times name.
    #[must_use]
    pub fn is_match(&self, name: &str) -> bool {
        self.is_match_counted(name, &mut 0)
    }

    /// Matches as [`Self::is_match`], and adds the number of comparisons to `work`: one for the name, and with wildcards at
    /// most twice the length of the pattern times the length of the name.
    #[must_use]
    pub fn is_match_counted(&self, name: &str, work: &mut u64) -> bool {
        *work = work.saturating_add(1);
        match &self.form {
            Form::Literal(own) => own == name,
            Form::Suffix(suffix) => {
                let before = name.strip_suffix(suffix.as_str());
                before.is_some_and(|before| !before.contains('/'))
            }
            Form::Parts(parts) => Part::match_all(parts, name, work),
        }
    }
}

impl Part {
    fn match_all(parts: &[Self], name: &str, work: &mut u64) -> bool {
        let (mut parts, mut rest) = (parts, name);
        // The parts after the last star, and the rest of the name where it started. An earlier star need not be tried again:
        // it could not do better.
        let mut star: Option<(&[Self], &str)> = None;
        loop {
            *work = work.saturating_add(1);
            let mut chars = rest.chars();
            match (parts.split_first(), chars.next()) {
                (Some((Self::Star, after)), _) => {
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
    fn work_of_many_stars_is_bounded() {
        let (text, name) = ("*a".repeat(2000), "a".repeat(1999) + "b");
        let mut work = 0;
        assert!(!Pattern::parse(&text).unwrap().is_match_counted(&name, &mut work));
        assert!(
            work > 2000 && work <= 2 + 2 * (text.len() as u64 + 1) * (name.len() as u64 + 1),
            "{work}"
        );
        assert!(Pattern::parse("*a*b*c*").unwrap().is_match("xxaxxbxxcxx"));
        for (text, literal, suffix) in [
            ("a\\*", Some("a*"), None),
            ("*.md", None, Some(".md")),
            ("a*", None, None),
        ] {
            let (pattern, mut work) = (Pattern::parse(text).unwrap(), 0);
            assert_eq!((pattern.literal(), pattern.suffix()), (literal, suffix), "{text}");
            let _ = pattern.is_match_counted("abc", &mut work);
            assert_eq!(work == 1, literal.is_some() || suffix.is_some(), "{text}");
        }
    }
}
