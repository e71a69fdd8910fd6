//! Lists whose elements are merged: by the values of keys, or as sets of scalars.
//!
//! [`Merger::by_key`] is the plain merge of regular lists. [`Elements`] does the same as the original in all other cases
//! (elements without a key, repeated keys, several keys), quirk by quirk.

mod elements;

use std::collections::{HashMap, HashSet};

use yaml::{Node, node::Text};

use elements::{Elements, is_gone};

use super::{DIRECTIVE, Directive, Merger, Remainder, Sources, parse_directive, text};
use crate::{Error, schema::Shape};

/// The list of the patch next to the object's.
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
    ) -> Result<Remainder, Error> {
        let (object, patch) = match sources {
            Sources::Same(node) => {
                let Some(list) = node.as_seq_mut() else {
                    return Ok(Remainder::Nothing);
                };
                if directive(list)? == Directive::Delete {
                    return Ok(Remainder::Nothing);
                }
                self.elements(list, Other::Same, keys, shape)?;
                return Ok(Remainder::Object);
            }
            Sources::Two(object, patch) => (object.and_then(Node::as_seq_mut), patch),
        };
        match (object, patch) {
            (None, None) => Ok(Remainder::Nothing),
            (Some(list), None) => {
                self.elements(list, Other::Missing, keys, shape)?;
                Ok(Remainder::Object)
            }
            (object, Some(patch)) => {
                let Some(patch) = patch.as_seq_mut() else {
                    return Ok(Remainder::Nothing);
                };
                // Without a list of the object, a directive of the list has no effect.
                let directive = match &object {
                    Some(_) => directive(patch)?,
                    None => Directive::Replace,
                };
                match (directive, object) {
                    (Directive::Delete, _) => Ok(Remainder::Nothing),
                    (Directive::Merge, Some(object)) => {
                        self.elements(object, Other::List(patch), keys, shape)?;
                        Ok(Remainder::Object)
                    }
                    (Directive::Replace | Directive::Merge, _) => {
                        self.elements(patch, Other::Same, keys, shape)?;
                        Ok(Remainder::Patch)
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
        values: &[Text],
        key: &str,
        shape: Option<Shape<'m>>,
    ) -> Result<(), Error> {
        let mut remaining = Vec::with_capacity(list.len());
        for (mut node, value) in std::mem::take(list).into_iter().zip(values) {
            let sources = if same {
                Sources::Same(&mut node)
            } else {
                Sources::Two(Some(&mut node), None)
            };
            if self.walk(sources, shape)? != Remainder::Nothing && keep(&mut node, key, value) {
                remaining.push(node);
            }
        }
        *list = remaining;
        Ok(())
    }

    /// Merges the patch's elements, in its order, with the object's of the same key; the object's other elements follow.
    ///
    /// quirk: an element with the directive to replace the object's only moves it to the front.
    fn by_key(
        &self,
        list: &mut Vec<Node>,
        own: &[Text],
        patch: &mut [Node],
        theirs: &[Text],
        key: &str,
        shape: Option<Shape<'m>>,
    ) -> Result<(), Error> {
        let indices: HashMap<&str, usize> = own
            .iter()
            .enumerate()
            .map(|(at, value)| (value.as_str(), at))
            .collect();
        let mut rest: Vec<_> = std::mem::take(list).into_iter().map(Some).collect();
        for (element, value) in patch.iter_mut().zip(theirs) {
            let at = indices.get(value.as_str());
            let mut node = at.and_then(|at| rest.get_mut(*at)).and_then(Option::take);
            let remainder = self.walk(Sources::Two(node.as_mut(), Some(element)), shape)?;
            let node = match remainder {
                Remainder::Nothing => continue,
                Remainder::Object => node,
                Remainder::Patch => node.or_else(|| Some(element.clone())),
            };
            list.extend(node.and_then(|mut node| keep(&mut node, key, value).then_some(node)));
        }
        for (node, value) in rest.into_iter().zip(own) {
            let Some(mut node) = node else { continue };
            let remainder = self.walk(Sources::Two(Some(&mut node), None), shape)?;
            if remainder != Remainder::Nothing && keep(&mut node, key, value) {
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
            .filter_map(|index| elements.nodes.get(*index).cloned())
            .collect();
        if let Some(patch) = patch {
            *patch = elements.nodes.split_off(own);
        }
        Ok(())
    }
}

/// Returns true if an element stays in its list; it has its key then.
fn keep(node: &mut Node, key: &str, value: &str) -> bool {
    if is_gone(node) {
        return false;
    }
    if node.get(key).is_none() {
        node.set(key, Node::string(value));
    }
    true
}

/// Returns the values of a key, if each element is a map that has one of its own.
fn key_values(list: &[Node], key: &str) -> Option<Vec<Text>> {
    let value = |node: &Node| {
        let text = node.get(key)?.as_text()?;
        (!text.is_empty()).then(|| Text::from(text))
    };
    let values: Vec<Text> = list.iter().map(value).collect::<Option<_>>()?;
    let distinct: HashSet<_> = values.iter().collect();
    (distinct.len() == values.len()).then_some(values)
}

/// Removes and returns the directive of a list, which is an element with nothing else.
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
    // quirk: elements that hold more than this very directive are removed with it.
    list.retain(|node| !is_gone(node) && node.get(DIRECTIVE).is_none_or(|own| text(own) != value));
    Ok(directive)
}
