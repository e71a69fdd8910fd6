//! The template engine of a renderer, and the contexts of its templates: variables by name, and blocks.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    rc::Rc,
};

use indexmap::IndexSet;

use super::unit::Unit;
use crate::{
    ast::Block,
    exc::{R, raise},
    format::repr,
    rt::{ENTRY, Rt},
    symbols::Vocabulary,
    value::{DictMap, Key, Str, Value, args::Args},
};

pub(crate) type Filter = fn(&Cx<'_>, Value, Args) -> R<Value>;

pub(crate) type Test = fn(&Cx<'_>, &Value, Args) -> R<bool>;

/// The library of the dialect, by name.
#[derive(Clone, Copy)]
pub(crate) struct Language {
    pub(crate) filter: fn(&str) -> Option<Filter>,
    pub(crate) test: fn(&str) -> Option<Test>,
    pub(crate) method: fn(&Cx<'_>, &Value, &str, Args) -> R<Value>,
    pub(crate) constructor: fn(&Cx<'_>, &str, Args) -> R<Value>,
}

impl Vocabulary for Language {
    fn has_filter(&self, name: &str) -> bool {
        (self.filter)(name).is_some()
    }

    fn has_test(&self, name: &str) -> bool {
        (self.test)(name).is_some()
    }
}

/// The library of the dialect and the parsed templates of a renderer.
pub(crate) struct Engine {
    pub(crate) language: Language,
    /// Templates by name, parsed once per renderer.
    pub(super) units: RefCell<HashMap<Str, Rc<Unit>>>,
}

impl Engine {
    pub(crate) fn new(language: Language) -> Self {
        Self {
            language,
            units: RefCell::default(),
        }
    }

    pub(crate) fn clear(&self) {
        let units = self.units.take();
        drop(units);
    }
}

/// The state that filters, tests and functions are called with.
pub(crate) struct Cx<'a> {
    pub(crate) rt: &'a Rt,
    pub(crate) ctx: &'a Rc<Context>,
}

impl Cx<'_> {
    pub(crate) fn language(&self) -> &Language {
        &self.ctx.engine.language
    }

    pub(crate) fn apply_filter(&self, name: &str, value: Value, args: Args) -> R<Value> {
        match (self.language().filter)(name) {
            Some(apply) => apply(self, value, args),
            None => raise(
                "TemplateRuntimeError",
                format!("No filter named {}.", repr::quoted(name)),
            ),
        }
    }

    pub(crate) fn apply_test(&self, name: &str, value: &Value, args: Args) -> R<bool> {
        match (self.language().test)(name) {
            Some(test) => test(self, value, args),
            None => raise(
                "TemplateRuntimeError",
                format!("No test named {}.", repr::quoted(name)),
            ),
        }
    }

    /// Returns a value as a string; values of other types are printed.
    pub(crate) fn text_of(&self, value: &Value) -> R<Str> {
        match value {
            Value::Str(text) | Value::Markup(text) => {
                self.rt.read(text.len())?;
                Ok(text.clone())
            }
            _ => self.rt.made(repr::text(self.rt, value)?),
        }
    }
}

/// The memory of a variable in a context, in bytes.
const VARIABLE: usize = 96;

/// The memory of the name of an exported variable, in bytes.
const EXPORT: usize = 64;

/// The memory of a block in a context, in bytes.
const BLOCK: usize = 128;

/// Counts blocks of a new context.
fn count_blocks(rt: &Rt, count: usize) -> R<()> {
    rt.step(count as u64)?;
    rt.alloc(count.saturating_mul(BLOCK))
}

type BlockList = Vec<(Rc<Unit>, Rc<Block>)>;

/// The variables at the top level of a template, and the ones around it.
pub(crate) struct Context {
    pub(crate) engine: Rc<Engine>,
    parent: Option<Rc<Context>>,
    /// The variables that were visible where the context was made.
    locals: Vec<(Str, Value)>,
    vars: RefCell<HashMap<Str, Value>>,
    exported: RefCell<IndexSet<Str>>,
    pub(crate) blocks: RefCell<HashMap<Str, BlockList>>,
    /// The number of blocks that were counted when the context was made.
    counted_blocks: usize,
    pub(crate) unit: Rc<Unit>,
}

impl Context {
    /// Makes the context of a template that sees global variables only.
    pub(crate) fn root(rt: &Rt, engine: &Rc<Engine>, unit: &Rc<Unit>) -> R<Rc<Self>> {
        Self::around(rt, engine, unit, None, Vec::new())
    }

    /// Makes the context of a template that is rendered within another one.
    /// The caller counted the variables.
    pub(crate) fn within(
        rt: &Rt,
        parent: &Rc<Self>,
        unit: &Rc<Unit>,
        locals: Vec<(Str, Value)>,
    ) -> R<Rc<Self>> {
        Self::around(rt, &parent.engine, unit, Some(parent.clone()), locals)
    }

    fn around(
        rt: &Rt,
        engine: &Rc<Engine>,
        unit: &Rc<Unit>,
        parent: Option<Rc<Self>>,
        locals: Vec<(Str, Value)>,
    ) -> R<Rc<Self>> {
        count_blocks(rt, unit.ast.blocks.len())?;
        let blocks = unit.ast.blocks.iter();
        let blocks = blocks.map(|block| (block.name.clone(), vec![(unit.clone(), block.clone())]));
        Ok(Rc::new(Self {
            engine: engine.clone(),
            parent,
            locals,
            vars: RefCell::default(),
            exported: RefCell::default(),
            blocks: RefCell::new(blocks.collect()),
            counted_blocks: unit.ast.blocks.len(),
            unit: unit.clone(),
        }))
    }

    /// Makes a context of the same template with more variables, which the caller counted.
    pub(crate) fn derived(rt: &Rt, of: &Rc<Self>, locals: Vec<(Str, Value)>) -> R<Rc<Self>> {
        rt.step(locals.len() as u64 / 4)?;
        let counted_blocks = of.blocks.borrow().len();
        count_blocks(rt, counted_blocks)?;
        Ok(Rc::new(Self {
            engine: of.engine.clone(),
            parent: Some(of.clone()),
            locals,
            vars: RefCell::default(),
            exported: RefCell::default(),
            blocks: RefCell::new(of.blocks.borrow().clone()),
            counted_blocks,
            unit: of.unit.clone(),
        }))
    }

    /// Ends the use of a context within another one. Its memory is free, unless a function retains it.
    pub(crate) fn end(context: &Rc<Self>, rt: &Rt) {
        if Rc::strong_count(context) == 1 {
            let bytes = context.locals.len() * ENTRY
                + context.vars.borrow().len() * VARIABLE
                + context.exported.borrow().len() * EXPORT
                + context.counted_blocks * BLOCK;
            rt.free(bytes);
        }
    }

    pub(crate) fn resolve(&self, rt: &Rt, name: &str) -> Option<Value> {
        let mut context = self;
        loop {
            // An exceeded budget ends the next step.
            let _ = rt.step(context.locals.len() as u64 / 32);
            if let Some(value) = context.own(name) {
                return Some(value);
            }
            match &context.parent {
                Some(parent) => context = parent,
                None => return rt.global(name),
            }
        }
    }

    fn own(&self, name: &str) -> Option<Value> {
        if let Some(value) = self.vars.borrow().get(name) {
            return Some(value.clone());
        }
        let mut locals = self.locals.iter().rev();
        locals
            .find(|(known, _)| **known == *name)
            .map(|(_, value)| value.clone())
    }

    pub(crate) fn set(&self, rt: &Rt, name: &Str, value: Value) -> R<()> {
        let known = self
            .vars
            .borrow_mut()
            .get_mut(name)
            .map(|known| std::mem::replace(known, value.clone()));
        if known.is_none() {
            rt.alloc(VARIABLE)?;
            self.vars.borrow_mut().insert(name.clone(), value);
        }
        Ok(())
    }

    /// Makes a name visible to importing templates.
    pub(crate) fn export(&self, rt: &Rt, name: &Str) -> R<()> {
        if self.exported.borrow_mut().insert(name.clone()) {
            rt.alloc(EXPORT)?;
        }
        Ok(())
    }

    pub(crate) fn hide(&self, name: &str) {
        self.exported.borrow_mut().shift_remove(name);
    }

    pub(crate) fn exports(&self) -> DictMap {
        let exported = self.exported.borrow();
        let vars = self.vars.borrow();
        let exports = exported
            .iter()
            .filter_map(|name| Some((Key::from(name.clone()), vars.get(name)?.clone())));
        exports.collect()
    }

    /// Returns all variables except functions of the dialect.
    pub(crate) fn all(&self, rt: &Rt) -> DictMap {
        let mut names: Vec<Str> = rt.vars.values.keys().cloned().collect();
        names.sort_unstable();
        let mut seen: HashSet<Str> = names.iter().cloned().collect();
        let mut context = Some(self);
        while let Some(one) = context {
            let vars = one.vars.borrow();
            // An exceeded budget ends the next step.
            let _ = rt.step((vars.len() + one.locals.len()) as u64);
            let mut own: Vec<&Str> = vars
                .keys()
                .chain(one.locals.iter().map(|(name, _)| name))
                .collect();
            own.sort_unstable();
            for name in own {
                if seen.insert(name.clone()) {
                    names.push(name.clone());
                }
            }
            context = one.parent.as_deref();
        }
        let pairs = names.into_iter().filter_map(|name: Str| {
            let value = self.resolve(rt, &name)?;
            Some((Key::from(name), value))
        });
        pairs.collect()
    }

    pub(crate) fn clear(&self) {
        let vars = std::mem::take(&mut *self.vars.borrow_mut());
        drop(vars);
    }
}
