//! Runs templates.

mod call;
mod evaluate;
mod walk;
pub(crate) mod weight;

use std::rc::Rc;

use foldhash::HashMap;
use go::strconv::quote;
use tree::{Budget, Exceeded, MemoryReservation};

use super::{Error, FunctionError, Functions, ParseBuffers, Set, lex::has_actions, source::Template};
use crate::Value;

/// The maximum depth of nested templates, blocks and parentheses at run time.
const MAX_DEPTH: usize = 20_000;

/// The maximum depth of includes, as in Helm, and of nested `tpl` calls.
const MAX_INCLUDES: u32 = 1000;

/// The maximum number of nested levels of lists and maps that are made: values are dropped recursively.
const MAX_LEVELS: u64 = 100_000;

/// Errors of this length are returned unchanged: each level adds to them.
const MAX_ERROR: usize = 256 << 10;

/// Initial capacity: most included templates print less.
const USUAL_OUTPUT: usize = 128;

const NO_VALUE: &str = "<no value>";

pub(crate) fn without_no_value(output: String) -> String {
    match memchr::memmem::find(output.as_bytes(), NO_VALUE.as_bytes()) {
        Some(_) => output.replace(NO_VALUE, ""),
        None => output,
    }
}

pub struct Executor<'a> {
    set: Rc<Set<'a>>,
    buffers: ParseBuffers,
    functions: &'a dyn Functions,
    budget: &'a Budget,
    strict: bool,
    depth: usize,
    levels: u64,
    live: weight::Live,
    memory: MemoryReservation,
    includes: HashMap<Rc<str>, u32>,
    tpl_depth: u32,
}

impl<'a> Executor<'a> {
    /// Makes an executor. If `strict`, missing keys of maps are errors (`missingkey=error`).
    #[must_use]
    pub fn new(set: Rc<Set<'a>>, functions: &'a dyn Functions, budget: &'a Budget, strict: bool) -> Self {
        Self {
            set,
            buffers: ParseBuffers::default(),
            functions,
            budget,
            strict,
            depth: 0,
            levels: 0,
            live: weight::Live::default(),
            memory: MemoryReservation::default(),
            includes: HashMap::default(),
            tpl_depth: 0,
        }
    }

    #[must_use]
    pub fn budget(&self) -> &'a Budget {
        self.budget
    }

    #[must_use]
    pub fn strict(&self) -> bool {
        self.strict
    }

    /// Executes a template with data; missing values print as `<no value>`, which Helm removes from its output.
    pub fn execute(&mut self, name: &str, data: Value) -> Result<String, Error> {
        match self.set.lookup(name).map(Rc::clone) {
            Some(template) => self.run(&template, data),
            None => Err(Error::Unknown(name.to_owned(), "gotpl".to_owned())),
        }
    }

    /// Executes a template as Helm's function `include` does; fails if templates include each other more than 1000 levels deep.
    pub fn include(&mut self, name: &str, data: Value) -> Result<String, FunctionError> {
        let running = self.includes.get(name).copied().unwrap_or_default();
        if running > MAX_INCLUDES {
            return Err(format!(
                "rendering template has a nested reference name: {name}: unable to execute template"
            )
            .into());
        }
        self.count_include(name, running + 1);
        let result = self.execute(name, data);
        self.count_include(name, running);
        result.map_err(|error| FunctionError::Failed(error.into_text()))
    }

    fn count_include(&mut self, name: &str, running: u32) {
        match self.includes.get_mut(name) {
            Some(count) => *count = running,
            None => {
                self.includes.insert(name.into(), running);
            }
        }
    }

    /// Executes a string as a template, as Helm's function `tpl` does. It can include the templates of the set; its own
    /// definitions are visible to itself only.
    pub fn tpl(&mut self, text: &str, data: Value) -> Result<String, FunctionError> {
        let steps = 1 + text.len() / 16;
        self.budget.step(steps as u64)?;
        if self.tpl_depth > MAX_INCLUDES {
            return Err(
                format!("exceeded maximum depth of texts that are templates ({MAX_INCLUDES})").into(),
            );
        }
        if !has_actions(text) {
            self.budget.output(text.len() as u64)?;
            return Ok(without_no_value(text.to_owned()));
        }
        self.buffers.start(self.live.taken(), self.budget)?;
        let mut set = Set::over(Rc::clone(&self.set));
        let template = set
            .add(
                "gotpl",
                text.to_owned().into(),
                self.functions,
                &mut self.buffers,
                self.budget,
            )
            .map_err(|error| match error {
                Error::Exceeded(exceeded) => exceeded.into(),
                error => FunctionError::Failed(format!("cannot parse template {}: {error}", quote(text))),
            })?;
        let memory = self.buffers.trees();
        self.buffers.start(0, self.budget)?;
        self.take(memory)?;
        let outer = std::mem::replace(&mut self.set, Rc::new(set));
        self.tpl_depth += 1;
        let result = template.map_or_else(|| Ok(String::new()), |template| self.run(&template, data));
        self.tpl_depth -= 1;
        self.set = outer;
        match result {
            Ok(output) => Ok(without_no_value(output)),
            Err(error) => {
                let error = error.into_text();
                if error.len() > MAX_ERROR {
                    return Err(error.into());
                }
                Err(format!("error during tpl function execution for {}: {error}", quote(text)).into())
            }
        }
    }

    fn run(&mut self, template: &Template<'a>, data: Value) -> Result<String, Error> {
        let mut out = String::with_capacity(USUAL_OUTPUT);
        let depth = self.depth;
        let result = walk::State::new(self, template, &mut out).run(data);
        self.depth = depth;
        result.map(|()| out)
    }

    /// Counts a value that a function made; fails when values take too much memory.
    fn weigh(&mut self, value: &Value) -> Result<(), FunctionError> {
        let weight = weight::measure(value);
        if weight.bytes == 0 && weight.levels == 0 {
            return Ok(());
        }
        self.take(weight.bytes as u64)?;
        self.levels += weight.levels;
        if self.levels > MAX_LEVELS {
            return Err(format!("the limit of {MAX_LEVELS} levels of lists and maps was reached").into());
        }
        Ok(())
    }

    fn take(&mut self, bytes: u64) -> Result<(), FunctionError> {
        self.live.take(bytes, self.budget)?;
        Ok(self.memory.resize(self.live.taken(), self.budget)?)
    }

    /// Returns the memory that is left for values, in bytes.
    pub(crate) fn available(&self) -> u64 {
        weight::limit(self.budget).saturating_sub(self.live.taken())
    }

    /// Returns the reserved memory that no value takes, in bytes.
    pub(crate) fn unused(&self) -> u64 {
        self.memory.bytes().saturating_sub(self.live.taken())
    }

    /// Records that a function changed a map, which has grown by `bytes`.
    pub(crate) fn changes_map(&mut self, bytes: u64) {
        self.live.change_map(bytes);
    }

    /// Enters a nested level and returns the previous one, which the caller restores.
    fn deeper(&mut self) -> Result<usize, FunctionError> {
        let before = self.depth;
        if before >= MAX_DEPTH {
            return Err(format!("exceeded maximum template depth ({MAX_DEPTH})").into());
        }
        self.depth = before + 1;
        Ok(before)
    }

    fn step(&self) -> Result<(), Exceeded> {
        self.budget.step(1)
    }
}
