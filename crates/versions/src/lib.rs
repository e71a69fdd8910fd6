//! Semantic versions and their ranges, as the Masterminds library of Go has them: charts, templates and references of Git
//! speak its language.

mod constraint;

use std::{cmp::Ordering, fmt};

pub use constraint::Constraint;

/// A version: numbers that are left out are zero, a `v` in front does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The first number.
    pub major: u64,
    /// The second number.
    pub minor: u64,
    /// The third number.
    pub patch: u64,
    /// What stands behind `-`.
    pub pre: String,
    /// What stands behind `+`.
    pub metadata: String,
    original: String,
}

const INVALID: &str = "invalid semantic version";

impl Version {
    /// Reads a version.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Result<Self, String> {
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
            return Err(INVALID.to_owned());
        }
        let mut parts = Vec::new();
        for part in numbers.split('.') {
            if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) || parts.len() == 3 {
                return Err(INVALID.to_owned());
            }
            parts.push(part);
        }
        let number = |index: usize| {
            let part: &str = parts.get(index).copied().unwrap_or("0");
            part.parse::<u64>().map_err(|_| {
                format!(
                    "error parsing version segment: strconv.ParseUint: parsing {part:?}: value out of range"
                )
            })
        };
        let (major, minor, patch) = (number(0)?, number(1)?, number(2)?);
        let pre = pre.unwrap_or_default();
        let leading =
            |word: &str| word.len() > 1 && word.starts_with('0') && word.bytes().all(|b| b.is_ascii_digit());
        if pre.split('.').any(leading) {
            return Err("version segment starts with 0".to_owned());
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

    /// The text that it was read from.
    #[must_use]
    pub fn original(&self) -> &str {
        &self.original
    }

    /// The order of two versions; metadata does not count.
    #[must_use]
    pub fn precedence(&self, other: &Self) -> Ordering {
        let numbers = |version: &Self| (version.major, version.minor, version.patch);
        numbers(self)
            .cmp(&numbers(other))
            .then_with(|| compare_pre(&self.pre, &other.pre))
    }
}

/// No pre-release is above all; numbers compare as numbers and are below words.
fn compare_pre(left: &str, right: &str) -> Ordering {
    match (left.is_empty(), right.is_empty()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let words = |text: &str| {
        text.split('.')
            .map(|word| (word.parse::<u64>().ok(), word.to_owned()))
            .collect::<Vec<_>>()
    };
    let (left, right) = (words(left), words(right));
    for ((one, left), (other, right)) in left.iter().zip(&right) {
        let order = match (one, other) {
            (Some(one), Some(other)) => one.cmp(other),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => left.cmp(right),
        };
        if order.is_ne() {
            return order;
        }
    }
    left.len().cmp(&right.len())
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
