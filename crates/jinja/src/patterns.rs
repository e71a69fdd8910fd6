//! The regular expressions of a template, compiled once and in a bounded memory.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
    sync::Arc,
};

use go::regexp::{Regexp, RegexpError};

/// Maximum memory of the compiled expressions of a template, in bytes.
const MAX_BYTES: usize = 8 << 20;

/// An expression in the syntax of crate regex.
pub(crate) type Compiled = Result<Rc<Regexp>, RegexpError>;

#[derive(Default)]
pub(crate) struct Patterns {
    known: RefCell<HashMap<Arc<str>, Compiled>>,
    bytes: Cell<usize>,
}

impl Patterns {
    pub(crate) fn clear(&self) {
        self.known.borrow_mut().clear();
        self.bytes.set(0);
    }

    pub(crate) fn get(&self, expression: &str) -> Option<Compiled> {
        self.known.borrow().get(expression).cloned()
    }

    /// Adds a new expression, unless all of them take too much memory.
    pub(crate) fn add(&self, expression: &Arc<str>, compiled: &Compiled) {
        let size = size_of::<(Arc<str>, Compiled)>() + expression.len();
        let size = size + compiled.as_ref().map_or(0, |compiled| compiled.size());
        let bytes = self.bytes.get() + size;
        if bytes <= MAX_BYTES {
            self.bytes.set(bytes);
            self.known
                .borrow_mut()
                .insert(expression.clone(), compiled.clone());
        }
    }
}
