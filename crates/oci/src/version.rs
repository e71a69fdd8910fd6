//! Selection of a version by name or range.

use versions::{Constraint, Version};

use crate::Error;

/// Sorts items by version, the newest first, and drops those without a valid version.
#[must_use]
pub fn sort<T>(items: Vec<T>, version: impl Fn(&T) -> &str) -> Vec<T> {
    let mut known: Vec<(Version, T)> = items
        .into_iter()
        .filter_map(|item| Some((Version::parse(version(&item)).ok()?, item)))
        .collect();
    known.sort_by(|(one, _), (other, _)| other.precedence(one));
    known.into_iter().map(|(_, item)| item).collect()
}

/// Returns the item with exactly that version, or the newest in the range. Without a range, returns the newest that is not a
/// pre-release.
///
/// # Errors
/// Fails when the range is invalid.
pub fn newest<T>(items: Vec<T>, version: impl Fn(&T) -> &str, range: &str) -> Result<Option<T>, Error> {
    let mut sorted = sort(items, &version);
    let exact = sorted.iter().position(|item| version(item) == range);
    let at = match exact {
        Some(at) if !range.is_empty() => Some(at),
        _ => {
            let constraint = parse(range)?;
            let fits = |item: &T| Version::parse(version(item)).is_ok_and(|found| constraint.matches(&found));
            sorted.iter().position(fits)
        }
    };
    Ok(at.map(|at| sorted.swap_remove(at)))
}

fn parse(range: &str) -> Result<Constraint, Error> {
    let text = if range.is_empty() { "*" } else { range };
    Constraint::parse(text).map_err(|error| Error::InvalidRange {
        range: range.to_owned(),
        why: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_that_fits_is_meant() {
        let known = ["0.1.0", "1.2.0", "x", "1.10.0", "v1.3.1", "2.0.0-rc.1", "1.3.0+b"];
        for (range, expected) in [
            ("", Some("1.10.0")),
            ("*", Some("1.10.0")),
            (">0.0.0-0", Some("2.0.0-rc.1")),
            ("1.2.0", Some("1.2.0")),
            ("v1.2.0", Some("1.2.0")),
            ("1.3.1", Some("v1.3.1")),
            ("~1.3", Some("v1.3.1")),
            ("^0.1", Some("0.1.0")),
            ("2.0.0-rc.1", Some("2.0.0-rc.1")),
            ("1.3.0+b", Some("1.3.0+b")),
            (">=3", None),
        ] {
            let found = newest(known.to_vec(), |item| item, range).unwrap();
            assert_eq!(found, expected, "{range}");
        }
        assert!(newest(known.to_vec(), |item| item, "next").is_err());
    }
}
