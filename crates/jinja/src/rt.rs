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
    meter::Meter,
    patterns::{Compiled, Patterns},
    value::{Dict, Key, List, Str, Value, frozen::Vars, origin},
};

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

/// A container that got another one: it may contain itself.
enum Container {
    List(Weak<List>),
    Dict(Weak<Dict>),
}

impl Container {
    fn is(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::List(known), Value::List(list)) => known.as_ptr() == Rc::as_ptr(list),
            (Self::Dict(known), Value::Dict(dict)) => known.as_ptr() == Rc::as_ptr(dict),
            _ => false,
        }
    }

    fn exists(&self) -> bool {
        match self {
            Self::List(list) => list.strong_count() > 0,
            Self::Dict(dict) => dict.strong_count() > 0,
        }
    }

    fn clear(&self) {
        match self {
            Self::List(list) => {
                if let Some(list) = list.upgrade() {
                    drop(list.change(std::mem::take));
                }
            }
            Self::Dict(dict) => {
                if let Some(dict) = dict.upgrade() {
                    drop(dict.change(std::mem::take));
                }
            }
        }
    }
}

/// The number of changed containers after which those that no longer exist are forgotten.
const MANY_CHANGED: usize = 4096;

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
    pub(crate) meter: Meter,
    depth: Cell<u32>,
    nested: Cell<u64>,
    letters: Vec<OnceCell<Value>>,
    retained: RefCell<Vec<Rc<dyn Release>>>,
    /// The number of retained functions at the start of the template.
    retained_before: Cell<usize>,
    /// Containers that got others in the template.
    changed: RefCell<Vec<Container>>,
    /// The number of changed containers at which the list is pruned.
    max_changed: Cell<usize>,
    /// Likewise, in earlier templates.
    outlived: RefCell<Vec<Container>>,
    /// Set if a value of the template outlives it.
    lasts: Cell<bool>,
    /// Set if a function of the template may outlive it.
    shares_functions: Cell<bool>,
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
            meter: Meter::default(),
            depth: Cell::new(0),
            nested: Cell::new(0),
            letters: (0..128).map(|_| OnceCell::new()).collect(),
            retained: RefCell::default(),
            retained_before: Cell::new(0),
            changed: RefCell::default(),
            max_changed: Cell::new(MANY_CHANGED),
            outlived: RefCell::default(),
            lasts: Cell::new(false),
            shares_functions: Cell::new(false),
            random: Cell::new(0),
            patterns: Patterns::default(),
        }
    }

    pub(crate) fn start(&self, budget: &Budget) -> Result<(), Exceeded> {
        self.meter.start(budget)?;
        self.depth.set(0);
        self.nested.set(0);
        self.hashing.set(false);
        self.escapes.set(false);
        self.lasts.set(false);
        self.shares_functions.set(false);
        origin::start_template();
        self.retained_before.set(self.retained.borrow().len());
        Ok(())
    }

    /// Ends a template, whose context must be dropped: memory of values that can't be reached any more is free again.
    pub(crate) fn end(&self) {
        self.patterns.clear();
        if !self.shares_functions.get() {
            let ended = self.retained.borrow_mut().split_off(self.retained_before.get());
            for fun in ended {
                fun.release();
            }
        }
        self.prune();
        let mut changed = self.changed.borrow_mut();
        let lasts = self.lasts.get() || !changed.is_empty();
        self.outlived.borrow_mut().append(&mut changed);
        self.meter.end(lasts);
    }

    pub(crate) fn budget(&self) -> Budget {
        self.meter.budget()
    }

    /// Counts steps, and checks the time limit now and then.
    pub(crate) fn step(&self, count: u64) -> R<()> {
        Ok(self.meter.step(count)?)
    }

    /// Counts bytes of a new value.
    pub(crate) fn alloc(&self, bytes: usize) -> R<()> {
        Ok(self.meter.alloc(bytes as u64)?)
    }

    /// Frees counted bytes that the template no longer uses.
    pub(crate) fn free(&self, bytes: usize) {
        self.meter.free(bytes as u64);
    }

    /// Records that any values of the template may outlive it: they are cached, or an earlier iterator holds them.
    pub(crate) fn outlives(&self) {
        self.lasts.set(true);
        self.shares_functions.set(true);
    }

    /// Counts bytes that are written to an output, which [`Self::captured`] makes a value.
    pub(crate) fn printed(&self, bytes: usize) -> R<()> {
        self.alloc(bytes)
    }

    /// Makes a value of an output whose bytes were counted by [`Self::printed`].
    pub(crate) fn captured(&self, output: String) -> R<Str> {
        self.free(output.len());
        self.made(output)
    }

    /// Adds a message of the project.
    pub(crate) fn add_message(&self, message: String) -> R<()> {
        let bytes = message.len() + size_of::<String>();
        self.alloc(bytes)?;
        self.meter.outlive(bytes as u64);
        self.messages.borrow_mut().push(message);
        Ok(())
    }

    pub(crate) fn take_messages(&self) -> Vec<String> {
        let messages = self.messages.take();
        let bytes = messages.iter().map(|message| message.len() + size_of::<String>());
        self.meter.free_lasting(bytes.sum::<usize>() as u64);
        messages
    }

    /// Returns the maximum size of one value in bytes.
    pub(crate) fn limit(&self) -> usize {
        usize::try_from(self.meter.max_bytes()).unwrap_or(usize::MAX)
    }

    pub(crate) fn fits(&self, bytes: usize) -> R<()> {
        let limit = self.meter.max_bytes();
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
        let limit = self.meter.max_bytes();
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

    /// Retains a function's variables, which macros may need, until no value can hold such a macro.
    pub(crate) fn retain(&self, fun: Rc<dyn Release>) -> R<()> {
        self.retained.borrow_mut().push(fun);
        self.alloc(ENTRY * 4)
    }

    /// Records that a container got an item: the item may outlive the template, and they may contain each other from now on.
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
        let is_new = match container {
            Value::List(list) => list.is_new(),
            Value::Dict(dict) => dict.is_new(),
            _ => true,
        };
        if !is_new {
            self.lasts.set(true);
        }
        if plain {
            return Ok(());
        }
        if !is_new {
            self.shares_functions.set(true);
        }
        self.alloc(ENTRY)?;
        let known = self
            .changed
            .borrow()
            .last()
            .is_some_and(|last| last.is(container));
        if known {
            return Ok(());
        }
        let container = match container {
            Value::List(list) => Container::List(Rc::downgrade(list)),
            Value::Dict(dict) => Container::Dict(Rc::downgrade(dict)),
            _ => return Ok(()),
        };
        if self.changed.borrow().len() >= self.max_changed.get() {
            self.prune();
        }
        self.changed.borrow_mut().push(container);
        Ok(())
    }

    /// Forgets changed containers that no longer exist.
    fn prune(&self) {
        let mut changed = self.changed.borrow_mut();
        changed.retain(Container::exists);
        self.max_changed.set(MANY_CHANGED.max(changed.len() * 2));
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
        for container in self.changed.take().into_iter().chain(self.outlived.take()) {
            container.clear();
        }
    }
}
