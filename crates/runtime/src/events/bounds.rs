//! Bounds of events: the annotations that one takes from its object, and the memory that it counts for while it waits. Pure.

use std::collections::BTreeMap;

use api::{Event, annotation};

/// Maximum size of the annotations of an object in its events, names and values together, in bytes.
const ANNOTATIONS: usize = 16 << 10;
/// Maximum cost of all events that wait for one destination, in bytes: 512 events of usual size.
pub(super) const CAPACITY: u64 = 8 << 20;
/// Minimum cost of an event, in bytes.
const LEAST: u64 = 16 << 10;
/// Memory of an event besides its message and metadata, in bytes.
const BASE: usize = 2 << 10;
/// Memory of an entry of the metadata besides its strings, in bytes.
const ENTRY: usize = 100;

/// Returns the annotations of an object for its events, in the order of their names. One that would exceed the maximum size of all is left
/// out; no value is cut.
pub(super) fn annotations(
    all: Option<&BTreeMap<String, String>>,
) -> impl Iterator<Item = (&String, &String)> {
    let named = all
        .into_iter()
        .flatten()
        .filter(|(key, _)| key.starts_with(annotation::EVENT_PREFIX));
    let mut left = ANNOTATIONS;
    named.filter(move |(key, value)| {
        let rest = left.checked_sub(key.len() + value.len());
        left = rest.unwrap_or(left);
        rest.is_some()
    })
}

/// Returns the bytes that an event counts for while it waits.
pub(super) fn cost(event: &Event) -> u64 {
    let metadata = event.metadata.iter();
    let metadata: usize = metadata.map(|(key, value)| key.len() + value.len() + ENTRY).sum();
    let memory = BASE + event.message.len() + metadata;
    (memory as u64).max(LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(all: &[(&str, usize)]) -> Vec<String> {
        let name = |name: &str| format!("{}{name}", annotation::EVENT_PREFIX);
        let all: BTreeMap<_, _> = all
            .iter()
            .map(|(each, size)| (name(each), "x".repeat(*size)))
            .chain([("other/name".to_owned(), "x".to_owned())])
            .collect();
        let names = annotations(Some(&all)).map(|(key, value)| {
            assert_eq!(all.get(key), Some(value), "no value is cut");
            key.trim_start_matches(annotation::EVENT_PREFIX).to_owned()
        });
        names.collect()
    }

    #[test]
    fn annotations_beyond_their_size_are_left_out_by_name() {
        assert_eq!(annotations(None).count(), 0);
        assert_eq!(taken(&[("a", 8000), ("b", 10), ("c", 8000)]), ["a", "b", "c"]);
        assert_eq!(taken(&[("a", 8000), ("b", 9000), ("c", 8000)]), ["a", "c"]);
        assert_eq!(taken(&[("a", 250_000), ("b", 10)]), ["b"]);
        let edge = ANNOTATIONS - annotation::EVENT_PREFIX.len() - 1;
        assert_eq!(taken(&[("a", edge)]), ["a"]);
        assert!(taken(&[("a", edge + 1)]).is_empty());
    }

    #[test]
    fn cost_of_an_event_grows_with_its_strings_and_has_a_minimum() {
        let mut event = Event::default();
        assert_eq!(cost(&event), LEAST);
        assert_eq!(CAPACITY / cost(&event), 512);
        event.message = "m".repeat(100_000);
        event.metadata.insert("k".repeat(10_000), "v".repeat(50_000));
        assert!((160_000..170_000).contains(&cost(&event)), "{}", cost(&event));
    }
}
