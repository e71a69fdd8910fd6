//! Ranges of versions, for references of Git.

use std::fmt;

use versions::{Constraint, Version};

use crate::Error;

/// A range of versions. A version with a pre-release matches only alternatives that mention one themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    text: String,
    constraint: Constraint,
}

impl Range {
    /// Reads a range.
    ///
    /// # Errors
    /// Fails when the range is invalid, with [`Error::InvalidRange`].
    pub fn parse(text: &str) -> Result<Self, Error> {
        match Constraint::parse(text) {
            Ok(constraint) => Ok(Self {
                text: text.to_owned(),
                constraint,
            }),
            Err(_) => Err(Error::InvalidRange(text.to_owned())),
        }
    }

    /// Returns true if `version` is in the range.
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
    fn invalid_ranges_are_refused() {
        for text in [
            "", " ", "||", "1.2.3 ||", "foo", ">", "> >1", "1.2.3.4", ">=<1", "1.2.3 -", "!1", "1..2",
            "1.2.3-",
        ] {
            assert!(Range::parse(text).is_err(), "{text:?}");
        }
    }
}
