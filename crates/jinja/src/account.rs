//! What the values of one template may take in memory.
//!
//! The engine calls filters, methods and the formatter without anything of this crate but their arguments, and runs a
//! template on one thread from start to end, so the account is kept by thread.

use std::cell::RefCell;

use minijinja::{Error, Value as Dynamic, value::ValueKind};
use tree::{Budget, Exceeded};

use crate::error::LimitReached;

/// How much of the output limit all values that a template makes may take together. They are counted when they are
/// made, and not when they are dropped.
const TOTAL_TIMES: u64 = 4;

/// What an item of a list takes, with the room that a growing list keeps.
pub(crate) const ITEM: usize = 32;

/// What an entry of a map takes.
pub(crate) const ENTRY: usize = 96;

/// How many parts of values one template may look at, to compare them and to see how large they are.
const MAX_STEPS: u64 = 100_000_000;

/// After how many charges the clock is looked at.
const POLL: u64 = 256;

struct Account {
    used: u64,
    charges: u64,
    steps: u64,
    budget: Budget,
}

impl Account {
    fn new(budget: Budget) -> Self {
        Self {
            used: 0,
            charges: 0,
            steps: 0,
            budget,
        }
    }
}

thread_local! {
    static ACCOUNT: RefCell<Account> = RefCell::new(Account::new(Budget::default()));
}

/// Starts the account of a template.
pub(crate) fn start(budget: &Budget) {
    let budget = budget.clone();
    ACCOUNT.with_borrow_mut(|account| *account = Account::new(budget));
}

/// The budget of the template that is being rendered.
pub(crate) fn budget() -> Budget {
    ACCOUNT.with_borrow(|account| account.budget.clone())
}

/// Counts memory that a value takes.
pub(crate) fn charge(bytes: usize) -> Result<(), Error> {
    ACCOUNT.with_borrow_mut(|account| {
        account.used = account.used.saturating_add(bytes as u64);
        account.charges += 1;
        if account.charges.is_multiple_of(POLL) {
            account.budget.check().map_err(exceeded)?;
        }
        let limit = account.budget.limits().bytes.saturating_mul(TOTAL_TIMES);
        if account.used > limit {
            return Err(reached("bytes of all values that one template makes", limit));
        }
        Ok(())
    })
}

/// Counts steps of a walk through values, and looks at the clock from time to time.
pub(crate) fn step(steps: u64) -> Result<(), Error> {
    ACCOUNT.with_borrow_mut(|account| {
        account.steps = account.steps.saturating_add(steps);
        if account.steps > MAX_STEPS {
            return Err(reached("parts of values that one template looks at", MAX_STEPS));
        }
        account.budget.step(steps).map_err(exceeded)
    })
}

/// Fails when one value would be larger than all output may be.
pub(crate) fn fits(bytes: usize) -> Result<(), Error> {
    let limit = largest();
    if bytes as u64 > limit {
        return Err(reached("bytes of one value in a template", limit));
    }
    Ok(())
}

/// How large one value may be.
pub(crate) fn largest() -> u64 {
    ACCOUNT.with_borrow(|account| account.budget.limits().bytes)
}

/// Counts a text that was made.
pub(crate) fn made(text: String) -> Result<String, Error> {
    fits(text.len())?;
    charge(text.len())?;
    Ok(text)
}

/// Counts a value that was made.
pub(crate) fn made_value(value: Dynamic) -> Result<Dynamic, Error> {
    if let Some(text) = value.as_str() {
        fits(text.len())?;
        charge(text.len())?;
    } else if value.kind() == ValueKind::Iterable {
        return collected(&value);
    } else if matches!(value.kind(), ValueKind::Seq | ValueKind::Map) {
        list(&value)?;
    }
    Ok(value)
}

/// A list with the items of one that is only made while it is read: many of those within each other would need a deep
/// stack.
pub(crate) fn collected(value: &Dynamic) -> Result<Dynamic, Error> {
    crate::filters::items(value).map(Dynamic::from)
}

/// Counts the items of a value as those of a new list.
pub(crate) fn list(value: &Dynamic) -> Result<(), Error> {
    let size = value.len().unwrap_or_default().saturating_mul(ITEM);
    fits(size)?;
    charge(size)
}

pub(crate) fn reached(what: &'static str, limit: u64) -> Error {
    exceeded(Exceeded::Limit { what, limit })
}

fn exceeded(limit: Exceeded) -> Error {
    LimitReached(limit).into_engine()
}
