//! Runs templates.

use std::rc::Rc;

use tree::Budget;

use super::{Error, Functions, Set};
use crate::Value;

/// Runs the templates of a set.
pub struct Executor<'a> {
    set: Rc<Set>,
    functions: &'a dyn Functions,
    budget: &'a Budget,
    strict: bool,
}

impl<'a> Executor<'a> {
    /// An executor. When `strict`, a key that a map does not have is an error (`missingkey=error`), else it is nothing.
    #[must_use]
    pub fn new(set: Rc<Set>, functions: &'a dyn Functions, budget: &'a Budget, strict: bool) -> Self {
        Self {
            set,
            functions,
            budget,
            strict,
        }
    }

    /// The limits of the work; functions that loop or make much of little poll it.
    #[must_use]
    pub fn budget(&self) -> &'a Budget {
        self.budget
    }

    /// What a template makes of the data, with `<no value>` where there was none (Helm drops these words from its output).
    ///
    /// # Errors
    /// When there is no such template, it fails, or a limit is reached.
    pub fn execute(&mut self, name: &str, data: Value) -> Result<String, Error> {
        let _ = (data, self.functions, self.strict, &self.set);
        Err(Error::Unknown(name.to_owned(), "gotpl".to_owned()))
    }

    /// Helm's function `include`: what a template of the set makes of the data.
    ///
    /// # Errors
    /// As [`Executor::execute`], and when templates include each other too deep.
    pub fn include(&mut self, name: &str, data: Value) -> Result<String, String> {
        self.execute(name, data).map_err(|error| error.to_string())
    }

    /// Helm's function `tpl`: what a text that is a template makes of the data. It sees the templates of the set; those that
    /// it defines are seen only by itself.
    ///
    /// # Errors
    /// When the text is no template, it fails, or a limit is reached.
    pub fn tpl(&mut self, text: &str, data: Value) -> Result<String, String> {
        let _ = data;
        Err(text.to_owned())
    }
}
