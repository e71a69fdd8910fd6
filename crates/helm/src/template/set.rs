//! Parsed templates by name.

use std::{borrow::Cow, rc::Rc};

use foldhash::HashMap;

use super::{
    Error, Functions,
    node::Template,
    parse::{Room, parse},
};

/// Templates that can include each other.
#[derive(Debug, Default, Clone)]
pub struct Set<'t> {
    below: Option<Rc<Set<'t>>>,
    templates: HashMap<Rc<str>, Rc<Template<'t>>>,
}

impl<'t> Set<'t> {
    /// Makes a set without templates.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a set with the templates of another one, which stays unchanged when templates are added.
    #[must_use]
    pub fn over(below: Rc<Self>) -> Self {
        Self {
            below: Some(below),
            templates: HashMap::default(),
        }
    }

    /// Adds a template and those that it defines. A template whose body is only space doesn't replace one of its name.
    ///
    /// # Errors
    /// Returns an error if the template is invalid or uses an unknown function.
    pub fn parse(
        &mut self,
        name: &str,
        text: impl Into<Cow<'t, str>>,
        functions: &dyn Functions,
        room: &mut Room,
    ) -> Result<(), Error> {
        self.add(name, text.into(), functions, room).map(|_| ())
    }

    /// Parses like [`Set::parse`], and returns the template of the source itself, whether it replaced another one or not.
    pub(super) fn add(
        &mut self,
        name: &str,
        text: Cow<'t, str>,
        functions: &dyn Functions,
        room: &mut Room,
    ) -> Result<Option<Rc<Template<'t>>>, Error> {
        let mut whole = None;
        for template in parse(name, text, functions, room)? {
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

    /// Returns true if there is a template of that name.
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
