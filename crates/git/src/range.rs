//! Semver ranges in the language of Masterminds: `*`, `^`, `~`, comparisons, `||`, hyphens and x-ranges.

use std::{cmp::Ordering, fmt};

use semver::{Prerelease, Version};

use crate::Error;

/// A range of versions. A version with a pre-release matches only alternatives that mention one themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    text: String,
    alternatives: Vec<Vec<Comparison>>,
}

impl Range {
    /// Reads a range.
    ///
    /// # Errors
    /// [`Error::InvalidRange`] with the range.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let alternatives: Option<Vec<_>> = text.split("||").map(alternative).collect();
        match alternatives {
            Some(alternatives) => Ok(Self {
                text: text.to_owned(),
                alternatives,
            }),
            None => Err(Error::InvalidRange(text.to_owned())),
        }
    }

    /// Whether `version` is in the range.
    #[must_use]
    pub fn matches(&self, version: &Version) -> bool {
        self.alternatives.iter().any(|all| {
            let with_pre = all.iter().any(|one| !one.version.pre.is_empty());
            (with_pre || version.pre.is_empty()) && all.iter().all(|one| one.matches(version))
        })
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    Tilde,
    Caret,
}

/// The first number of a version that is missing or an x.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Major,
    Minor,
    Patch,
    Nothing,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Comparison {
    operator: Operator,
    version: Version,
    open: Open,
}

impl Comparison {
    fn matches(&self, v: &Version) -> bool {
        let c = &self.version;
        let order = v.cmp_precedence(c);
        match self.operator {
            Operator::Equal if self.open == Open::Nothing => order == Ordering::Equal,
            Operator::Equal | Operator::Tilde => self.tilde(v, order),
            Operator::NotEqual => self.not_equal(v, order),
            Operator::Greater => self.greater(v, order),
            Operator::GreaterEqual => order != Ordering::Less,
            Operator::Less => order == Ordering::Less,
            Operator::LessEqual if self.open == Open::Nothing => order != Ordering::Greater,
            Operator::LessEqual => {
                v.major < c.major
                    || (v.major == c.major && (v.minor <= c.minor || self.open == Open::Minor))
                    || self.open == Open::Major
            }
            Operator::Caret => self.caret(v, order),
        }
    }

    /// The same minor version, or what is open of it.
    fn tilde(&self, v: &Version, order: Ordering) -> bool {
        let c = &self.version;
        let zero = (c.major, c.minor, c.patch) == (0, 0, 0);
        if zero && matches!(self.open, Open::Major | Open::Nothing) {
            return order != Ordering::Less;
        }
        order != Ordering::Less && v.major == c.major && (v.minor == c.minor || self.open == Open::Minor)
    }

    fn not_equal(&self, v: &Version, order: Ordering) -> bool {
        let c = &self.version;
        match self.open {
            Open::Nothing => order != Ordering::Equal,
            Open::Patch => (v.major, v.minor) != (c.major, c.minor),
            Open::Minor => v.major != c.major,
            Open::Major => false,
        }
    }

    /// `>11` begins with 12, `>11.1` with 11.2.
    fn greater(&self, v: &Version, order: Ordering) -> bool {
        let c = &self.version;
        match self.open {
            Open::Minor => v.major > c.major,
            Open::Patch => (v.major, v.minor) > (c.major, c.minor),
            Open::Major | Open::Nothing => order == Ordering::Greater,
        }
    }

    /// Nothing left of the first number that is not zero may change.
    fn caret(&self, v: &Version, order: Ordering) -> bool {
        let c = &self.version;
        if order == Ordering::Less {
            return false;
        }
        match self.open {
            Open::Major => true,
            _ if c.major > 0 => v.major == c.major,
            Open::Minor => v.major == 0,
            _ if v.major > 0 => false,
            _ if c.minor > 0 => v.minor == c.minor,
            Open::Patch => v.minor == 0,
            Open::Nothing => v.minor == 0 && v.patch == c.patch,
        }
    }
}

/// Reads what stands between two `||`: comparisons, separated by blanks or commas, that must all hold.
fn alternative(text: &str) -> Option<Vec<Comparison>> {
    let words = join_operators(text)?;
    let mut all = Vec::new();
    let mut rest = words.as_slice();
    while let Some((first, tail)) = rest.split_first() {
        if let [dash, last, after @ ..] = tail
            && dash == "-"
        {
            all.push(comparison(first, Some(Operator::GreaterEqual))?);
            all.push(comparison(last, Some(Operator::LessEqual))?);
            rest = after;
        } else {
            all.push(comparison(first, None)?);
            rest = tail;
        }
    }
    (!all.is_empty()).then_some(all)
}

/// Splits into words and joins an operator with the version that follows it.
fn join_operators(text: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let mut pending = String::new();
    for word in text
        .split([' ', '\t', '\n', '\r', ','])
        .filter(|word| !word.is_empty())
    {
        if word.chars().all(|c| "=<>!~^".contains(c)) {
            if !pending.is_empty() {
                return None;
            }
            word.clone_into(&mut pending);
        } else {
            words.push(format!("{pending}{word}"));
            pending.clear();
        }
    }
    pending.is_empty().then_some(words)
}

fn comparison(word: &str, fixed: Option<Operator>) -> Option<Comparison> {
    let start = word.find(|c| !"=<>!~^".contains(c))?;
    let (operator, version) = word.split_at_checked(start)?;
    let operator = match (operator, fixed) {
        ("", Some(operator)) => operator,
        (_, Some(_)) => return None,
        ("" | "=", None) => Operator::Equal,
        ("!=", None) => Operator::NotEqual,
        (">", None) => Operator::Greater,
        ("<", None) => Operator::Less,
        (">=" | "=>", None) => Operator::GreaterEqual,
        ("<=" | "=<", None) => Operator::LessEqual,
        ("~" | "~>", None) => Operator::Tilde,
        ("^", None) => Operator::Caret,
        _ => return None,
    };
    let (version, open) = partial(version)?;
    Some(Comparison {
        operator,
        version,
        open,
    })
}

/// Reads a version whose later numbers may be missing or x.
fn partial(text: &str) -> Option<(Version, Open)> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let text = text.split_once('+').map_or(text, |(version, _)| version);
    let (numbers, pre) = match text.split_once('-') {
        Some((numbers, pre)) => (numbers, Prerelease::new(pre).ok().filter(|pre| !pre.is_empty())?),
        None => (text, Prerelease::EMPTY),
    };
    let mut parts = numbers.split('.');
    let mut read = || match parts.next() {
        None | Some("x" | "X" | "*") => Some(None),
        Some(digits) => digits.parse::<u64>().ok().map(Some),
    };
    let (major, minor, patch) = (read()?, read()?, read()?);
    if parts.next().is_some() || numbers.is_empty() {
        return None;
    }
    let (numbers, open) = match (major, minor, patch) {
        (None, ..) => ((0, 0, 0), Open::Major),
        (Some(major), None, _) => ((major, 0, 0), Open::Minor),
        (Some(major), Some(minor), None) => ((major, minor, 0), Open::Patch),
        (Some(major), Some(minor), Some(patch)) => ((major, minor, patch), Open::Nothing),
    };
    let mut version = Version::new(numbers.0, numbers.1, numbers.2);
    version.pre = pre;
    Some((version, open))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_match_as_their_language_says() {
        let cases: &[(&str, &[&str], &[&str])] = &[
            ("*", &["0.0.0", "1.2.3", "99.0.0"], &["1.0.0-alpha"]),
            ("1.2.3", &["1.2.3", "1.2.3+b"], &["1.2.4", "1.9.9", "1.2.3-a"]),
            ("=1.2.3", &["1.2.3"], &["1.2.4"]),
            ("v1.2.3", &["1.2.3"], &["1.2.2"]),
            ("1.2", &["1.2.0", "1.2.9"], &["1.3.0", "1.1.9"]),
            ("1.2.x", &["1.2.0", "1.2.9"], &["1.3.0"]),
            ("1.x", &["1.0.0", "1.9.9"], &["2.0.0", "0.9.0"]),
            ("1", &["1.0.0", "1.9.9"], &["2.0.0"]),
            ("0", &["0.0.1", "0.9.0"], &["1.0.0"]),
            ("!=1.2.3", &["1.2.4"], &["1.2.3"]),
            ("!=1.2.x", &["1.3.0"], &["1.2.3", "1.2.0"]),
            ("!=1.x", &["2.0.0"], &["1.2.3"]),
            (">1.2.3", &["1.2.4", "2.0.0"], &["1.2.3", "1.2.4-a"]),
            (">11", &["12.0.0"], &["11.1.0", "11.0.0"]),
            (">11.1", &["11.2.0", "12.0.0"], &["11.1.1"]),
            (">=1.2", &["1.2.0", "1.2.1", "2.0.0"], &["1.1.9"]),
            ("=>1.2", &["1.2.0"], &["1.1.9"]),
            ("<1.2", &["1.1.9"], &["1.2.0", "1.2.1"]),
            ("<=1.2", &["1.2.0", "1.2.9", "1.1.0"], &["1.3.0", "2.0.0"]),
            ("<=1", &["1.9.9", "0.1.0"], &["2.0.0"]),
            ("=<1.2.3", &["1.2.3"], &["1.2.4"]),
            ("~1.2.3", &["1.2.3", "1.2.9"], &["1.3.0", "1.2.2"]),
            ("~>1.2.3", &["1.2.9"], &["1.3.0"]),
            ("~1.2", &["1.2.0", "1.2.9"], &["1.3.0"]),
            ("~1", &["1.0.0", "1.9.0"], &["2.0.0"]),
            ("^1.2.3", &["1.2.3", "1.9.0"], &["2.0.0", "1.2.2"]),
            ("^1", &["1.0.0", "1.9.0"], &["2.0.0"]),
            ("^0.2.3", &["0.2.3", "0.2.9"], &["0.3.0", "1.0.0"]),
            ("^0.0.3", &["0.0.3"], &["0.0.4", "0.1.0"]),
            ("^0.0", &["0.0.0", "0.0.9"], &["0.1.0"]),
            ("^0", &["0.0.0", "0.9.0"], &["1.0.0"]),
            (">=1.0.0 <2.0.0", &["1.5.0"], &["2.0.0", "0.9.0"]),
            (">=1.0.0, <2.0.0", &["1.5.0"], &["2.0.0"]),
            (">= 1.0.0 < 2.0.0", &["1.5.0"], &["2.0.0"]),
            ("1.2 - 1.4.5", &["1.2.0", "1.4.5"], &["1.4.6", "1.1.9"]),
            ("1.2.3 - 1.4", &["1.2.3", "1.4.9"], &["1.5.0", "1.2.2"]),
            ("<1.0 || >=2.0", &["0.9.0", "2.0.0"], &["1.5.0"]),
            ("1.2.x || 1.4.x", &["1.2.3", "1.4.3"], &["1.3.0"]),
            (">=1.0.0-0", &["1.0.0-alpha", "1.0.0", "2.0.0-rc.1"], &["0.9.0"]),
            (
                ">=1.0.0-0 <1.1.0-0",
                &["1.0.0-alpha", "1.0.9"],
                &["1.1.0", "1.1.0-0"],
            ),
            (">=1.0.0-0 <1.1.0", &["1.0.0-alpha", "1.1.0-rc"], &["1.1.0"]),
            (
                "~1.2.3-beta",
                &["1.2.3-beta", "1.2.3-rc", "1.2.9"],
                &["1.2.3-alpha", "1.3.0"],
            ),
            ("^1.0.0-0 || <0.1", &["1.0.0-a", "0.0.1"], &["0.0.1-a"]),
        ];
        for (range, inside, outside) in cases {
            let range = Range::parse(range).unwrap();
            for version in *inside {
                assert!(
                    range.matches(&Version::parse(version).unwrap()),
                    "{version} in {range}"
                );
            }
            for version in *outside {
                assert!(
                    !range.matches(&Version::parse(version).unwrap()),
                    "{version} not in {range}"
                );
            }
        }
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in [
            "", " ", "||", "1.2.3 ||", "foo", ">", "> >1", "1.2.3.4", ">=<1", "1.2.3 -", "!1", "1..2",
            "1.2.3-",
        ] {
            assert!(Range::parse(text).is_err(), "{text:?}");
        }
    }
}
