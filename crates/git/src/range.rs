//! Ranges of versions in Git references.

use std::fmt;

use versions::{Constraint, Version, VersionError};

use crate::Error;

/// Characters of a range that is too long for its error to quote it.
const MAX_PRINTED: usize = 100;

/// A range of versions. A pre-release matches only alternatives that mention one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    text: String,
    constraint: Constraint,
}

impl Range {
    pub fn parse(text: &str) -> Result<Self, Error> {
        match Constraint::parse(text) {
            Ok(constraint) => Ok(Self {
                text: text.to_owned(),
                constraint,
            }),
            Err(error @ VersionError::TooLong { .. }) => {
                let beginning: String = text.chars().take(MAX_PRINTED).collect();
                Err(Error::InvalidRange(format!("{beginning}...: {error}")))
            }
            Err(_) => Err(Error::InvalidRange(text.to_owned())),
        }
    }

    /// Returns the steps that a comparison with one version takes at most.
    pub(crate) fn steps(&self) -> u64 {
        self.constraint.steps()
    }

    #[must_use]
    pub fn matches(&self, version: &Version) -> bool {
        self.constraint.matches(version)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
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
    fn long_ranges_are_refused_with_their_beginning() {
        let error = Range::parse(&">1 ".repeat(300_000)).unwrap_err().to_string();
        assert!(
            error.starts_with("semver parse error: improper constraint: >1 >1"),
            "{error}"
        );
        assert!(
            error.ends_with("it has 900000 bytes, and at most 2048 are allowed"),
            "{error}"
        );
    }

    #[test]
    fn invalid_ranges_are_refused() {
        for text in [
            "", " ", "||", "1.2.3 ||", "foo", ">", "> >1", "1.2.3.4", ">=<1", "1.2.3 -", "!1", "1..2",
            "1.2.3-",
        ] {
            assert!(Range::parse(text).is_err(), "{text:?}");
        }
    }
}
