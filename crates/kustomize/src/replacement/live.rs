//! Values that are fields of their target object: a value is the field itself, not a copy, so that later writes use its
//! current state.

use std::{borrow::Cow, num::NonZeroU32, ptr};

use yaml::Node;

use super::{path::or_default, target::Found, value::SourceValue};
use crate::{
    lookup::{self, Leads},
    model::ReplacementSource,
};

/// The field of a value in its target object.
pub(super) struct Live<'s> {
    /// The path to the field; `None` if the value is a copy.
    path: Option<Vec<Cow<'s, str>>>,
}

impl<'s> Live<'s> {
    /// Returns the field of a source. A piece of a field is a copy.
    pub(super) fn new(source: Option<&'s ReplacementSource>) -> Self {
        let has_piece = |source: &&ReplacementSource| {
            let options = source.options.as_ref();
            options.is_some_and(|options| !options.delimiter.is_empty())
        };
        let source = source.filter(|source| !has_piece(source));
        Self {
            path: source.map(|source| lookup::split(or_default(&source.field_path))),
        }
    }

    /// Returns the addresses of the nodes from the object down to the field, valid while nothing is removed from the object.
    pub(super) fn line(&self, object: &Node) -> Vec<*const Node> {
        let mut line: Vec<*const Node> = vec![object];
        let mut node = object;
        for element in self.path.iter().flatten() {
            match lookup::step(node, element) {
                Ok(Leads::Stay) => {}
                Ok(Leads::Down(place)) => match lookup::child(node, place) {
                    Some(child) => {
                        node = child;
                        line.push(node);
                    }
                    None => return Vec::new(),
                },
                Ok(Leads::Nowhere) | Err(_) => return Vec::new(),
            }
        }
        line
    }

    /// Updates the value after a write into a field. If a node above the value was replaced, nothing changes it any more.
    pub(super) fn follow(&mut self, found: &Found<'_>, line: &[*const Node], value: &mut SourceValue) {
        if self.path.is_none() {
            return;
        }
        match line.iter().position(|node| ptr::eq(*node, found.node)) {
            Some(place) if place + 1 == line.len() => *value = SourceValue::new(found.node.clone()),
            Some(_) => self.path = None,
            None if share(found.node).is_some_and(|it| share(value.node()) == Some(it)) => {
                *value = SourceValue::new(found.node.clone());
            }
            None => {}
        }
    }

    /// Updates the value after a write into the object.
    pub(super) fn read(&self, object: &Node, value: &mut SourceValue) {
        let field = self.path.as_ref().and_then(|path| lookup::get(object, path));
        if let Some(field) = field
            && field != value.node()
        {
            *value = SourceValue::new(field.clone());
        }
    }
}

fn share(node: &Node) -> Option<NonZeroU32> {
    node.as_scalar()?.share
}
