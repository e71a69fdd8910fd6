//! Blocks as values: `self` of a template, a block, and `super`.

use std::rc::Rc;

use super::context::Context;
use crate::{
    exc::R,
    format::repr::quoted,
    rt::Rt,
    value::{Object, Str, Value, object::RuntimeObject},
};

/// `self` of a template: its blocks by name.
pub(crate) struct Blocks(pub(super) Rc<Context>);

pub(crate) struct BlockRef {
    pub(super) ctx: Rc<Context>,
    pub(super) name: Str,
    /// The number of overriding templates, nearer to the outermost child.
    pub(super) depth: usize,
}

impl RuntimeObject for Blocks {
    fn type_name(&self) -> &'static str {
        "TemplateReference"
    }

    fn is_callable(&self) -> bool {
        false
    }

    fn attribute(&self, _: &Rt, _: &str) -> R<Option<Value>> {
        Ok(None)
    }

    fn item(&self, name: &Str) -> Option<Value> {
        let known = self.0.blocks.borrow().contains_key(name);
        known.then(|| {
            BlockRef {
                ctx: self.0.clone(),
                name: name.clone(),
                depth: 0,
            }
            .into_value()
        })
    }

    fn repr(&self, _: &Rt, _: &str) -> R<Option<String>> {
        let name = quoted(self.0.unit.name());
        Ok(Some(format!("<TemplateReference {name}>")))
    }
}

impl BlockRef {
    fn into_value(self) -> Value {
        Value::object(Object::Runtime(Box::new(self)))
    }

    /// Returns the block of the parent template.
    pub(super) fn parent(&self) -> Value {
        let depth = self.depth + 1;
        let known = self
            .ctx
            .blocks
            .borrow()
            .get(&self.name)
            .is_some_and(|blocks| blocks.len() > depth);
        if !known {
            return Value::hint(format!("there is no parent block called {}.", quoted(&self.name)));
        }
        Self {
            ctx: self.ctx.clone(),
            name: self.name.clone(),
            depth,
        }
        .into_value()
    }
}

impl RuntimeObject for BlockRef {
    fn type_name(&self) -> &'static str {
        "BlockReference"
    }

    fn attribute(&self, _: &Rt, name: &str) -> R<Option<Value>> {
        Ok(match name {
            "name" => Some(Value::Str(self.name.clone())),
            "super" => Some(self.parent()),
            _ => None,
        })
    }
}
