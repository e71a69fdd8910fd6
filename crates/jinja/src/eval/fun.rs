//! A running function: its variables, and the context around it.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use super::{
    context::{Context, Cx},
    unit::Unit,
};
use crate::{
    ast::{Load, Scope, Slot},
    exc::R,
    rt::{ENTRY, Release, Rt},
    value::{Str, Value, bury},
};

/// A call of a template, a block, a macro or a recursive loop.
pub(crate) struct Fun {
    slots: RefCell<Vec<Value>>,
    outer: Option<Rc<Fun>>,
    pub(crate) ctx: Rc<Context>,
    pub(crate) unit: Rc<Unit>,
    /// The template that this one extends, once that is known.
    pub(crate) parent: RefCell<Option<Rc<Unit>>>,
    /// Variables that `set` made in the innermost loop, for functions that take the context.
    pub(crate) loop_vars: RefCell<Vec<(Str, Value)>>,
    /// Likewise, in a block.
    pub(crate) block_vars: RefCell<Vec<(Str, Value)>>,
    /// The output of a set block is captured even in a template that extends another one.
    pub(crate) capturing: Cell<u32>,
}

impl Fun {
    pub(crate) fn new(
        rt: &Rt,
        slots: u32,
        outer: Option<Rc<Self>>,
        ctx: Rc<Context>,
        unit: Rc<Unit>,
    ) -> R<Rc<Self>> {
        let slots = usize::try_from(slots).unwrap_or_default();
        rt.alloc(memory(slots))?;
        Ok(Rc::new(Self {
            slots: RefCell::new(vec![Value::Missing; slots]),
            outer,
            ctx,
            unit,
            parent: RefCell::default(),
            loop_vars: RefCell::default(),
            block_vars: RefCell::default(),
            capturing: Cell::new(0),
        }))
    }

    /// Runs the body of the call, and ends it even if it fails. Variables that a macro may still need are retained.
    pub(crate) fn run<T>(self: Rc<Self>, rt: &Rt, body: impl FnOnce(&Rc<Self>) -> R<T>) -> R<T> {
        let done = body(&self);
        if Rc::strong_count(&self) > 1 {
            let retained = rt.retain(self);
            return done.and_then(|done| retained.map(|()| done));
        }
        rt.free(memory(self.slots.borrow().len()));
        done
    }

    pub(crate) fn cx<'a>(&'a self, rt: &'a Rt) -> Cx<'a> {
        Cx { rt, ctx: &self.ctx }
    }

    fn out(&self, count: u16) -> Option<&Self> {
        let mut fun = self;
        for _ in 0..count {
            fun = fun.outer.as_deref()?;
        }
        Some(fun)
    }

    pub(crate) fn get(&self, slot: Slot) -> Value {
        let Some(fun) = self.out(slot.out) else {
            return Value::Missing;
        };
        let slots = fun.slots.borrow();
        let value = usize::try_from(slot.at).ok().and_then(|at| slots.get(at));
        value.cloned().unwrap_or(Value::Missing)
    }

    pub(crate) fn set(&self, slot: Slot, value: Value) {
        if let Some(fun) = self.out(slot.out) {
            fun.set_own(slot.at, value);
        }
    }

    pub(crate) fn set_own(&self, at: u32, value: Value) {
        let mut slots = self.slots.borrow_mut();
        let target = usize::try_from(at).ok().and_then(|at| slots.get_mut(at));
        if let Some(target) = target {
            let old = std::mem::replace(target, value);
            // Drops may run any code, so nothing may be borrowed.
            drop(slots);
            drop(old);
        }
    }

    /// Initializes the variables of a scope.
    pub(crate) fn enter(&self, rt: &Rt, scope: &Scope) -> R<()> {
        rt.step(scope.loads.len() as u64 / 8)?;
        for (at, load) in &scope.loads {
            let value = match load {
                Load::Parameter => continue,
                Load::Resolve(name) => {
                    rt.step(1)?;
                    self.ctx.resolve(rt, name).unwrap_or(Value::Missing)
                }
                Load::Alias(slot) => self.get(*slot),
                Load::Undefined => Value::Missing,
            };
            self.set_own(*at, value);
        }
        Ok(())
    }

    pub(crate) fn leave(&self, scope: &Scope) {
        for (at, _) in &scope.loads {
            self.set_own(*at, Value::Missing);
        }
    }

    /// Returns the context, with the variables of this loop or block.
    pub(crate) fn visible_context(&self, rt: &Rt, in_loop: bool, in_block: bool) -> R<Rc<Context>> {
        let mut visible = Vec::new();
        if in_loop {
            visible.extend(self.loop_vars.borrow().iter().cloned());
        }
        if in_block {
            visible.extend(self.block_vars.borrow().iter().cloned());
        }
        if visible.is_empty() {
            return Ok(self.ctx.clone());
        }
        rt.alloc(visible.len().saturating_mul(ENTRY))?;
        Context::derived(rt, &self.ctx, visible)
    }
}

/// Returns the memory of a call with this number of variables, in bytes.
fn memory(slots: usize) -> usize {
    slots.saturating_mul(size_of::<Value>()).saturating_add(ENTRY * 2)
}

impl Release for Fun {
    fn release(&self) {
        let slots = std::mem::take(&mut *self.slots.borrow_mut());
        drop(slots);
        self.loop_vars.borrow_mut().clear();
        self.block_vars.borrow_mut().clear();
        self.ctx.clear();
    }
}

impl Drop for Fun {
    fn drop(&mut self) {
        bury(std::mem::take(self.slots.get_mut()).into_iter());
    }
}
