//! Iterators: over containers while they may change, and generators that compute on demand.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use super::{Dict, List, Object, Range, Str, Tuple, Undef, Value, bury, object::ViewKind, origin::Origin};
use crate::{
    exc::{R, raise, type_error, value_error},
    rt::{ENTRY, Rt},
};

/// The maximum length of a chain of generators.
const MAX_CHAIN: u32 = 200;

/// A position in an iterable value.
pub(crate) enum Iter {
    Items(Rc<List>, usize),
    Tuple(Rc<Tuple>, usize),
    Dict {
        dict: Rc<Dict>,
        kind: ViewKind,
        at: usize,
        len: usize,
    },
    Chars(Str, usize),
    Bytes(Rc<[u8]>, usize),
    Range(Rc<Range>, i64),
    Shared(Rc<IterObj>),
    Owned(std::vec::IntoIter<Value>),
}

impl Drop for Iter {
    fn drop(&mut self) {
        if let Self::Owned(items) = self {
            bury(items);
        }
    }
}

pub(crate) fn of(value: &Value) -> R<Iter> {
    Ok(match value {
        Value::List(list) => Iter::Items(list.clone(), 0),
        Value::Tuple(tuple) => Iter::Tuple(tuple.clone(), 0),
        Value::Dict(dict) => over_dict(dict.clone(), ViewKind::Keys),
        Value::Str(text) | Value::Markup(text) => Iter::Chars(text.clone(), 0),
        Value::Bytes(bytes) => Iter::Bytes(bytes.clone(), 0),
        Value::Range(range) => Iter::Range(range.clone(), 0),
        Value::Iter(iter) => Iter::Shared(iter.clone()),
        Value::Undefined(why) => match **why {
            Undef::Nothing { .. } => Iter::Owned(Vec::new().into_iter()),
            _ => return why.fail(),
        },
        Value::Object(object) => match &**object {
            Object::View(view) => over_dict(view.dict.clone(), view.kind),
            Object::Runtime(items) if items.is_iterable() => Iter::Shared(Rc::new(loop_items(value.clone()))),
            _ => return not_iterable(value),
        },
        _ => return not_iterable(value),
    })
}

fn not_iterable<T>(value: &Value) -> R<T> {
    type_error(format!("'{}' object is not iterable", value.type_name()))
}

fn over_dict(dict: Rc<Dict>, kind: ViewKind) -> Iter {
    Iter::Dict {
        len: dict.len(),
        dict,
        kind,
        at: 0,
    }
}

/// Iterates over `loop` itself, from its current position.
fn loop_items(value: Value) -> IterObj {
    IterObj::lazy("LoopContext", 0, move |rt| match &value {
        Value::Object(object) => match &**object {
            Object::Runtime(items) => {
                let item = items.next(rt)?;
                Ok(item.map(|item| Value::tuple(vec![item, value.clone()])))
            }
            _ => Ok(None),
        },
        _ => Ok(None),
    })
}

impl Iter {
    pub(crate) fn next(&mut self, rt: &Rt) -> R<Option<Value>> {
        rt.step(1)?;
        Ok(match self {
            Self::Items(list, at) => advance(at, list.get(*at)),
            Self::Tuple(tuple, at) => advance(at, tuple.items.get(*at).cloned()),
            Self::Dict { dict, kind, at, len } => {
                if dict.len() != *len {
                    return raise("RuntimeError", "dictionary changed size during iteration");
                }
                let entry = dict.at(*at).map(|(key, value)| match kind {
                    ViewKind::Keys => key,
                    ViewKind::Values => value,
                    ViewKind::Items => Value::tuple(vec![key, value]),
                });
                advance(at, entry)
            }
            Self::Chars(text, at) => {
                let letter = text.get(*at..).and_then(|rest| rest.chars().next());
                letter.map(|letter| {
                    *at += letter.len_utf8();
                    rt.letter(letter)
                })
            }
            Self::Bytes(bytes, at) => advance(at, bytes.get(*at).map(|byte| Value::Int(i64::from(*byte)))),
            Self::Range(range, at) => {
                let number = range.get(*at).map(Value::Int);
                *at += i64::from(number.is_some());
                number
            }
            Self::Shared(iter) => iter.next(rt)?,
            Self::Owned(items) => items.next(),
        })
    }

    pub(crate) fn collect(mut self, rt: &Rt) -> R<Vec<Value>> {
        let mut items = Vec::new();
        while let Some(item) = self.next(rt)? {
            rt.alloc(ENTRY)?;
            rt.fits(items.len().saturating_mul(ENTRY))?;
            items.push(item);
        }
        Ok(items)
    }

    /// Returns the number of generators in its chain.
    fn chain(&self) -> u32 {
        match self {
            Self::Shared(iter) => iter.chain,
            _ => 0,
        }
    }
}

fn advance(at: &mut usize, item: Option<Value>) -> Option<Value> {
    *at += usize::from(item.is_some());
    item
}

pub(crate) fn collect(rt: &Rt, value: &Value) -> R<Vec<Value>> {
    of(value)?.collect(rt)
}

type Generate = Box<dyn FnMut(&Rt) -> R<Option<Value>>>;

enum IterSource {
    Iter(Iter),
    Lazy(Generate),
}

/// An iterator as a value.
pub(crate) struct IterObj {
    pub(crate) label: &'static str,
    /// The function that made it, for generators.
    pub(crate) function: &'static str,
    source: RefCell<Option<IterSource>>,
    running: Cell<bool>,
    chain: u32,
    origin: Origin,
}

impl IterObj {
    pub(crate) fn plain(label: &'static str, iter: Iter) -> Self {
        Self {
            label,
            function: "",
            chain: iter.chain() + 1,
            source: RefCell::new(Some(IterSource::Iter(iter))),
            running: Cell::new(false),
            origin: Origin::here(),
        }
    }

    fn lazy(
        function: &'static str,
        chain: u32,
        generate: impl FnMut(&Rt) -> R<Option<Value>> + 'static,
    ) -> Self {
        Self {
            label: "generator",
            function,
            source: RefCell::new(Some(IterSource::Lazy(Box::new(generate)))),
            running: Cell::new(false),
            chain,
            origin: Origin::here(),
        }
    }

    pub(crate) fn next(&self, rt: &Rt) -> R<Option<Value>> {
        if self.running.replace(true) {
            return value_error("generator already executing");
        }
        if !self.origin.is_new() {
            rt.outlives();
        }
        let _deeper = rt.deeper()?;
        // Taken while it runs, so that nothing is borrowed.
        let mut source = self.source.borrow_mut().take();
        let next = match &mut source {
            Some(IterSource::Iter(iter)) => iter.next(rt),
            Some(IterSource::Lazy(generate)) => generate(rt),
            None => Ok(None),
        };
        self.running.set(false);
        if matches!(next, Ok(Some(_))) {
            *self.source.borrow_mut() = source;
        }
        next
    }
}

/// Returns a generator over the items of an iterator.
pub(crate) fn generator(
    rt: &Rt,
    function: &'static str,
    items: Iter,
    mut step: impl FnMut(&Rt, Value) -> R<Option<Value>> + 'static,
) -> R<Value> {
    let chain = items.chain() + 1;
    if chain > MAX_CHAIN {
        return raise("RecursionError", "maximum recursion depth exceeded");
    }
    rt.alloc(ENTRY * 8)?;
    let mut items = items;
    Ok(Value::Iter(Rc::new(IterObj::lazy(function, chain, move |rt| {
        while let Some(item) = items.next(rt)? {
            if let Some(made) = step(rt, item)? {
                return Ok(Some(made));
            }
        }
        Ok(None)
    }))))
}
