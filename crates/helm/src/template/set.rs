//! Parsed templates by name.

use std::{borrow::Cow, rc::Rc};

use foldhash::HashMap;
use tree::Budget;

use super::{
    Error, Functions,
    parse::{ParseBuffers, parse},
    source::Template,
};

#[derive(Debug, Default, Clone)]
pub struct Set<'t> {
    below: Option<Rc<Set<'t>>>,
    templates: HashMap<Rc<str>, Rc<Template<'t>>>,
}

impl<'t> Set<'t> {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn over(below: Rc<Self>) -> Self {
        Self {
            below: Some(below),
            templates: HashMap::default(),
        }
    }

    /// Adds a template and its definitions. A template of only white space doesn't replace another one. The buffers count the memory
    /// of all syntax trees that are made with them, at most twice the limit of the output.
    pub fn parse(
        &mut self,
        name: &str,
        text: impl Into<Cow<'t, str>>,
        functions: &dyn Functions,
        buffers: &mut ParseBuffers,
        budget: &Budget,
    ) -> Result<(), Error> {
        self.add(name, text.into(), functions, buffers, budget)
            .map(|_| ())
    }

    /// Parses like [`Set::parse`], and returns the template of the source itself, even if it replaced none.
    pub(super) fn add(
        &mut self,
        name: &str,
        text: Cow<'t, str>,
        functions: &dyn Functions,
        buffers: &mut ParseBuffers,
        budget: &Budget,
    ) -> Result<Option<Rc<Template<'t>>>, Error> {
        budget.step(text.len() as u64 / 64)?;
        let mut whole = None;
        for template in parse(name, text, functions, buffers, budget)? {
            let template = Rc::new(template);
            if *template.name == *name {
                whole = Some(Rc::clone(&template));
            }
            if !template.is_empty() || !self.has(&template.name) {
                self.templates.insert(Rc::clone(&template.name), template);
            }
        }
        Ok(whole)
    }

    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.lookup(name).is_some()
    }

    pub(super) fn lookup(&self, name: &str) -> Option<&Rc<Template<'t>>> {
        let mut set = self;
        loop {
            match (set.templates.get(name), &set.below) {
                (Some(template), _) => return Some(template),
                (None, Some(below)) => set = below,
                (None, None) => return None,
            }
        }
    }
}
