//! The functions that sprig and Helm add to templates.
//!
//! Each group of functions is a table of names, parameters and plain functions in its own module. Nothing here reads a
//! clock, a network or the environment: [`Environment`] provides time and randomness. `env` and `expandenv` don't exist, and
//! `getHostByName` returns an empty string.

mod arguments;
mod cast;
mod certificates;
mod codecs;
mod crypto;
mod decimal;
mod dicts;
mod encoding;
mod equal;
mod flow;
mod json;
mod keys;
mod lists;
mod merge;
mod moment;
mod named;
mod numbers;
mod paths;
mod random;
mod regexes;
mod semver;
mod strings;
#[cfg(test)]
mod tests;
mod time;
mod toml;
mod types;
mod urls;
mod words;

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, HashMap},
    hash::{BuildHasherDefault, Hasher},
    rc::{Rc, Weak},
    sync::LazyLock,
};

use go::{bytes, regexp::Regexp};
use tree::Budget;

use crate::{
    Dict, Value,
    template::{
        Executor, FunctionError, Functions, Signature, Type,
        weight::{self, STRING},
    },
};

pub use moment::Moment;
pub use time::Time;

/// The mark before messages of `fail` and `required` in an error: Helm prints the message only.
pub const WARNING_START: &str = "HELM_ERR_START";
pub const WARNING_END: &str = "HELM_ERR_END";

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

/// The maps that templates changed.
type Changed = RefCell<Vec<Weak<RefCell<BTreeMap<Rc<str>, Value>>>>>;

/// Compiled regular expressions. They are shared and never cloned: a clone has to fill its search tables again.
type Expressions = RefCell<foldhash::HashMap<String, Rc<Regexp>>>;

/// The memory of an item of a list, in bytes.
const ITEM: usize = size_of::<Value>();

/// The memory of a new entry of a map in bytes, without the characters of its key and of a string value. Nodes of a map that
/// is filled in order are half full.
const ENTRY: usize = 2 * (size_of::<Rc<str>>() + ITEM) + STRING;

/// The memory of a node of a document while it is read, in bytes.
const NODE: usize = 256;

struct Meter<'a> {
    budget: &'a Budget,
    all: u64,
    left: Cell<u64>,
}

impl<'a> Meter<'a> {
    fn new(budget: &'a Budget, left: u64) -> Self {
        Self {
            budget,
            all: left,
            left: Cell::new(left),
        }
    }

    fn taken(&self) -> u64 {
        self.all.saturating_sub(self.left.get())
    }

    /// Counts memory that the call is about to take. Everything but single strings is counted before it is made.
    fn memory(&self, bytes: usize) -> Result<(), FunctionError> {
        match self.left.get().checked_sub(bytes as u64) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => Err(weight::too_much(self.budget)),
        }
    }

    /// Counts items of a list, or entries of a map, before they are made.
    fn items(&self, count: usize) -> Result<(), FunctionError> {
        let steps = (count as u64).saturating_add(1).saturating_mul(64);
        self.budget.step(steps)?;
        self.memory(count.saturating_mul(ITEM))
    }
}

/// The context of a function call.
struct Context<'a> {
    budget: &'a Budget,
    environment: &'a dyn Environment,
    changed: &'a Changed,
    /// True if the call changed a map.
    changes: Cell<bool>,
    expressions: &'a Expressions,
    meter: Meter<'a>,
}

impl Context<'_> {
    /// Records that a map was changed, whose new values may outlive the action.
    fn changes(&self) {
        self.changes.set(true);
    }

    /// Records a changed map that may contain itself now.
    fn nests(&self, map: &Dict) {
        self.changes();
        self.changed.borrow_mut().push(Rc::downgrade(map));
    }

    fn memory(&self, bytes: usize) -> Result<(), FunctionError> {
        self.meter.memory(bytes)
    }

    fn items(&self, count: usize) -> Result<(), FunctionError> {
        self.meter.items(count)
    }

    /// Counts items of a list that are new strings of `bytes` bytes in total, before they are made.
    fn strings(&self, count: usize, bytes: usize) -> Result<(), FunctionError> {
        self.items(count)?;
        self.memory(count.saturating_mul(STRING).saturating_add(bytes))
    }

    /// Counts the nodes of a YAML, JSON or TOML document before it is read.
    fn document(&self, text: &str) -> Result<(), FunctionError> {
        self.budget.step(text.len() as u64 + 64)?;
        let separators = text
            .bytes()
            .filter(|byte| matches!(byte, b',' | b'\n' | b'[' | b'{' | b':'));
        let nodes = separators.count() + 1;
        self.memory(nodes.saturating_mul(NODE).saturating_add(text.len()))
    }

    /// Counts a string before it is made.
    fn text(&self, bytes: usize) -> Result<(), FunctionError> {
        let (bytes, limit) = (bytes as u64, self.budget.limits().bytes);
        if bytes > limit {
            return Err(format!("a text of {bytes} bytes is over the limit of {limit} bytes").into());
        }
        if bytes > self.meter.left.get() {
            return Err(weight::too_much(self.budget));
        }
        Ok(self.budget.step(bytes / 8 + 1)?)
    }

    /// Counts steps of a slow computation.
    fn work(&self, steps: u64) -> Result<(), FunctionError> {
        Ok(self.budget.step(steps)?)
    }
}

type Answer = Result<Value, FunctionError>;
type Run = fn(&Context<'_>, &[Value]) -> Answer;

struct Entry {
    name: &'static str,
    signature: Signature,
    run: Run,
}

const fn fixed(name: &'static str, parameters: &'static [Type], run: Run) -> Entry {
    Entry {
        name,
        signature: Signature::fixed(parameters),
        run,
    }
}

const fn variadic(name: &'static str, parameters: &'static [Type], run: Run) -> Entry {
    Entry {
        name,
        signature: Signature::variadic(parameters),
        run,
    }
}

/// Hashes names by FNV-1a, which is fast for short ones. Users can't make names collide: only names of the table are hashed.
struct Names(u64);

impl Default for Names {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Names {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The functions that work with templates or the cluster come before all others.
const INCLUDE: u16 = 0;
const TPL: u16 = 1;
const LOOKUP: u16 = 2;
const OTHERS: u16 = 3;

/// All other functions; the number of the first one is [`OTHERS`].
static ENTRIES: LazyLock<Vec<&'static Entry>> = LazyLock::new(|| {
    let tables = [
        strings::TABLE,
        words::TABLE,
        lists::TABLE,
        dicts::TABLE,
        numbers::TABLE,
        types::TABLE,
        flow::TABLE,
        encoding::TABLE,
        crypto::TABLE,
        random::TABLE,
        certificates::TABLE,
        time::TABLE,
        semver::TABLE,
        regexes::TABLE,
        urls::TABLE,
        paths::TABLE,
        codecs::TABLE,
    ];
    tables.into_iter().flatten().collect()
});

static NUMBERS: LazyLock<HashMap<&'static str, u16, BuildHasherDefault<Names>>> = LazyLock::new(|| {
    let own = [("include", INCLUDE), ("tpl", TPL), ("lookup", LOOKUP)];
    let others = ENTRIES.iter().map(|entry| entry.name).zip(OTHERS..);
    own.into_iter().chain(others).collect()
});

fn entry(function: u16) -> Option<&'static Entry> {
    let index = function.checked_sub(OTHERS)?;
    ENTRIES.get(usize::from(index)).copied()
}

const NAME_AND_DATA: Signature = Signature::fixed(&[Type::String, Type::Any]);
const FOUR_TEXTS: Signature = Signature::fixed(&[Type::String, Type::String, Type::String, Type::String]);

/// The functions that Helm gives to templates.
///
/// Templates can put a map into itself, as in Go. So that such maps are freed, all maps that templates changed are emptied when
/// this is dropped: take values out before.
pub struct Standard<'a> {
    environment: &'a dyn Environment,
    changed: Changed,
    expressions: Expressions,
}

impl<'a> Standard<'a> {
    #[must_use]
    pub fn new(environment: &'a dyn Environment) -> Self {
        Self {
            environment,
            changed: RefCell::default(),
            expressions: RefCell::default(),
        }
    }
}

impl Drop for Standard<'_> {
    fn drop(&mut self) {
        for map in self.changed.get_mut().drain(..) {
            if let Some(map) = map.upgrade() {
                let entries = map.try_borrow_mut().map(|mut map| std::mem::take(&mut *map));
                drop(entries);
            }
        }
    }
}

impl Functions for Standard<'_> {
    fn find(&self, name: &str) -> Option<u16> {
        NUMBERS.get(name).copied()
    }

    fn signature(&self, function: u16) -> Signature {
        match entry(function) {
            Some(entry) => entry.signature,
            None if function == LOOKUP => FOUR_TEXTS,
            None => NAME_AND_DATA,
        }
    }

    fn call(
        &self,
        function: u16,
        arguments: Vec<Value>,
        executor: &mut Executor<'_>,
    ) -> Result<Value, FunctionError> {
        use arguments::text;
        if let Some(entry) = entry(function) {
            let context = Context {
                budget: executor.budget(),
                environment: self.environment,
                changed: &self.changed,
                changes: Cell::new(false),
                expressions: &self.expressions,
                meter: Meter::new(executor.budget(), executor.available()),
            };
            let answer = (entry.run)(&context, &arguments);
            if context.changes.get() {
                executor.changes_map(context.meter.taken());
            }
            return answer;
        }
        if function == LOOKUP {
            let [api_version, kind, namespace, name] = [0, 1, 2, 3].map(|index| text(&arguments, index));
            return self.environment.lookup(api_version, kind, namespace, name);
        }
        let data = arguments.get(1).cloned().unwrap_or_default();
        let made = if function == INCLUDE {
            executor.include(text(&arguments, 0), data)
        } else {
            executor.tpl(text(&arguments, 0), data)
        };
        made.map(Value::string)
    }
}

/// Returns Go's error for a string that is not JSON; `None` if it is.
pub(crate) fn json_problem(text: &str, budget: &Budget) -> Option<String> {
    json::read(&Meter::new(budget, weight::limit(budget)), text)
        .err()
        .map(FunctionError::into_message)
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
