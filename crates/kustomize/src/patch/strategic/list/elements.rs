//! Lists of elements without a key, with repeated keys, or with several keys, as the original merges them.

use std::collections::HashSet;

use yaml::{Node, node::Scalar};

use super::super::{ContentKind, Merger, Remainder, Sources, text, wrong_kind};
use crate::{Error, resource, schema::Shape};

/// Returns true for nulls and empty maps, which are dropped from a merged list.
pub(super) fn is_gone(node: &Node) -> bool {
    resource::is_empty(node) && node.as_seq().is_none()
}

/// The elements of both lists, by their indices in `nodes`.
pub(super) struct Elements<'e> {
    pub(super) nodes: Vec<Node>,
    pub(super) object: Vec<usize>,
    pub(super) patch: Option<Vec<usize>>,
    /// True if the patch's list is the object's.
    pub(super) same: bool,
    pub(super) step: &'e dyn Fn(u64) -> Result<(), Error>,
}

/// The values of the keys of an element; empty for missing keys.
type Values = Vec<String>;

impl Elements<'_> {
    /// Returns the indices of the elements of the merged list.
    pub(super) fn merge<'m>(
        &mut self,
        merger: &Merger<'m>,
        keys: &[&str],
        shape: Option<Shape<'m>>,
    ) -> Result<Vec<usize>, Error> {
        let mut tuples = self.tuples(keys);
        let keys = if keys.is_empty() { &[""] } else { keys };
        if keys.len() > 1 {
            self.complete(&mut tuples)?;
        }
        if tuples.is_empty() {
            return Ok(self.object.clone());
        }
        let used: Vec<bool> = (0..keys.len())
            .map(|at| {
                tuples
                    .iter()
                    .any(|tuple| tuple.get(at).is_some_and(|value| !value.is_empty()))
            })
            .collect();
        let none = !used.contains(&true);
        let keys: Vec<&str> = pick(keys, &used, none);
        let mut items = Vec::new();
        for tuple in &tuples {
            let values: Values = pick(tuple, &used, none);
            match self.walk(merger, &keys, &values, shape)? {
                None => self.put_object(None, &keys, &values)?,
                Some(index) => {
                    self.set_keys(index, &keys, &values)?;
                    self.put(&mut items, Some(index), &keys, &values)?;
                }
            }
        }
        for index in self.object.clone() {
            self.append(&mut items, index, &keys)?;
        }
        Ok(items)
    }

    /// Returns the values of all elements, the patch's first, each once.
    fn tuples(&self, keys: &[&str]) -> Vec<Values> {
        let mut seen = HashSet::new();
        let mut tuples = Vec::new();
        for index in self.patch.iter().flatten().chain(&self.object) {
            let Some(node) = self.nodes.get(*index) else {
                continue;
            };
            let value = |key: &&str| {
                node.get(key)
                    .and_then(Node::as_text)
                    .unwrap_or_default()
                    .to_owned()
            };
            let values: Values = if keys.is_empty() {
                vec![text(node).to_owned()]
            } else {
                keys.iter().map(value).collect()
            };
            if seen.insert(values.clone()) {
                tuples.push(values);
            }
        }
        tuples
    }

    /// quirk: values that differ only in missing ones are completed from each other, after which only one of the elements is
    /// found: a patch that lacks the protocol of a port, or is alone in having it, is lost.
    fn complete(&self, tuples: &mut [Values]) -> Result<(), Error> {
        if !tuples.iter().flatten().any(String::is_empty) {
            return Ok(());
        }
        for first in 0..tuples.len() {
            (self.step)(tuples.len() as u64)?;
            // quirk: the earlier state is compared, though it may be completed meanwhile.
            let Some(before) = tuples.get(first).cloned() else {
                continue;
            };
            for second in 0..tuples.len() {
                let Some(full) = tuples.get(second).and_then(|other| completed(&before, other)) else {
                    continue;
                };
                for at in [first, second] {
                    if let Some(tuple) = tuples.get_mut(at) {
                        tuple.clone_from(&full);
                    }
                }
            }
        }
        Ok(())
    }

    /// Merges the elements that have these values; returns the index of the remaining one.
    fn walk<'m>(
        &mut self,
        merger: &Merger<'m>,
        keys: &[&str],
        values: &[String],
        shape: Option<Shape<'m>>,
    ) -> Result<Option<usize>, Error> {
        let of_object = self.find(&self.object, keys, values)?;
        let of_patch = match &self.patch {
            Some(patch) => self.find(patch, keys, values)?,
            None => None,
        };
        let mut object = of_object.and_then(|index| self.take(index));
        let mut patch = of_patch.and_then(|index| self.take(index));
        let sources = match &mut object {
            Some(node) if self.same => Sources::Same(node),
            object => Sources::Two(object.as_mut(), patch.as_mut()),
        };
        let remainder = merger.walk(sources, shape)?;
        self.give_back(of_object, object);
        self.give_back(of_patch, patch);
        let index = match remainder {
            Remainder::Nothing => None,
            Remainder::Object => of_object,
            Remainder::Patch => of_patch,
        };
        Ok(index.filter(|index| self.nodes.get(*index).is_some_and(|node| !is_gone(node))))
    }

    fn take(&mut self, index: usize) -> Option<Node> {
        let node = self.nodes.get_mut(index)?;
        Some(std::mem::replace(node, Node::null()))
    }

    fn give_back(&mut self, index: Option<usize>, node: Option<Node>) {
        if let (Some(index), Some(node)) = (index, node)
            && let Some(slot) = self.nodes.get_mut(index)
        {
            *slot = node;
        }
    }

    /// Returns the first element that has these values; missing values match, unless all are missing.
    fn find(&self, list: &[usize], keys: &[&str], values: &[String]) -> Result<Option<usize>, Error> {
        (self.step)(list.len() as u64)?;
        let none = values.iter().all(String::is_empty);
        let wanted = || {
            keys.iter()
                .zip(values)
                .filter(|(_, value)| none || !value.is_empty())
        };
        let is_scalar = wanted().next().is_some_and(|(key, _)| key.is_empty());
        let fits = |node: &Node| match node.as_map() {
            _ if is_scalar => wanted().next().is_some_and(|(_, value)| text(node) == value),
            None => false,
            Some(map) => wanted().all(|(key, value)| map.get(key).is_some_and(|own| text(own) == value)),
        };
        let found = list
            .iter()
            .find(|index| self.nodes.get(**index).is_some_and(fits));
        Ok(found.copied())
    }

    /// Sets the keys of an element to the values that it was found by.
    fn set_keys(&mut self, index: usize, keys: &[&str], values: &[String]) -> Result<(), Error> {
        let Some(node) = self.nodes.get_mut(index) else {
            return Ok(());
        };
        for (key, value) in keys.iter().zip(values) {
            if value.is_empty() || node.get(key).is_some() {
                continue;
            }
            if !key.is_empty() {
                node.set(key, Node::string(value.as_str()));
            } else if let Some(Scalar { tag, .. }) = node.as_scalar_mut() {
                *tag = None;
            } else {
                return Err(wrong_kind(ContentKind::Scalar, node));
            }
        }
        Ok(())
    }

    fn put_object(&mut self, element: Option<usize>, keys: &[&str], values: &[String]) -> Result<(), Error> {
        let mut object = std::mem::take(&mut self.object);
        self.put(&mut object, element, keys, values)?;
        self.object = object;
        Ok(())
    }

    /// Replaces the elements of a list that have these values by an element, or appends it; without an element, removes
    /// them.
    ///
    /// quirk: an empty value fits every element that has the key, and without values the list loses all of its elements.
    fn put(
        &self,
        list: &mut Vec<usize>,
        element: Option<usize>,
        keys: &[&str],
        values: &[String],
    ) -> Result<(), Error> {
        (self.step)(list.len() as u64)?;
        let is_filled = |text: Option<&str>| text.is_some_and(|text| !text.is_empty());
        let wants_maps = is_filled(keys.first().copied()) && is_filled(values.first().map(String::as_str));
        let mut found = false;
        let mut result = Vec::with_capacity(list.len() + 1);
        for index in list.iter().copied() {
            let Some(node) = self.nodes.get(index).filter(|node| !is_gone(node)) else {
                continue;
            };
            if wants_maps && node.as_map().is_none() {
                result.push(index);
            } else if has_values(node, keys, values)? {
                found = true;
                result.extend(element);
            } else if !values.is_empty() {
                result.push(index);
            }
        }
        *list = result;
        let element = element.filter(|index| self.nodes.get(*index).is_some_and(|node| !node.is_null()));
        if !found {
            list.extend(element);
        }
        Ok(())
    }

    /// Adds an element of the object to the merged list, or replaces the one that has its values.
    fn append(&self, items: &mut Vec<usize>, index: usize, keys: &[&str]) -> Result<(), Error> {
        let Some(node) = self.nodes.get(index) else {
            return Ok(());
        };
        if keys.first().is_some_and(|key| key.is_empty()) {
            return self.put(items, Some(index), &[""], &[text(node).to_owned()]);
        }
        let mut values = Values::new();
        for key in keys {
            if node.as_map().is_none() && !node.is_null() {
                return Err(wrong_kind(ContentKind::Map, node));
            }
            match node.get(key) {
                Some(value) => values.push(text(value).to_owned()),
                // quirk: it is added at once, and the values of the other keys move up.
                None => items.push(index),
            }
        }
        if keys.len() > 1 {
            self.put(items, None, keys, &values)?;
        }
        self.put(items, Some(index), keys, &values)
    }
}

/// Returns the marked ones, or all.
fn pick<T: Clone>(all: &[T], marks: &[bool], everything: bool) -> Vec<T> {
    let marked = all.iter().zip(marks).filter(|(_, mark)| everything || **mark);
    marked.map(|(one, _)| one.clone()).collect()
}

/// Completes two values that agree in one and otherwise differ only in missing ones.
fn completed(one: &[String], other: &[String]) -> Option<Values> {
    let mut agree = false;
    let mut full = Values::with_capacity(one.len());
    for (first, second) in one.iter().zip(other) {
        if first == second {
            agree = true;
        } else if !first.is_empty() && !second.is_empty() {
            return None;
        }
        full.push(if first.is_empty() { second } else { first }.clone());
    }
    agree.then_some(full)
}

/// Returns true if an element has these values, in the sense of [`Elements::put`].
fn has_values(node: &Node, keys: &[&str], values: &[String]) -> Result<bool, Error> {
    let mut has = false;
    for (at, key) in keys.iter().enumerate() {
        if let Some(value) = values.get(at) {
            has = if key.is_empty() {
                if node.as_scalar().is_none() {
                    return Err(wrong_kind(ContentKind::Scalar, node));
                }
                text(node) == value
            } else {
                let map = node.as_map().ok_or_else(|| wrong_kind(ContentKind::Map, node))?;
                map.get(key)
                    .is_some_and(|own| value.is_empty() || text(own) == value)
            };
        }
        if !has {
            return Ok(false);
        }
    }
    Ok(true)
}
