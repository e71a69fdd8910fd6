//! Values that are fields of the object that they are written into: a value is the field itself, not a copy of it, so that
//! what is written after the field was changed is what it is then.

use std::{borrow::Cow, num::NonZeroU32, ptr};

use yaml::Node;

use super::{path::or_default, target::Found, value::SourceValue};
use crate::{
    lookup::{self, Leads},
    model::ReplacementSource,
};

/// The field that a value is, in an object that is written into.
pub(super) struct Live<'s> {
    /// The path to the field; `None` if the value is a copy.
    path: Option<Vec<Cow<'s, str>>>,
}

impl<'s> Live<'s> {
    /// The field of a source. A piece of a field is a copy.
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

    /// The nodes from the object down to the field, by their addresses, which hold while nothing is taken out of the object.
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

    /// Has the value follow what was written into a field. When what holds the value was written anew, nothing changes it
    /// any more.
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

    /// Has the value follow what was written into the object.
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
