//! Parsed templates.

use std::{cell::RefCell, rc::Rc};

use crate::{
    ast::Template,
    rt::SourceText,
    value::{Str, Value},
};

pub(crate) struct Unit {
    pub(crate) source: Rc<SourceText>,
    pub(crate) ast: Template,
    /// The memory of the text and the syntax tree, in bytes.
    pub(super) bytes: u64,
    /// The module for imports without context; set at the first import.
    pub(super) module: RefCell<Option<Value>>,
}

impl Unit {
    pub(crate) fn new(name: Str, text: Str, ast: Template, bytes: u64) -> Self {
        Self {
            source: Rc::new(SourceText { name, text }),
            ast,
            bytes,
            module: RefCell::default(),
        }
    }

    /// Returns the name that other templates and errors use.
    pub(crate) fn name(&self) -> &Str {
        &self.source.name
    }
}
