//! Loops: the variable `loop`, and recursive loops.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use super::{eval, exec, fun::Fun};
use crate::{
    ast::For,
    exc::{R, raise, type_error},
    rt::{ENTRY, Rt},
    value::{Iter, Undef, Value, args::Args, bury, compare, iter, object::RuntimeObject, origin::Origin},
};

/// The items of a loop that pass its test.
pub(crate) struct Items {
    iter: Iter,
    test: Option<(Rc<For>, Rc<Fun>)>,
}

impl Items {
    pub(crate) fn new(value: &Value, node: &Rc<For>, fun: &Rc<Fun>) -> R<Self> {
        Ok(Self {
            iter: iter::of(value)?,
            test: node.test.as_ref().map(|_| (node.clone(), fun.clone())),
        })
    }

    pub(crate) fn next(&mut self, rt: &Rt) -> R<Option<Value>> {
        loop {
            let Some(item) = self.iter.next(rt)? else {
                return Ok(None);
            };
            let Some((node, fun)) = &self.test else {
                return Ok(Some(item));
            };
            let (Some(test), Some(target)) = (&node.test, &node.test_target) else {
                return Ok(Some(item));
            };
            fun.enter(rt, &node.test_scope)?;
            exec::assign(rt, fun, target, item.clone())?;
            if eval(rt, fun, test)?.truth()? {
                return Ok(Some(item));
            }
        }
    }
}

pub(crate) struct LoopState {
    items: RefCell<Option<Items>>,
    /// Items that were read ahead, the next one last.
    ahead: RefCell<Vec<Value>>,
    previous: RefCell<Value>,
    current: RefCell<Value>,
    changed: RefCell<Option<Vec<Value>>>,
    index0: Cell<i64>,
    length: Cell<Option<usize>>,
    depth0: i64,
    /// The loop and its function, for calls of a recursive loop.
    again: Option<(Rc<For>, Rc<Fun>)>,
    origin: Origin,
}

impl Drop for LoopState {
    fn drop(&mut self) {
        let values = [self.previous.take(), self.current.take()];
        bury(values.into_iter().chain(std::mem::take(self.ahead.get_mut())));
        bury(self.changed.get_mut().take().into_iter().flatten());
    }
}

impl LoopState {
    pub(crate) fn new(items: Items, depth0: i64, again: Option<(Rc<For>, Rc<Fun>)>) -> Self {
        Self {
            items: RefCell::new(Some(items)),
            ahead: RefCell::default(),
            previous: RefCell::default(),
            current: RefCell::default(),
            changed: RefCell::default(),
            index0: Cell::new(-1),
            length: Cell::new(None),
            depth0,
            again,
            origin: Origin::here(),
        }
    }

    /// Records that a loop of an earlier template gets values.
    fn note_values(&self, rt: &Rt) {
        if !self.origin.is_new() {
            rt.outlives();
        }
    }

    fn fetch(&self, rt: &Rt) -> R<Option<Value>> {
        self.note_values(rt);
        let Some(mut items) = self.items.borrow_mut().take() else {
            return Ok(None);
        };
        let item = items.next(rt)?;
        if item.is_some() {
            *self.items.borrow_mut() = Some(items);
        }
        Ok(item)
    }

    /// Returns the next item without consuming it.
    fn peek(&self, rt: &Rt) -> R<Option<Value>> {
        if let Some(next) = self.ahead.borrow().last() {
            return Ok(Some(next.clone()));
        }
        let next = self.fetch(rt)?;
        self.ahead.borrow_mut().extend(next.clone());
        Ok(next)
    }

    /// Consumes the next item.
    pub(crate) fn advance(&self, rt: &Rt) -> R<Option<Value>> {
        let next = self.ahead.borrow_mut().pop();
        let next = match next {
            Some(next) => Some(next),
            None => self.fetch(rt)?,
        };
        if let Some(next) = &next {
            self.index0.set(self.index0.get() + 1);
            let before = self.current.replace(next.clone());
            drop(self.previous.replace(before));
        }
        Ok(next)
    }

    fn total(&self, rt: &Rt) -> R<usize> {
        if let Some(length) = self.length.get() {
            return Ok(length);
        }
        let mut rest = Vec::new();
        while let Some(item) = self.fetch(rt)? {
            rt.alloc(ENTRY)?;
            rest.push(item);
        }
        rest.reverse();
        rest.append(&mut self.ahead.borrow_mut());
        let length = usize::try_from(self.index0.get() + 1).unwrap_or_default() + rest.len();
        *self.ahead.borrow_mut() = rest;
        self.length.set(Some(length));
        Ok(length)
    }

    pub(crate) fn changed(&self, rt: &Rt, values: Vec<Value>) -> R<bool> {
        self.note_values(rt);
        let before = self.changed.borrow_mut().take();
        let mut same = before.as_ref().is_some_and(|before| before.len() == values.len());
        for (old, new) in before.iter().flatten().zip(&values) {
            rt.read(old.as_str().map_or(0, |text| text.len()))?;
            same = same && (old.same(new) || compare::equal(rt, old, new)?);
        }
        *self.changed.borrow_mut() = Some(values);
        Ok(!same)
    }

    pub(crate) fn cycle(&self, values: &[Value]) -> R<Value> {
        if values.is_empty() {
            return type_error("no items for cycling given");
        }
        let at = usize::try_from(self.index0.get()).unwrap_or_default() % values.len();
        Ok(values.get(at).cloned().unwrap_or(Value::None))
    }
}

impl RuntimeObject for LoopState {
    fn type_name(&self) -> &'static str {
        "LoopContext"
    }

    fn methods(&self) -> &'static [&'static str] {
        &["cycle", "changed"]
    }

    fn attribute(&self, rt: &Rt, name: &str) -> R<Option<Value>> {
        let index0 = self.index0.get();
        Ok(Some(match name {
            "index" => Value::Int(index0 + 1),
            "index0" => Value::Int(index0),
            "length" => Value::int(self.total(rt)?),
            "revindex" | "revindex0" => {
                let left = i64::try_from(self.total(rt)?).unwrap_or(i64::MAX) - index0;
                Value::Int(if name == "revindex" { left } else { left - 1 })
            }
            "first" => Value::Bool(index0 == 0),
            "last" => Value::Bool(self.peek(rt)?.is_none()),
            "depth" => Value::Int(self.depth0 + 1),
            "depth0" => Value::Int(self.depth0),
            "previtem" if self.index0.get() <= 0 => {
                Value::undefined(Undef::Hint("there is no previous item".to_owned()))
            }
            "previtem" => self.previous.borrow().clone(),
            "nextitem" => self
                .peek(rt)?
                .unwrap_or_else(|| Value::undefined(Undef::Hint("there is no next item".to_owned()))),
            _ => return Ok(None),
        }))
    }

    fn is_iterable(&self) -> bool {
        true
    }

    fn next(&self, rt: &Rt) -> R<Option<Value>> {
        self.advance(rt)
    }

    fn repr(&self, rt: &Rt, _: &str) -> R<Option<String>> {
        let (round, total) = (self.index0.get() + 1, self.total(rt)?);
        Ok(Some(format!("<LoopContext {round}/{total}>")))
    }
}

/// Runs `loop(items)` within a recursive loop.
pub(crate) fn recurse(rt: &Rt, state: &LoopState, args: Args) -> R<Value> {
    let Some((node, fun)) = &state.again else {
        return raise(
            "TypeError",
            "The loop must have the 'recursive' marker to be called recursively.",
        );
    };
    let args = args.bind("__call__", ["iterable"], 1)?;
    let text = exec::recursive(rt, fun, node, &args.value(0), state.depth0 + 1)?;
    rt.text(text)
}
