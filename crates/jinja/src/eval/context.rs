//! What templates show each other: variables by name, and blocks.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    rc::Rc,
};

use super::load::Unit;
use crate::{
    ast::Block,
    rt::Rt,
    value::{DictMap, Key, Str, Value},
};

type BlockList = Vec<(Rc<Unit>, Rc<Block>)>;

/// The variables at the top level of a template, and those around it.
pub(crate) struct Context {
    parent: Option<Rc<Context>>,
    /// What was visible where this was made.
    locals: Vec<(Str, Value)>,
    vars: RefCell<HashMap<Str, Value>>,
    exported: RefCell<Vec<Str>>,
    pub(crate) blocks: RefCell<HashMap<Str, BlockList>>,
    /// The template that it was made for.
    pub(crate) unit: Rc<Unit>,
}

impl Context {
    /// The context of a template. Without a parent only global variables are around it.
    pub(crate) fn new(unit: &Rc<Unit>, parent: Option<Rc<Self>>, locals: Vec<(Str, Value)>) -> Rc<Self> {
        let blocks = unit.ast.blocks.iter();
        let blocks = blocks.map(|block| (block.name.clone(), vec![(unit.clone(), block.clone())]));
        Rc::new(Self {
            parent,
            locals,
            vars: RefCell::default(),
            exported: RefCell::default(),
            blocks: RefCell::new(blocks.collect()),
            unit: unit.clone(),
        })
    }

    /// The same template, with more variables.
    pub(crate) fn derived(of: &Rc<Self>, locals: Vec<(Str, Value)>) -> Rc<Self> {
        Rc::new(Self {
            parent: Some(of.clone()),
            locals,
            vars: RefCell::default(),
            exported: RefCell::default(),
            blocks: RefCell::new(of.blocks.borrow().clone()),
            unit: of.unit.clone(),
        })
    }

    pub(crate) fn resolve(&self, rt: &Rt, name: &str) -> Option<Value> {
        let mut context = self;
        loop {
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

    pub(crate) fn set(&self, name: &Str, value: Value) {
        let old = self.vars.borrow_mut().insert(name.clone(), value);
        drop(old);
    }

    /// Shows a name to who imports the template.
    pub(crate) fn export(&self, name: &Str) {
        let mut exported = self.exported.borrow_mut();
        if !exported.contains(name) {
            exported.push(name.clone());
        }
    }

    pub(crate) fn hide(&self, name: &str) {
        self.exported.borrow_mut().retain(|known| **known != *name);
    }

    pub(crate) fn exports(&self) -> DictMap {
        let exported = self.exported.borrow();
        let vars = self.vars.borrow();
        let exports = exported
            .iter()
            .filter_map(|name| Some((Key::from(name.clone()), vars.get(name)?.clone())));
        exports.collect()
    }

    /// All variables but the functions of the dialect.
    pub(crate) fn all(&self, rt: &Rt) -> DictMap {
        let mut names: Vec<Str> = rt.vars.values.keys().cloned().collect();
        names.sort_unstable();
        let mut seen: HashSet<Str> = names.iter().cloned().collect();
        let mut context = Some(self);
        while let Some(one) = context {
            let vars = one.vars.borrow();
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
