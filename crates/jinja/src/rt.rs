//! The state shared by all templates of a renderer: variables, counters and limits.

use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::HashMap,
    rc::{Rc, Weak},
};

use go::regexp::{self, Regexp};
use tree::{Budget, Exceeded};

use crate::{
    environment::Environment,
    error::{Failure, STRING_NAME, display_name},
    exc::{R, raise},
    loader::Loader,
    patterns::{Compiled, Patterns},
    value::{Dict, Key, List, Str, Value, frozen::Vars},
};

/// The maximum steps of one template, with all templates that it includes and renders.
pub(crate) const FUEL: u64 = 20_000_000;

/// The maximum nesting of calls, includes and generators.
const MAX_DEPTH: u32 = 250;

/// The maximum nesting of `render` and `load_template`.
const MAX_NESTED: u64 = 20;

/// The approximate size of a container's item, in bytes.
pub(crate) const ENTRY: usize = 32;

#[derive(Debug)]
pub(crate) struct SourceText {
    pub(crate) name: Str,
    pub(crate) text: Str,
}

/// Finds variables of every template, besides the variables of the project.
pub(crate) struct BuiltinLookup {
    /// Finds kluctl's functions and libraries, which override variables of the project.
    pub(crate) extension: fn(&str) -> Option<Value>,
    /// Finds Jinja2's functions, which variables of the project override.
    pub(crate) builtin: fn(&str) -> Option<Value>,
}

/// Drops the contained values, so that cycles of references are freed.
pub(crate) trait Release {
    fn release(&self);
}

/// A container that may contain itself.
enum Container {
    List(Weak<List>),
    Dict(Weak<Dict>),
}

pub(crate) struct Rt {
    pub(crate) loader: Loader,
    pub(crate) vars: Vars,
    pub(crate) environment: Environment,
    builtins: BuiltinLookup,
    globals: RefCell<HashMap<Str, Value>>,
    pub(crate) messages: RefCell<Vec<String>>,
    /// Set while a checksum is computed, as a file may contain its own.
    pub(crate) hashing: Cell<bool>,
    /// If set, output is escaped.
    pub(crate) escapes: Cell<bool>,
    pub(crate) line: Cell<u32>,
    source: RefCell<Rc<SourceText>>,
    budget: RefCell<Budget>,
    steps: Cell<u64>,
    max_steps: Cell<u64>,
    bytes: Cell<u64>,
    max_bytes: Cell<u64>,
    depth: Cell<u32>,
    nested: Cell<u64>,
    letters: Vec<OnceCell<Value>>,
    retained: RefCell<Vec<Rc<dyn Release>>>,
    changed: RefCell<Vec<Container>>,
    pub(crate) random: Cell<u64>,
    pub(crate) patterns: Patterns,
}

/// A level of nesting, left on drop.
pub(crate) struct Deeper<'a>(&'a Rt);

impl Drop for Deeper<'_> {
    fn drop(&mut self) {
        self.0.depth.set(self.0.depth.get().saturating_sub(1));
    }
}

impl Rt {
    pub(crate) fn new(loader: Loader, vars: Vars, builtins: BuiltinLookup) -> Self {
        Self {
            loader,
            vars,
            environment: Environment::default(),
            builtins,
            globals: RefCell::default(),
            messages: RefCell::default(),
            hashing: Cell::new(false),
            escapes: Cell::new(false),
            line: Cell::new(0),
            source: RefCell::new(Rc::new(SourceText {
                name: STRING_NAME.into(),
                text: "".into(),
            })),
            budget: RefCell::default(),
            steps: Cell::new(0),
            max_steps: Cell::new(FUEL),
            bytes: Cell::new(0),
            max_bytes: Cell::new(0),
            depth: Cell::new(0),
            nested: Cell::new(0),
            letters: (0..128).map(|_| OnceCell::new()).collect(),
            retained: RefCell::default(),
            changed: RefCell::default(),
            random: Cell::new(0),
            patterns: Patterns::default(),
        }
    }

    pub(crate) fn start(&self, budget: &Budget) {
        self.steps.set(0);
        self.max_steps.set(FUEL.min(budget.limits().steps));
        self.bytes.set(0);
        self.max_bytes.set(budget.limits().bytes);
        self.depth.set(0);
        self.nested.set(0);
        self.hashing.set(false);
        self.escapes.set(false);
        self.patterns.clear();
        *self.budget.borrow_mut() = budget.clone();
    }

    pub(crate) fn steps(&self) -> u64 {
        self.steps.get()
    }

    pub(crate) fn budget(&self) -> Budget {
        self.budget.borrow().clone()
    }

    /// Counts steps, and checks the time limit now and then.
    pub(crate) fn step(&self, count: u64) -> R<()> {
        let before = self.steps.get();
        let after = before.saturating_add(count);
        self.steps.set(after);
        if before >> 12 != after >> 12 {
            self.check(after)?;
        }
        Ok(())
    }

    fn check(&self, steps: u64) -> R<()> {
        let limit = self.max_steps.get();
        if steps > limit {
            return Err(Exceeded::Limit {
                what: "steps of one template",
                limit,
            }
            .into());
        }
        Ok(self.budget.borrow().check()?)
    }

    /// Counts bytes of a new value.
    pub(crate) fn alloc(&self, bytes: usize) -> R<()> {
        let total = self.bytes.get().saturating_add(bytes as u64);
        self.bytes.set(total);
        let limit = self.max_bytes.get().saturating_mul(4);
        if total > limit {
            return Err(Exceeded::Limit {
                what: "bytes of all values in a template",
                limit,
            }
            .into());
        }
        Ok(())
    }

    /// Returns the maximum size of one value in bytes.
    pub(crate) fn limit(&self) -> usize {
        usize::try_from(self.max_bytes.get()).unwrap_or(usize::MAX)
    }

    pub(crate) fn fits(&self, bytes: usize) -> R<()> {
        let limit = self.max_bytes.get();
        if bytes as u64 > limit {
            return Err(Exceeded::Limit {
                what: "bytes of one value in a template",
                limit,
            }
            .into());
        }
        Ok(())
    }

    pub(crate) fn output_fits(&self, bytes: usize) -> R<()> {
        let limit = self.max_bytes.get();
        if bytes as u64 > limit {
            return Err(Exceeded::Limit {
                what: "bytes of rendered output",
                limit,
            }
            .into());
        }
        Ok(())
    }

    /// Counts the reading of a string of this length, before it is read.
    pub(crate) fn read(&self, bytes: usize) -> R<()> {
        self.step(bytes as u64 / 64)
    }

    /// Counts work that takes time in proportion to a product, before it is done.
    pub(crate) fn product(&self, one: usize, other: usize) -> R<()> {
        self.step((one as u64).saturating_mul(other as u64) / 16)
    }

    /// Returns Python's `len` of a value: the characters of a string are counted one by one.
    pub(crate) fn length(&self, value: &Value) -> R<usize> {
        self.read(value.as_str().map_or(0, |text| text.len()))?;
        value.len()
    }

    /// Makes the key of a value for one use: its parts are hashed.
    pub(crate) fn key(&self, value: &Value) -> R<Key> {
        let (key, bytes) = Key::sized(value)?;
        self.read(bytes)?;
        Ok(key)
    }

    /// Compiles a regular expression.
    pub(crate) fn pattern(&self, expression: &Str) -> R<Compiled> {
        if let Some(known) = self.patterns.get(expression) {
            return Ok(known);
        }
        self.step(1_000 + (expression.len() as u64).saturating_mul(16))?;
        let compiled = Regexp::compile_unicode(expression).map(Rc::new);
        let size = compiled.as_ref().map_or(0, |compiled| compiled.size());
        self.step(size as u64 / 64)?;
        self.alloc(size)?;
        self.patterns.add(expression, &compiled);
        Ok(compiled)
    }

    /// Counts the states of a regular expression that a search visits.
    pub(crate) fn visits(&self, visits: u64) -> R<()> {
        self.step(regexp::steps(visits))
    }

    /// Counts a new string and the time that it took.
    pub(crate) fn made(&self, text: String) -> R<Str> {
        self.fits(text.len())?;
        self.alloc(text.len())?;
        self.step(text.len() as u64 / 64)?;
        Ok(text.into())
    }

    pub(crate) fn text(&self, text: String) -> R<Value> {
        self.made(text).map(Value::Str)
    }

    pub(crate) fn list(&self, items: Vec<Value>) -> R<Value> {
        self.alloc(items.len().saturating_mul(ENTRY).saturating_add(ENTRY))?;
        Ok(Value::list(items))
    }

    pub(crate) fn letter(&self, letter: char) -> Value {
        match self.letters.get(letter as usize) {
            Some(cell) => cell.get_or_init(|| Value::str(letter.to_string())).clone(),
            None => Value::str(letter.to_string()),
        }
    }

    pub(crate) fn deeper(&self) -> R<Deeper<'_>> {
        let depth = self.depth.get();
        if depth >= MAX_DEPTH {
            return raise("RecursionError", "maximum recursion depth exceeded");
        }
        self.depth.set(depth + 1);
        Ok(Deeper(self))
    }

    /// Runs a template from within another one.
    pub(crate) fn nested<T>(&self, render: impl FnOnce() -> R<T>) -> R<T> {
        let nested = self.nested.get();
        if nested >= MAX_NESTED {
            return Err(Exceeded::Limit {
                what: "nested calls of render and load_template",
                limit: MAX_NESTED,
            }
            .into());
        }
        self.nested.set(nested + 1);
        let rendered = render()?;
        self.nested.set(nested);
        Ok(rendered)
    }

    /// Returns a variable that every template sees: kluctl's hide the project's, which hide Jinja2's.
    pub(crate) fn global(&self, name: &str) -> Option<Value> {
        if let Some(value) = self.globals.borrow().get(name) {
            return Some(value.clone());
        }
        let value = (self.builtins.extension)(name)
            .or_else(|| self.vars.values.get(name).map(crate::value::frozen::Frozen::thaw))
            .or_else(|| (self.builtins.builtin)(name))?;
        self.globals.borrow_mut().insert(name.into(), value.clone());
        Some(value)
    }

    /// Keeps a function's variables, which macros may need, until the renderer is dropped.
    pub(crate) fn keep(&self, fun: Rc<dyn Release>) -> R<()> {
        self.alloc(ENTRY * 4)?;
        self.retained.borrow_mut().push(fun);
        Ok(())
    }

    /// Records that a container got another one: they may contain each other from now on.
    pub(crate) fn linked(&self, container: &Value, item: &Value) -> R<()> {
        let plain = matches!(
            item,
            Value::None
                | Value::Bool(_)
                | Value::Int(_)
                | Value::Big(_)
                | Value::Float(_)
                | Value::Str(_)
                | Value::Markup(_)
                | Value::Bytes(_)
        );
        if plain {
            return Ok(());
        }
        self.alloc(ENTRY)?;
        let mut changed = self.changed.borrow_mut();
        let last = changed.last();
        let entry = match container {
            Value::List(list) => {
                if matches!(last, Some(Container::List(known)) if known.as_ptr() == Rc::as_ptr(list)) {
                    return Ok(());
                }
                Container::List(Rc::downgrade(list))
            }
            Value::Dict(dict) => {
                if matches!(last, Some(Container::Dict(known)) if known.as_ptr() == Rc::as_ptr(dict)) {
                    return Ok(());
                }
                Container::Dict(Rc::downgrade(dict))
            }
            _ => return Ok(()),
        };
        changed.push(entry);
        Ok(())
    }

    /// Enters a template, and returns the previous template and line for [`Self::leave`].
    pub(crate) fn enter(&self, source: &Rc<SourceText>) -> (Rc<SourceText>, u32) {
        (self.source.replace(source.clone()), self.line.get())
    }

    pub(crate) fn leave(&self, (source, line): (Rc<SourceText>, u32)) {
        *self.source.borrow_mut() = source;
        self.line.set(line);
    }

    /// Describes a failure at the current line.
    pub(crate) fn failure(&self, class: &str, message: &str) -> Failure {
        let source = self.source.borrow();
        failure(
            &source.name,
            &source.text,
            self.line.get(),
            false,
            format!("{class}: {message}"),
        )
    }
}

/// Describes a failure at a line of a template.
pub(crate) fn failure(name: &str, source: &str, line: u32, syntax: bool, message: String) -> Failure {
    let line = usize::try_from(line).unwrap_or_default();
    let source_line = source.lines().nth(line.saturating_sub(1));
    Failure {
        source_line: source_line.filter(|_| name != STRING_NAME).map(str::to_owned),
        file: display_name(name),
        line,
        syntax,
        message,
    }
}

impl Drop for Rt {
    fn drop(&mut self) {
        for fun in self.retained.take() {
            fun.release();
        }
        for container in self.changed.take() {
            match container {
                Container::List(list) => {
                    if let Some(list) = list.upgrade() {
                        drop(list.change(std::mem::take));
                    }
                }
                Container::Dict(dict) => {
                    if let Some(dict) = dict.upgrade() {
                        drop(dict.change(std::mem::take));
                    }
                }
            }
        }
    }
}
