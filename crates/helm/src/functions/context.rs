//! The context of a function call: environment, limits and caches.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::{Rc, Weak},
};

use go::regexp::{self, Regexp};
use tree::{Budget, MemoryReservation};

use crate::{
    Dict, HelmVersion, Value,
    template::{
        FunctionError,
        weight::{self, STRING},
    },
};

/// The inputs of functions from outside of the chart.
pub trait Environment {
    /// Returns the time in seconds since 1970 and nanoseconds.
    fn now(&self) -> (i64, u32);

    /// Fills bytes with cryptographically secure randomness.
    fn fill(&self, bytes: &mut [u8]);

    /// Returns the result of the function `lookup`: an object, a list, or an empty map if nothing is found.
    fn lookup(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Value, FunctionError> {
        let _ = (api_version, kind, namespace, name);
        Ok(Value::dict::<&str>([]))
    }
}

pub(super) type Changed = RefCell<Vec<Weak<RefCell<BTreeMap<Rc<str>, Value>>>>>;

/// Compiled regular expressions.
pub(super) type Expressions = RefCell<foldhash::HashMap<String, Rc<Regexp>>>;

/// The memory of an item of a list, in bytes.
pub(super) const ITEM: usize = size_of::<Value>();

/// The memory of a new entry of a map in bytes, without the characters of its key and of a string value. Nodes of a map that
/// is filled in order are half full.
pub(super) const ENTRY: usize = 2 * (size_of::<Rc<str>>() + ITEM) + STRING;

/// The memory of a node of a document while it is read, in bytes.
pub(super) const NODE: usize = 256;

pub(super) struct Meter<'a> {
    pub(super) budget: &'a Budget,
    all: u64,
    left: Cell<u64>,
    /// The memory that the executor reserved and does not use, in bytes.
    unused: u64,
    more: RefCell<MemoryReservation>,
}

impl<'a> Meter<'a> {
    pub(super) fn new(budget: &'a Budget, left: u64, unused: u64) -> Self {
        Self {
            budget,
            all: left,
            left: Cell::new(left),
            unused,
            more: RefCell::default(),
        }
    }

    pub(super) fn taken(&self) -> u64 {
        self.all.saturating_sub(self.left.get())
    }

    /// Counts memory that the call is about to take. Everything but single strings is counted before it is made.
    pub(super) fn memory(&self, bytes: usize) -> Result<(), FunctionError> {
        match self.left.get().checked_sub(bytes as u64) {
            Some(left) => {
                self.left.set(left);
                match self.taken().checked_sub(self.unused) {
                    Some(more) => Ok(self.more.borrow_mut().resize(more, self.budget)?),
                    None => Ok(()),
                }
            }
            None => Err(weight::too_much(self.budget)),
        }
    }

    /// Counts items of a list, or entries of a map, before they are made.
    pub(super) fn items(&self, count: usize) -> Result<(), FunctionError> {
        let steps = (count as u64).saturating_add(1).saturating_mul(64);
        self.budget.step(steps)?;
        self.memory(count.saturating_mul(ITEM))
    }
}

pub(super) struct Context<'a> {
    pub(super) budget: &'a Budget,
    pub(super) environment: &'a dyn Environment,
    pub(super) helm: HelmVersion,
    pub(super) changed: &'a Changed,
    pub(super) changes: Cell<bool>,
    pub(super) expressions: &'a Expressions,
    pub(super) meter: Meter<'a>,
}

impl Context<'_> {
    /// Records that a map was changed, whose new values may outlive the action.
    pub(super) fn changes(&self) {
        self.changes.set(true);
    }

    /// Records a changed map that may contain itself now.
    pub(super) fn nests(&self, map: &Dict) {
        self.changes();
        self.changed.borrow_mut().push(Rc::downgrade(map));
    }

    pub(super) fn memory(&self, bytes: usize) -> Result<(), FunctionError> {
        self.meter.memory(bytes)
    }

    pub(super) fn items(&self, count: usize) -> Result<(), FunctionError> {
        self.meter.items(count)
    }

    /// Counts items of a list that are new strings of `bytes` bytes in total, before they are made.
    pub(super) fn strings(&self, count: usize, bytes: usize) -> Result<(), FunctionError> {
        self.items(count)?;
        self.memory(count.saturating_mul(STRING).saturating_add(bytes))
    }

    /// Counts the nodes of a YAML, JSON or TOML document before it is read.
    pub(super) fn document(&self, text: &str) -> Result<(), FunctionError> {
        self.budget.step(text.len() as u64 + 64)?;
        let nodes = yaml::read::most_nodes(text.as_bytes());
        self.memory(nodes.saturating_mul(NODE).saturating_add(text.len()))
    }

    /// Counts a string before it is made.
    pub(super) fn text(&self, bytes: usize) -> Result<(), FunctionError> {
        let (bytes, limit) = (bytes as u64, self.budget.limits().bytes);
        if bytes > limit {
            return Err(format!("a text of {bytes} bytes is over the limit of {limit} bytes").into());
        }
        if bytes > self.meter.left.get() {
            return Err(weight::too_much(self.budget));
        }
        Ok(self.budget.step(bytes / 8 + 1)?)
    }

    /// Counts the reading of the strings among the arguments. Functions that read the strings in lists and maps, or read one
    /// more than once, count it themselves.
    pub(super) fn reads(&self, arguments: &[Value]) -> Result<(), FunctionError> {
        let size = |argument: &Value| match argument {
            Value::String(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        let bytes = arguments.iter().map(size).fold(0, usize::saturating_add);
        self.work(bytes as u64 / 32)
    }

    /// Counts the states that a search by a regular expression visits.
    pub(super) fn visits(&self, visits: u64) -> Result<(), FunctionError> {
        self.work(regexp::steps(visits))
    }

    /// Counts steps of a slow computation.
    pub(super) fn work(&self, steps: u64) -> Result<(), FunctionError> {
        Ok(self.budget.step(steps)?)
    }
}
