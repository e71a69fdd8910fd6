//! Resolves the merge keys of nodes, before anything else.

use std::collections::{HashMap, HashSet};

use crate::{
    Error, Position, Problem,
    node::{Content, Entry, Mapping, Node, Text},
};

/// Replaces all merge keys by their entries, after the map's own. A map's own key wins, then an earlier map of a list.
pub(super) fn resolve(node: &mut Node) -> Result<(), Error> {
    match &mut node.content {
        Content::Scalar(_) => Ok(()),
        Content::Seq(items) => items.iter_mut().try_for_each(resolve),
        Content::Map(mapping) => {
            mapping.values_mut().try_for_each(resolve)?;
            match take_merge(mapping.entries_mut())? {
                Some(merge) => add(mapping, merge),
                None => Ok(()),
            }
        }
    }
}

fn take_merge(entries: &mut Vec<Entry>) -> Result<Option<Entry>, Error> {
    let Some(index) = entries.iter().position(|entry| entry.key.is_merge()) else {
        return Ok(None);
    };
    let merge = entries.remove(index);
    match entries.iter().find(|entry| entry.key.is_merge()) {
        None => Ok(Some(merge)),
        Some(second) => {
            let problem = Problem::DuplicateKey {
                key: "<<".to_owned(),
                first: Some(merge.position),
            };
            Err(Error::new(second.position, problem))
        }
    }
}

fn add(mapping: &mut Mapping, merge: Entry) -> Result<(), Error> {
    let sources = sources(merge.value, merge.position)?;
    let own: HashSet<Text> = mapping.keys().map(Text::from).collect();
    let mut added: HashMap<Text, usize> = HashMap::new();
    let entries = mapping.entries_mut();
    for source in sources {
        // The first entry of a repeated key counts.
        let mut seen = HashSet::new();
        for entry in source.into_entries() {
            let key = &entry.key.text;
            if own.contains(key) || !seen.insert(key.clone()) {
                continue;
            }
            match added.get(key).and_then(|index| entries.get_mut(*index)) {
                Some(slot) => *slot = entry,
                None => {
                    added.insert(key.clone(), entries.len());
                    entries.push(entry);
                }
            }
        }
    }
    Ok(())
}

/// Returns the maps to merge; each one overrides those before it.
fn sources(value: Node, at: Position) -> Result<Vec<Mapping>, Error> {
    let refused = || Error::new(at, Problem::Merge);
    match value.content {
        Content::Map(mapping) => Ok(vec![mapping]),
        Content::Seq(items) => items
            .into_iter()
            .rev()
            .map(|item| match item.content {
                Content::Map(mapping) => Ok(mapping),
                _ => Err(refused()),
            })
            .collect(),
        Content::Scalar(_) => Err(refused()),
    }
}
