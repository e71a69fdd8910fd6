//! Selection of a version by name or range.

use versions::{Constraint, Precedence, Version};

use crate::{Entry, Error};

/// Sorts items by version, the newest first, and drops those without a valid version.
#[must_use]
pub fn sort<T>(items: Vec<T>, version: impl Fn(&T) -> &str) -> Vec<T> {
    let mut known: Vec<(Precedence, T)> = items
        .into_iter()
        .filter_map(|item| Some((Version::parse(version(&item)).ok()?.into_precedence(), item)))
        .collect();
    known.sort_by(|(one, _), (other, _)| other.cmp(one));
    known.into_iter().map(|(_, item)| item).collect()
}

/// Returns the item with exactly that version, or the newest in the range. Without a range, returns the newest that is not a
/// pre-release. Only two parsed versions are held at a time.
///
/// # Errors
/// Fails when the range is invalid.
pub fn newest<T>(items: Vec<T>, version: impl Fn(&T) -> &str, range: &str) -> Result<Option<T>, Error> {
    let chosen = match exact(&items, &version, range) {
        Some(at) => Some(at),
        None => {
            let mut search = Search::new(range)?;
            for (at, item) in items.iter().enumerate() {
                search.compare(at, version(item));
            }
            search.found()
        }
    };
    Ok(chosen.and_then(|at| items.into_iter().nth(at)))
}

/// Returns the entry with exactly that version, the first of several, or the newest in the range: of equal versions, the one that was created
/// last, and of these the last one. That is Flux's order; Helm takes the first ([`newest`]).
///
/// # Errors
/// Fails when the range is invalid.
pub fn newest_created(entries: Vec<Entry>, range: &str) -> Result<Option<Entry>, Error> {
    let version = |entry: &Entry| Version::parse(&entry.version).ok();
    let Some(newest) = newest(entries.iter().collect(), |entry| &entry.version, range)? else {
        return Ok(None);
    };
    if newest.version == range {
        return Ok(Some(newest.clone()));
    }
    let precedence = version(newest).map(Version::into_precedence);
    let equal = entries
        .into_iter()
        .filter(|entry| version(entry).map(Version::into_precedence) == precedence);
    Ok(equal.max_by_key(|entry| entry.created))
}

/// Does the same as [`newest`] for callers on an async worker: others run in between, and it can be cancelled there.
pub(crate) async fn newest_yielding<T>(
    items: Vec<T>,
    version: impl Fn(&T) -> &str,
    range: &str,
) -> Result<Option<T>, Error> {
    let chosen = match exact(&items, &version, range) {
        Some(at) => Some(at),
        None => {
            let mut search = Search::new(range)?;
            let mut steps = 0;
            for (at, item) in items.iter().enumerate() {
                steps += search.steps;
                if steps > STEPS {
                    steps = 0;
                    tokio::task::yield_now().await;
                }
                search.compare(at, version(item));
            }
            search.found()
        }
    };
    Ok(chosen.and_then(|at| items.into_iter().nth(at)))
}

/// Characters of a range that messages quote.
const MAX_PRINTED: usize = 200;
/// Steps between two yields: less than a millisecond.
const STEPS: u64 = 20_000;

/// Returns the index of the first item with exactly this valid version.
fn exact<T>(items: &[T], version: &impl Fn(&T) -> &str, wanted: &str) -> Option<usize> {
    Version::parse(wanted).ok()?;
    items.iter().position(|item| version(item) == wanted)
}

/// A search for the newest version in a range.
struct Search {
    range: Constraint,
    /// Steps of the comparison with one version.
    steps: u64,
    newest: Option<(Version, usize)>,
}

impl Search {
    fn new(range: &str) -> Result<Self, Error> {
        let range = parse(range)?;
        Ok(Self {
            steps: 10 + range.steps(),
            range,
            newest: None,
        })
    }

    fn compare(&mut self, at: usize, version: &str) {
        let Ok(version) = Version::parse(version) else {
            return;
        };
        let is_newer = |(newest, _): &(Version, usize)| version.precedence(newest).is_gt();
        if self.newest.as_ref().is_none_or(is_newer) && self.range.matches(&version) {
            self.newest = Some((version, at));
        }
    }

    fn found(self) -> Option<usize> {
        self.newest.map(|(_, at)| at)
    }
}

fn parse(range: &str) -> Result<Constraint, Error> {
    let text = if range.is_empty() { "*" } else { range };
    Constraint::parse(text).map_err(|error| Error::InvalidRange {
        range: short(range),
        why: error.to_string(),
    })
}

/// Returns the beginning of a range for a message.
fn short(range: &str) -> String {
    match range.char_indices().nth(MAX_PRINTED) {
        Some((end, _)) => format!("{}...", range.get(..end).unwrap_or_default()),
        None => range.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, task::Poll};

    use super::*;

    #[tokio::test]
    async fn search_among_many_yields_and_refuses_long_ranges() {
        let tags: Vec<String> = (0..20_000).map(|patch| format!("1.0.{patch}")).collect();
        let range = "!=1.0.19999 ".repeat(100);
        let found = newest(tags.clone(), |tag| tag, &range).unwrap();
        assert_eq!(found.as_deref(), Some("1.0.19998"));
        let mut search = Box::pin(newest_yielding(tags.clone(), |tag| tag, &range));
        let mut polls = 1;
        while poll_fn(|context| Poll::Ready(search.as_mut().poll(context).is_pending())).await {
            polls += 1;
        }
        let least = 20_000 * 100 / STEPS;
        assert!(polls >= least, "{polls}");
        for range in [">1 ".repeat(300_000), ">1 ".repeat(600)] {
            let error = newest(tags.clone(), |tag| tag, &range).unwrap_err().to_string();
            assert!(
                error.contains("the range is too long") && error.len() < 500,
                "{error}"
            );
        }
    }

    #[test]
    fn of_equal_versions_the_one_created_last_is_in_a_range() {
        let entry = |version: &str, created: &str, digest: &str| Entry {
            version: version.to_owned(),
            digest: digest.to_owned(),
            created: created.parse().ok(),
            ..Entry::default()
        };
        let (early, late) = ("2024-01-01T00:00:00.5+02:00", "2023-12-31T23:00:00Z");
        let entries = vec![
            entry("1.1.0", late, "a"),
            entry("1.1.0", early, "b"),
            entry("1.0.0+x", early, "c"),
            entry("1.0.0", late, "d"),
            entry("1.0.0+y", "none", "e"),
            entry("0.9.0", "", "f"),
            entry("v0.9.0", "", "g"),
            entry("0.9.0-rc.1", late, "h"),
        ];
        for (range, expected) in [
            ("", "a"),
            ("1.x", "a"),
            ("~1.0", "d"),
            ("<1", "g"),
            ("1.0.0+x", "c"),
            ("1.0.0+y", "e"),
            ("1.0.0", "d"),
            ("0.9.0", "f"),
            ("v1.0.0", "d"),
        ] {
            let found = newest_created(entries.clone(), range).unwrap().unwrap();
            assert_eq!(found.digest, expected, "{range}");
        }
        let mut reversed = entries;
        reversed.reverse();
        let found = newest_created(reversed.clone(), "1.x").unwrap().unwrap();
        assert_eq!(found.digest, "a");
        let found = newest_created(reversed.clone(), "1.1.0").unwrap().unwrap();
        assert_eq!(found.digest, "b", "an exact version is the first one");
        assert_eq!(newest_created(reversed, ">2").unwrap(), None);
    }

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
