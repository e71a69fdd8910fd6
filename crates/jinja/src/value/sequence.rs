//! Lists, tuples and ranges.

use std::{
    cell::{Ref, RefCell, RefMut},
    sync::Arc,
};

use super::{Value, bury, frozen::Frozen, origin::Origin};

/// A list; one from a variable is converted at its first use.
pub(crate) struct List {
    items: RefCell<Items>,
    origin: Origin,
}

enum Items {
    Frozen(Arc<[Frozen]>),
    Ready(Vec<Value>),
}

impl List {
    pub(crate) fn new(items: Vec<Value>) -> Self {
        Self {
            items: RefCell::new(Items::Ready(items)),
            origin: Origin::here(),
        }
    }

    pub(crate) fn frozen(items: Arc<[Frozen]>) -> Self {
        Self {
            items: RefCell::new(Items::Frozen(items)),
            origin: Origin::VARIABLES,
        }
    }

    /// Returns true if the running template made the list.
    pub(crate) fn is_new(&self) -> bool {
        self.origin.is_new()
    }

    fn thaw(&self) {
        let frozen = match &*self.items.borrow() {
            Items::Frozen(items) => items.clone(),
            Items::Ready(_) => return,
        };
        *self.items.borrow_mut() = Items::Ready(frozen.iter().map(Frozen::thaw).collect());
    }

    /// Returns the items, which must not change while this is borrowed.
    pub(crate) fn items(&self) -> Ref<'_, [Value]> {
        self.thaw();
        Ref::map(self.items.borrow(), |items| match items {
            Items::Ready(items) => items.as_slice(),
            Items::Frozen(_) => &[],
        })
    }

    /// Changes the items. The change must not access the list itself.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Vec<Value>) -> T) -> T {
        self.thaw();
        let mut items: RefMut<'_, Items> = self.items.borrow_mut();
        match &mut *items {
            Items::Ready(items) => change(items),
            Items::Frozen(_) => change(&mut Vec::new()),
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<Value> {
        self.items().get(index).cloned()
    }

    pub(crate) fn len(&self) -> usize {
        match &*self.items.borrow() {
            Items::Ready(items) => items.len(),
            Items::Frozen(items) => items.len(),
        }
    }

    pub(crate) fn to_vec(&self) -> Vec<Value> {
        self.items().to_vec()
    }
}

impl Drop for List {
    fn drop(&mut self) {
        if let Items::Ready(items) = self.items.get_mut()
            && !items.is_empty()
        {
            bury(std::mem::take(items).into_iter());
        }
    }
}

pub(crate) struct Tuple {
    pub(crate) items: Vec<Value>,
    /// True for a group of `groupby`, whose two items have names.
    pub(crate) group: bool,
}

impl Tuple {
    pub(crate) fn new(items: Vec<Value>) -> Self {
        Self { items, group: false }
    }
}

impl Drop for Tuple {
    fn drop(&mut self) {
        if !self.items.is_empty() {
            bury(std::mem::take(&mut self.items).into_iter());
        }
    }
}

/// Numbers from `start` to before `stop`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Range {
    pub(crate) start: i64,
    pub(crate) stop: i64,
    pub(crate) step: i64,
}

impl Range {
    pub(crate) fn len(&self) -> i64 {
        let (start, stop, step) = (
            i128::from(self.start),
            i128::from(self.stop),
            i128::from(self.step),
        );
        let distance = if step > 0 { stop - start } else { start - stop };
        if distance <= 0 || step == 0 {
            return 0;
        }
        i64::try_from((distance - 1) / step.abs() + 1).unwrap_or(i64::MAX)
    }

    pub(crate) fn get(&self, index: i64) -> Option<i64> {
        if index < 0 || index >= self.len() {
            return None;
        }
        self.start.checked_add(index.checked_mul(self.step)?)
    }

    pub(crate) fn position(&self, number: i64) -> Option<i64> {
        let offset = number.checked_sub(self.start)?;
        let index = offset.checked_div(self.step)?;
        (offset % self.step == 0 && self.get(index) == Some(number)).then_some(index)
    }
}
