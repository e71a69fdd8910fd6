//! The names of all scopes of a template.

use std::collections::{HashMap, HashSet};

use crate::{ast::Slot, value::Str};

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

    /// Returns a slot as another function reaches it.
    pub(super) fn seen_from(&self, func: usize, id: Id) -> Slot {
        let depth = |func: usize| self.funcs.get(func).map_or(0, |func| func.depth);
        Slot {
            out: depth(func).saturating_sub(depth(id.func)),
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

    /// Returns all names that are set here or in outer scopes.
    pub(super) fn visible(&self, scope: usize) -> Vec<(Str, Id)> {
        let mut seen = HashSet::new();
        let mut visible = Vec::new();
        for names in self.ancestors(scope) {
            for name in &names.stores {
                if seen.insert(name.clone()) {
                    visible.extend(self.find(scope, name).map(|id| (name.clone(), id)));
                }
            }
        }
        visible
    }
}
