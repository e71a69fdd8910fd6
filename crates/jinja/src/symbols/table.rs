//! The names of all scopes of a template.

use std::{
    collections::{HashMap, HashSet},
    rc::Rc,
};

use tree::Exceeded;

use crate::{
    ast::{Slot, VisibleScope, VisibleVariable},
    meter::Meter,
    value::Str,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Id {
    pub(super) func: usize,
    pub(super) slot: u32,
}

/// The initial value of a slot in its scope.
#[derive(Debug, Clone)]
pub(super) enum LoadKind {
    Parameter,
    Resolve(Str),
    Alias(Id),
    Undefined,
}

#[derive(Debug, Default)]
struct ScopeNames {
    parent: Option<usize>,
    func: usize,
    /// Scopes of the same level and kind share their slots, as they are never entered within each other.
    level: (u32, u32),
    refs: HashMap<Str, Id>,
    order: Vec<Id>,
    loads: HashMap<Id, LoadKind>,
    stores: Vec<Str>,
    stored: HashSet<Str>,
    /// The stores as statements see them, if there were no other ones since then.
    visible: Option<Rc<VisibleScope>>,
}

#[derive(Debug, Default)]
struct Function {
    depth: u16,
    slots: u32,
    names: HashMap<(u32, u32, Str), u32>,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    scopes: Vec<ScopeNames>,
    funcs: Vec<Function>,
    kinds: u32,
}

impl Table {
    /// Opens a function, within another one or on its own.
    pub(super) fn function(&mut self, outer: Option<usize>) -> usize {
        let depth = outer
            .and_then(|outer| self.funcs.get(outer))
            .map_or(0, |outer| outer.depth + 1);
        self.funcs.push(Function {
            depth,
            ..Function::default()
        });
        self.funcs.len() - 1
    }

    /// Opens a scope. `kind` separates the slots of scopes that are entered at the same time.
    pub(super) fn scope(&mut self, parent: Option<usize>, func: usize, kind: u32) -> usize {
        let level = parent
            .and_then(|parent| self.scopes.get(parent))
            .map_or(0, |parent| parent.level.0 + 1);
        self.scopes.push(ScopeNames {
            parent,
            func,
            level: (level, kind),
            ..ScopeNames::default()
        });
        self.scopes.len() - 1
    }

    /// Returns a new kind of scope.
    pub(super) fn kind(&mut self) -> u32 {
        self.kinds += 1;
        self.kinds
    }

    pub(super) fn slots(&self, func: usize) -> u32 {
        self.funcs.get(func).map_or(0, |func| func.slots)
    }

    pub(super) fn func_of(&self, scope: usize) -> usize {
        self.scopes.get(scope).map_or(0, |scope| scope.func)
    }

    /// Returns the number of outer scopes.
    pub(super) fn nesting(&self, scope: usize) -> u64 {
        self.scopes.get(scope).map_or(0, |scope| u64::from(scope.level.0))
    }

    /// Returns the number of outer functions.
    pub(super) fn depth(&self, func: usize) -> u16 {
        self.funcs.get(func).map_or(0, |func| func.depth)
    }

    /// Returns a slot as another function reaches it.
    pub(super) fn seen_from(&self, func: usize, id: Id) -> Slot {
        Slot {
            out: self.depth(func).saturating_sub(self.depth(id.func)),
            at: id.slot,
        }
    }

    pub(super) fn loads(&self, scope: usize) -> impl Iterator<Item = (&Id, &LoadKind)> {
        let scope = self.scopes.get(scope);
        scope.into_iter().flat_map(|scope| {
            scope
                .order
                .iter()
                .filter_map(|id| Some((id, scope.loads.get(id)?)))
        })
    }

    fn ancestors(&self, scope: usize) -> impl Iterator<Item = &ScopeNames> {
        let mut next = Some(scope);
        std::iter::from_fn(move || {
            let scope = self.scopes.get(next?)?;
            next = scope.parent;
            Some(scope)
        })
    }

    pub(super) fn find(&self, scope: usize, name: &str) -> Option<Id> {
        self.ancestors(scope)
            .find_map(|scope| scope.refs.get(name).copied())
    }

    fn find_outer(&self, scope: usize, name: &str) -> Option<Id> {
        self.ancestors(scope)
            .skip(1)
            .find_map(|scope| scope.refs.get(name).copied())
    }

    pub(super) fn find_load(&self, scope: usize, id: Id) -> Option<&LoadKind> {
        self.ancestors(scope).find_map(|scope| scope.loads.get(&id))
    }

    fn define(&mut self, scope: usize, name: &Str, load: LoadKind) -> Id {
        let Some(names) = self.scopes.get_mut(scope) else {
            return Id { func: 0, slot: 0 };
        };
        let mut slot = 0;
        if let Some(func) = self.funcs.get_mut(names.func) {
            let key = (names.level.0, names.level.1, name.clone());
            slot = *func.names.entry(key).or_insert_with(|| {
                func.slots += 1;
                func.slots - 1
            });
        }
        let id = Id {
            func: names.func,
            slot,
        };
        names.refs.insert(name.clone(), id);
        if names.loads.insert(id, load).is_none() {
            names.order.push(id);
        }
        id
    }

    fn mark_stored(&mut self, scope: usize, name: &Str) {
        if let Some(names) = self.scopes.get_mut(scope)
            && names.stored.insert(name.clone())
        {
            names.stores.push(name.clone());
            names.visible = None;
        }
    }

    pub(super) fn store(&mut self, scope: usize, name: &Str) {
        self.mark_stored(scope, name);
        let known = self
            .scopes
            .get(scope)
            .is_some_and(|names| names.refs.contains_key(name));
        if !known {
            let load = match self.find_outer(scope, name) {
                Some(outer) => LoadKind::Alias(outer),
                None => LoadKind::Undefined,
            };
            self.define(scope, name, load);
        }
    }

    pub(super) fn declare(&mut self, scope: usize, name: &Str) -> Id {
        self.mark_stored(scope, name);
        self.define(scope, name, LoadKind::Parameter)
    }

    pub(super) fn load(&mut self, scope: usize, name: &Str) {
        if self.find(scope, name).is_none() {
            self.define(scope, name, LoadKind::Resolve(name.clone()));
        }
    }

    pub(super) fn stored(&self, scope: usize) -> usize {
        self.scopes.get(scope).map_or(0, |names| names.stores.len())
    }

    /// Lets names that only one branch stores retain their outer value on the other branches.
    pub(super) fn branched(&mut self, scope: usize, before: usize) {
        let Some(names) = self.scopes.get(scope) else {
            return;
        };
        let new: Vec<Str> = names.stores.iter().skip(before).cloned().collect();
        for name in new {
            let load = match self.find_outer(scope, &name) {
                Some(outer) => LoadKind::Alias(outer),
                None => LoadKind::Resolve(name.clone()),
            };
            if let (Some(id), Some(names)) = (self.find(scope, &name), self.scopes.get_mut(scope)) {
                names.loads.insert(id, load);
            }
        }
    }

    /// Returns all names that are set here or in outer scopes. The names of a scope are listed once for all its statements.
    pub(super) fn visible(
        &mut self,
        scope: usize,
        meter: &Meter,
    ) -> Result<Option<Rc<VisibleScope>>, Exceeded> {
        let mut missing = Vec::new();
        let (mut next, mut outer) = (Some(scope), None);
        while let Some(names) = next.and_then(|scope| self.scopes.get(scope)) {
            meter.step(1)?;
            // Stores of a scope are never added after the statements of an inner one.
            if let Some(known) = &names.visible {
                outer = Some(known.clone());
                break;
            }
            missing.extend(next);
            next = names.parent;
        }
        for scope in missing.into_iter().rev() {
            let stored = self.scopes.get(scope).map_or(0, |names| names.stores.len());
            meter.step(stored as u64)?;
            meter.alloc((stored + 1) as u64 * size_of::<VisibleVariable>() as u64)?;
            let made = Rc::new(VisibleScope {
                variables: self.variables(scope),
                outer: outer.take(),
            });
            if let Some(names) = self.scopes.get_mut(scope) {
                names.visible = Some(made.clone());
            }
            outer = Some(made);
        }
        Ok(outer)
    }

    fn variables(&self, scope: usize) -> Vec<VisibleVariable> {
        let Some(names) = self.scopes.get(scope) else {
            return Vec::new();
        };
        let variable = |name: &Str| {
            let id = names.refs.get(name)?;
            Some(VisibleVariable {
                name: name.clone(),
                depth: self.depth(id.func),
                at: id.slot,
            })
        };
        names.stores.iter().filter_map(variable).collect()
    }
}
