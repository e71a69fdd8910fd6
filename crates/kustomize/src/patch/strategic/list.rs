//! Lists whose elements are merged: by the values of keys, or as sets of scalars.
//!
//! [`Merger::by_key`] is what a merge means, for lists that are as they should be. [`Elements`] is what the original does
//! in all other cases (elements without a key, keys that come twice, several keys), quirk by quirk.

use std::collections::{HashMap, HashSet};

use yaml::{Node, node::Scalar};

use super::{DIRECTIVE, Directive, Kept, Kind, Merger, Sources, parse_directive, text, wrong_kind};
use crate::{Error, resource, schema::Shape};

/// The list of the patch beside that of the object.
pub(super) enum Other<'n> {
    Missing,
    Same,
    List(&'n mut Vec<Node>),
}

impl<'m> Merger<'m> {
    pub(super) fn list(
        &self,
        sources: Sources<'_>,
        keys: &[&str],
        shape: Option<Shape<'m>>,
    ) -> Result<Kept, Error> {
        let (object, patch) = match sources {
            Sources::Same(node) => {
                let Some(list) = node.as_seq_mut() else {
                    return Ok(Kept::Nothing);
                };
                if directive(list)? == Directive::Delete {
                    return Ok(Kept::Nothing);
                }
                self.elements(list, Other::Same, keys, shape)?;
                return Ok(Kept::Object);
            }
            Sources::Two(object, patch) => (object.and_then(Node::as_seq_mut), patch),
        };
        match (object, patch) {
            (None, None) => Ok(Kept::Nothing),
            (Some(list), None) => {
                self.elements(list, Other::Missing, keys, shape)?;
                Ok(Kept::Object)
            }
            (object, Some(patch)) => {
                let Some(patch) = patch.as_seq_mut() else {
                    return Ok(Kept::Nothing);
                };
                // Without a list of the object, a directive of the list means nothing.
                let directive = match &object {
                    Some(_) => directive(patch)?,
                    None => Directive::Replace,
                };
                match (directive, object) {
                    (Directive::Delete, _) => Ok(Kept::Nothing),
                    (Directive::Merge, Some(object)) => {
                        self.elements(object, Other::List(patch), keys, shape)?;
                        Ok(Kept::Object)
                    }
                    (Directive::Replace | Directive::Merge, _) => {
                        self.elements(patch, Other::Same, keys, shape)?;
                        Ok(Kept::Patch)
                    }
                }
            }
        }
    }

    pub(super) fn elements(
        &self,
        list: &mut Vec<Node>,
        mut other: Other<'_>,
        keys: &[&str],
        shape: Option<Shape<'m>>,
    ) -> Result<(), Error> {
        if let [key] = keys
            && let Some(own) = key_values(list, key)
        {
            match &mut other {
                Other::List(patch) => {
                    if let Some(theirs) = key_values(patch, key) {
                        return self.by_key(list, &own, patch, &theirs, key, shape);
                    }
                }
                Other::Missing | Other::Same => {
                    let same = matches!(other, Other::Same);
                    return self.alone(list, same, &own, key, shape);
                }
            }
        }
        self.slowly(list, other, keys, shape)
    }

    /// Walks the elements of one list.
    fn alone(
        &self,
        list: &mut Vec<Node>,
        same: bool,
        values: &[Box<str>],
        key: &str,
        shape: Option<Shape<'m>>,
    ) -> Result<(), Error> {
        let mut kept = Vec::with_capacity(list.len());
        for (mut node, value) in std::mem::take(list).into_iter().zip(values) {
            let sources = if same {
                Sources::Same(&mut node)
            } else {
                Sources::Two(Some(&mut node), None)
            };
            if self.walk(sources, shape)? != Kept::Nothing && keep(&mut node, key, value) {
                kept.push(node);
            }
        }
        *list = kept;
        Ok(())
    }

    /// The patch's elements in its order, merged with the object's of the same key, then the other ones of the object.
    ///
    /// quirk: an element that says that it replaces the object's only brings it to the front.
    fn by_key(
        &self,
        list: &mut Vec<Node>,
        own: &[Box<str>],
        patch: &mut [Node],
        theirs: &[Box<str>],
        key: &str,
        shape: Option<Shape<'m>>,
    ) -> Result<(), Error> {
        let places: HashMap<&str, usize> = own.iter().enumerate().map(|(at, value)| (&**value, at)).collect();
        let mut rest: Vec<_> = std::mem::take(list).into_iter().map(Some).collect();
        for (element, value) in patch.iter_mut().zip(theirs) {
            let at = places.get(&**value);
            let mut node = at.and_then(|at| rest.get_mut(*at)).and_then(Option::take);
            let kept = self.walk(Sources::Two(node.as_mut(), Some(element)), shape)?;
            let node = match kept {
                Kept::Nothing => continue,
                Kept::Object => node,
                Kept::Patch => node.or_else(|| Some(element.clone())),
            };
            list.extend(node.and_then(|mut node| keep(&mut node, key, value).then_some(node)));
        }
        for (node, value) in rest.into_iter().zip(own) {
            let Some(mut node) = node else { continue };
            let kept = self.walk(Sources::Two(Some(&mut node), None), shape)?;
            if kept != Kept::Nothing && keep(&mut node, key, value) {
                list.push(node);
            }
        }
        Ok(())
    }

    pub(super) fn slowly(
        &self,
        list: &mut Vec<Node>,
        other: Other<'_>,
        keys: &[&str],
        shape: Option<Shape<'m>>,
    ) -> Result<(), Error> {
        let mut elements = Elements {
            nodes: std::mem::take(list),
            object: Vec::new(),
            patch: None,
            same: matches!(other, Other::Same),
            step: self.step,
        };
        let own = elements.nodes.len();
        elements.object = (0..own).collect();
        let patch = match other {
            Other::List(patch) => {
                elements.nodes.append(patch);
                elements.patch = Some((own..elements.nodes.len()).collect());
                Some(patch)
            }
            Other::Missing | Other::Same => None,
        };
        let result = elements.merge(self, keys, shape)?;
        *list = result
            .iter()
            .filter_map(|place| elements.nodes.get(*place).cloned())
            .collect();
        if let Some(patch) = patch {
            *patch = elements.nodes.split_off(own);
        }
        Ok(())
    }
}

/// Whether an element stays in its list; it has its key then.
fn keep(node: &mut Node, key: &str, value: &str) -> bool {
    if is_gone(node) {
        return false;
    }
    if node.get(key).is_none() {
        node.set(key, Node::string(value));
    }
    true
}

/// Nulls and empty maps don't stay in a list that is merged.
fn is_gone(node: &Node) -> bool {
    resource::is_empty(node) && node.as_seq().is_none()
}

/// The values of a key, if each element is a map that has one of its own.
fn key_values(list: &[Node], key: &str) -> Option<Vec<Box<str>>> {
    let value = |node: &Node| {
        let text = node.get(key)?.as_text()?;
        (!text.is_empty()).then(|| Box::from(text))
    };
    let values: Vec<Box<str>> = list.iter().map(value).collect::<Option<_>>()?;
    let distinct: HashSet<_> = values.iter().collect();
    (distinct.len() == values.len()).then_some(values)
}

/// Takes the directive of a list out of it: that of an element which has nothing else.
fn directive(list: &mut Vec<Node>) -> Result<Directive, Error> {
    let maps = list.iter().filter_map(Node::as_map);
    let with_directive = maps
        .filter_map(|map| Some((map.len(), map.get(DIRECTIVE)?)))
        .next();
    let Some((1, value)) = with_directive else {
        return Ok(Directive::Merge);
    };
    let value = text(value).to_owned();
    let directive = parse_directive(&value)?;
    // quirk: elements that hold more than this very directive go with it.
    list.retain(|node| !is_gone(node) && node.get(DIRECTIVE).is_none_or(|own| text(own) != value));
    Ok(directive)
}

/// The elements of both lists, by their places in `nodes`.
struct Elements<'e> {
    nodes: Vec<Node>,
    object: Vec<usize>,
    patch: Option<Vec<usize>>,
    /// Whether the patch's list is the object's.
    same: bool,
    step: &'e dyn Fn(u64) -> Result<(), Error>,
}

/// The values of the keys of an element; an empty text where it has none.
type Values = Vec<String>;

impl Elements<'_> {
    /// The places of the elements of the merged list.
    fn merge<'m>(
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
                Some(place) => {
                    self.set_keys(place, &keys, &values)?;
                    self.put(&mut items, Some(place), &keys, &values)?;
                }
            }
        }
        for place in self.object.clone() {
            self.append(&mut items, place, &keys)?;
        }
        Ok(items)
    }

    /// The values of all elements, those of the patch first, each once.
    fn tuples(&self, keys: &[&str]) -> Vec<Values> {
        let mut seen = HashSet::new();
        let mut tuples = Vec::new();
        for place in self.patch.iter().flatten().chain(&self.object) {
            let Some(node) = self.nodes.get(*place) else {
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

    /// quirk: of values that differ only in what one of them lacks, both become the full ones, by which then only one of
    /// the elements is found: a patch that lacks the protocol of a port, or is alone in having it, is lost.
    fn complete(&self, tuples: &mut [Values]) -> Result<(), Error> {
        if !tuples.iter().flatten().any(String::is_empty) {
            return Ok(());
        }
        for first in 0..tuples.len() {
            (self.step)(tuples.len() as u64)?;
            for second in 0..tuples.len() {
                let full = match (tuples.get(first), tuples.get(second)) {
                    (Some(one), Some(other)) => completed(one, other),
                    _ => None,
                };
                let Some(full) = full else { continue };
                for at in [first, second] {
                    if let Some(tuple) = tuples.get_mut(at) {
                        tuple.clone_from(&full);
                    }
                }
            }
        }
        Ok(())
    }

    /// Merges the elements that have these values; the place of what is left.
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
        let mut object = of_object.and_then(|place| self.take(place));
        let mut patch = of_patch.and_then(|place| self.take(place));
        let sources = match &mut object {
            Some(node) if self.same => Sources::Same(node),
            object => Sources::Two(object.as_mut(), patch.as_mut()),
        };
        let kept = merger.walk(sources, shape)?;
        self.give_back(of_object, object);
        self.give_back(of_patch, patch);
        let place = match kept {
            Kept::Nothing => None,
            Kept::Object => of_object,
            Kept::Patch => of_patch,
        };
        Ok(place.filter(|place| self.nodes.get(*place).is_some_and(|node| !is_gone(node))))
    }

    fn take(&mut self, place: usize) -> Option<Node> {
        let node = self.nodes.get_mut(place)?;
        Some(std::mem::replace(node, Node::null()))
    }

    fn give_back(&mut self, place: Option<usize>, node: Option<Node>) {
        if let (Some(place), Some(node)) = (place, node)
            && let Some(slot) = self.nodes.get_mut(place)
        {
            *slot = node;
        }
    }

    /// The first element that has these values; what they lack is not looked at, unless they lack everything.
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
            .find(|place| self.nodes.get(**place).is_some_and(fits));
        Ok(found.copied())
    }

    /// Gives an element the keys that it was found by.
    fn set_keys(&mut self, place: usize, keys: &[&str], values: &[String]) -> Result<(), Error> {
        let Some(node) = self.nodes.get_mut(place) else {
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
                return Err(wrong_kind(Kind::Scalar, node));
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

    /// Puts an element in the place of those in a list that have these values, or at its end; without an element, takes
    /// them out.
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
        for place in list.iter().copied() {
            let Some(node) = self.nodes.get(place).filter(|node| !is_gone(node)) else {
                continue;
            };
            if wants_maps && node.as_map().is_none() {
                result.push(place);
            } else if has_values(node, keys, values)? {
                found = true;
                result.extend(element);
            } else if !values.is_empty() {
                result.push(place);
            }
        }
        *list = result;
        let element = element.filter(|place| self.nodes.get(*place).is_some_and(|node| !node.is_null()));
        if !found {
            list.extend(element);
        }
        Ok(())
    }

    /// Adds an element of the object to the merged list, in the place of the one that has its values.
    fn append(&self, items: &mut Vec<usize>, place: usize, keys: &[&str]) -> Result<(), Error> {
        let Some(node) = self.nodes.get(place) else {
            return Ok(());
        };
        if keys.first().is_some_and(|key| key.is_empty()) {
            return self.put(items, Some(place), &[""], &[text(node).to_owned()]);
        }
        let mut values = Values::new();
        for key in keys {
            if node.as_map().is_none() && !node.is_null() {
                return Err(wrong_kind(Kind::Map, node));
            }
            match node.get(key) {
                Some(value) => values.push(text(value).to_owned()),
                // quirk: it is added at once, and the values of the other keys move up.
                None => items.push(place),
            }
        }
        if keys.len() > 1 {
            self.put(items, None, keys, &values)?;
        }
        self.put(items, Some(place), keys, &values)
    }
}

/// Those that are marked, or all.
fn pick<T: Clone>(all: &[T], marks: &[bool], everything: bool) -> Vec<T> {
    let marked = all.iter().zip(marks).filter(|(_, mark)| everything || **mark);
    marked.map(|(one, _)| one.clone()).collect()
}

/// The full values of two that agree in one value and otherwise differ only in what one of them lacks.
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

/// Whether an element has values, in the sense of [`Elements::put`].
fn has_values(node: &Node, keys: &[&str], values: &[String]) -> Result<bool, Error> {
    let mut has = false;
    for (at, key) in keys.iter().enumerate() {
        if let Some(value) = values.get(at) {
            has = if key.is_empty() {
                if node.as_scalar().is_none() {
                    return Err(wrong_kind(Kind::Scalar, node));
                }
                text(node) == value
            } else {
                let map = node.as_map().ok_or_else(|| wrong_kind(Kind::Map, node))?;
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
