//! Semantic versions and their ranges, as the Go library Masterminds/semver parses and compares them. Charts, templates and
//! references of Git repositories use its syntax.
//!
//! ```
//! use versions::{Constraint, Version};
//!
//! let range = Constraint::parse(">=1.2 <2 || ~3.1")?;
//! assert!(range.matches(&Version::parse("v1.4.0")?));
//! assert!(!range.matches(&Version::parse("1.4.0-rc.1")?));
//! # Ok::<(), versions::VersionError>(())
//! ```

mod constraint;

use std::{cmp::Ordering, fmt};

pub use constraint::Constraint;

/// Maximum length of a version in bytes; longer ones are invalid.
const MAX_VERSION: usize = 1024;

/// A semantic version. Missing numbers are zero, a leading `v` is ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    pub major: u64,
    pub minor: u64,
    pub patch: u64,
    /// Empty if missing; without its `-`.
    pub pre: String,
    /// Empty if missing; without its `+`.
    pub metadata: String,
    original: String,
}

/// An invalid version or range, in the words of Masterminds/semver.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    #[error("invalid semantic version")]
    Invalid,
    #[error("error parsing version segment: strconv.ParseUint: parsing {0:?}: value out of range")]
    OutOfRange(String),
    #[error("version segment starts with 0")]
    LeadingZero,
    #[error("improper constraint: {0}")]
    ImproperConstraint(String),
    #[error("constraint parser error")]
    Constraint,
    /// The range has more than 2048 bytes, or 128 comparisons.
    #[error("the range is too long: it has {found} {unit}, and at most {limit} are allowed")]
    TooLong {
        unit: &'static str,
        found: usize,
        limit: usize,
    },
}

impl Version {
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        if text.len() > MAX_VERSION {
            return Err(VersionError::Invalid);
        }
        let rest = text.strip_prefix('v').unwrap_or(text);
        let (rest, metadata) = rest
            .split_once('+')
            .map_or((rest, None), |(rest, data)| (rest, Some(data)));
        let (numbers, pre) = rest
            .split_once('-')
            .map_or((rest, None), |(rest, pre)| (rest, Some(pre)));
        let words = |text: &str| {
            text.split('.')
                .all(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'))
        };
        if pre.is_some_and(|pre| !words(pre)) || metadata.is_some_and(|data| !words(data)) {
            return Err(VersionError::Invalid);
        }
        let mut parts = Vec::new();
        for part in numbers.split('.') {
            if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) || parts.len() == 3 {
                return Err(VersionError::Invalid);
            }
            parts.push(part);
        }
        let number = |index: usize| {
            let part: &str = parts.get(index).copied().unwrap_or("0");
            part.parse::<u64>()
                .map_err(|_| VersionError::OutOfRange(part.to_owned()))
        };
        let (major, minor, patch) = (number(0)?, number(1)?, number(2)?);
        let pre = pre.unwrap_or_default();
        let leading =
            |word: &str| word.len() > 1 && word.starts_with('0') && word.bytes().all(|b| b.is_ascii_digit());
        if pre.split('.').any(leading) {
            return Err(VersionError::LeadingZero);
        }
        let metadata = metadata.unwrap_or_default().to_owned();
        Ok(Self {
            major,
            minor,
            patch,
            pre: pre.to_owned(),
            metadata,
            original: text.to_owned(),
        })
    }

    /// Parses the version in the name of a tag: it must have all three numbers, so that neither a date nor an abbreviated
    /// commit is one. A leading `v` and leading zeros are ignored, as Flux does.
    pub fn of_tag(name: &str) -> Result<Self, VersionError> {
        match name.matches('.').count() {
            0 | 1 => Err(VersionError::Invalid),
            _ => Self::parse(name),
        }
    }

    /// Parses a version by the letter of the specification: three numbers without leading zeros, and no leading `v`. Helm
    /// reads the tags of registries so.
    pub fn strict(text: &str) -> Result<Self, VersionError> {
        let numbers = text.split(['-', '+']).next().unwrap_or_default();
        let is_strict = |number: &str| number.len() == 1 || !number.starts_with('0');
        if numbers.split('.').count() != 3 || !numbers.split('.').all(is_strict) {
            return Err(VersionError::Invalid);
        }
        match text.starts_with('v') {
            true => Err(VersionError::Invalid),
            false => Self::parse(text),
        }
    }

    #[must_use]
    pub fn original(&self) -> &str {
        &self.original
    }

    /// Compares two versions by precedence: build metadata is ignored.
    #[must_use]
    pub fn precedence(&self, other: &Self) -> Ordering {
        self.numbers()
            .cmp(&other.numbers())
            .then_with(|| compare_pre(&self.pre, &other.pre))
    }

    /// Returns the part of the version that its precedence needs.
    #[must_use]
    pub fn into_precedence(self) -> Precedence {
        Precedence {
            numbers: self.numbers(),
            pre: self.pre.into_boxed_str(),
        }
    }

    fn numbers(&self) -> [u64; 3] {
        [self.major, self.minor, self.patch]
    }

    /// Compares by precedence, then by build metadata, word by word: numbers compare as numbers.
    #[must_use]
    pub fn compare_with_metadata(&self, other: &Self) -> Ordering {
        self.precedence(other)
            .then_with(|| compare_words(&self.metadata, &other.metadata))
    }
}

/// The precedence of a version, for sorting many: it takes a fraction of a version's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Precedence {
    numbers: [u64; 3],
    pre: Box<str>,
}

impl PartialOrd for Precedence {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Precedence {
    fn cmp(&self, other: &Self) -> Ordering {
        self.numbers
            .cmp(&other.numbers)
            .then_with(|| compare_pre(&self.pre, &other.pre))
    }
}

/// Compares pre-releases: none is above all others; numbers compare as numbers and are below words.
fn compare_pre(left: &str, right: &str) -> Ordering {
    match (left.is_empty(), right.is_empty()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => compare_words(left, right),
    }
}

/// Compares strings of words between dots: numbers compare as numbers and are below other words, and the longer one is above
/// its prefix.
fn compare_words(left: &str, right: &str) -> Ordering {
    let (mut left, mut right) = (left.split('.'), right.split('.'));
    loop {
        let (one, other) = match (left.next(), right.next()) {
            (Some(one), Some(other)) => (one, other),
            (one, other) => return one.is_some().cmp(&other.is_some()),
        };
        let order = match (one.parse::<u64>(), other.parse::<u64>()) {
            (Ok(one), Ok(other)) => one.cmp(&other),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Err(_), Err(_)) => one.cmp(other),
        };
        if order.is_ne() {
            return order;
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.pre.is_empty() {
            write!(f, "-{}", self.pre)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_tags_have_three_numbers() {
        for (name, of_tag, strict) in [
            ("1.2.3", true, true),
            ("1.2.3-rc.1+b", true, true),
            ("v1.2.3", true, false),
            ("v2025.02.03", true, false),
            ("2025.2.3", true, true),
            ("1.2.03", true, false),
            ("20240101", false, false),
            ("1.2", false, false),
            ("7", false, false),
            ("1.2.3.4", false, false),
            ("latest", false, false),
        ] {
            assert_eq!(Version::of_tag(name).is_ok(), of_tag, "{name}");
            assert_eq!(Version::strict(name).is_ok(), strict, "{name}");
        }
    }

    #[test]
    fn versions_of_equal_precedence_are_ordered_by_their_metadata() {
        let version = |text| Version::parse(text).unwrap();
        for (lower, higher) in [
            ("1.0.0+9", "1.0.0+10"),
            ("1.0.0", "1.0.0+a"),
            ("1.0.0+z", "1.0.1+a"),
            ("1.0.0-rc.1+b", "1.0.0+a"),
        ] {
            let order = version(lower).compare_with_metadata(&version(higher));
            assert_eq!(order, Ordering::Less, "{lower} {higher}");
        }
    }
}
