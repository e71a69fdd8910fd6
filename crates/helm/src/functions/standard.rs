//! The registry of all functions.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    sync::LazyLock,
};

use super::{
    arguments::text,
    certificates, codecs,
    context::{Changed, Context, Environment, Expressions, Meter},
    crypto, dicts, durations, encoding, flow, lists, numbers, paths, random, regexes, semver, strings,
    table::Entry,
    time, types, urls, words,
};
use crate::{
    HelmVersion, Value,
    template::{Executor, FunctionError, Functions, Signature, Type},
};

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
        durations::TABLE,
        codecs::TABLE_OF_4,
    ];
    tables.into_iter().flatten().collect()
});

static NUMBERS: LazyLock<HashMap<&'static str, u16, BuildHasherDefault<Names>>> = LazyLock::new(|| {
    let own = [("include", INCLUDE), ("tpl", TPL), ("lookup", LOOKUP)];
    let others = ENTRIES.iter().map(|entry| entry.name).zip(OTHERS..);
    own.into_iter().chain(others).collect()
});

/// The number of the first function that Helm 3 doesn't have.
static FIRST_OF_4: LazyLock<u16> = LazyLock::new(|| {
    let new = durations::TABLE.len() + codecs::TABLE_OF_4.len();
    u16::try_from(ENTRIES.len() - new).map_or(u16::MAX, |before| before.saturating_add(OTHERS))
});

/// All functions of the tables.
#[cfg(test)]
pub(super) fn entries() -> &'static [&'static Entry] {
    &ENTRIES
}

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
    helm: HelmVersion,
    changed: Changed,
    expressions: Expressions,
}

impl<'a> Standard<'a> {
    #[must_use]
    pub fn new(environment: &'a dyn Environment, helm: HelmVersion) -> Self {
        Self {
            environment,
            helm,
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
        let found = NUMBERS.get(name).copied()?;
        (self.helm.is_four() || found < *FIRST_OF_4).then_some(found)
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
        if let Some(entry) = entry(function) {
            let context = Context {
                budget: executor.budget(),
                environment: self.environment,
                helm: self.helm,
                changed: &self.changed,
                changes: Cell::new(false),
                expressions: &self.expressions,
                meter: Meter::new(executor.budget(), executor.available(), executor.unused()),
            };
            let answer = context
                .reads(&arguments)
                .and_then(|()| (entry.run)(&context, &arguments));
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
