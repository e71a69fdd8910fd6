//! The objects of a build, in the order in which they were accumulated.

mod absorb;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use crate::{
    Error,
    error::Step,
    id::Id,
    resource::{Behavior, Resource},
};

/// A list of objects. No two that are appended may have the same current identity.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResMap {
    list: Vec<Resource>,
    /// The identities of the objects, as long as nothing changed them.
    current: Option<HashSet<Arc<Id>>>,
    /// The objects by their present and past identities, as long as nothing changed them.
    any: Option<HashMap<Arc<Id>, Vec<usize>>>,
}

impl ResMap {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Resource> {
        self.list.iter()
    }

    pub(crate) fn list_mut(&mut self) -> &mut Vec<Resource> {
        self.current = None;
        self.any = None;
        &mut self.list
    }

    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, Resource> {
        self.list_mut().iter_mut()
    }

    pub(crate) fn into_list(self) -> Vec<Resource> {
        self.list
    }

    /// Fails if an object of the same identity exists.
    pub(crate) fn append(&mut self, resource: Resource) -> Result<(), Error> {
        let list = &self.list;
        let current = self
            .current
            .get_or_insert_with(|| list.iter().map(|resource| resource.id().clone()).collect());
        if !current.insert(resource.id().clone()) {
            return Err(is_there(&resource));
        }
        if let Some(any) = &mut self.any {
            let index = self.list.len();
            for id in resource.all_ids() {
                enter(any, id, index);
            }
        }
        self.list.push(resource);
        Ok(())
    }

    pub(crate) fn append_all(&mut self, mut other: Self) -> Result<(), Error> {
        if self.list.is_empty() {
            if other.current.is_none() {
                other.refuse_equal_by_now().map_err(|(error, _)| error)?;
            }
            *self = other;
            return Ok(());
        }
        other
            .list
            .into_iter()
            .try_for_each(|resource| self.append(resource))
    }

    /// Returns the indices of the objects that have or had an identity; empty objects don't count.
    pub(crate) fn find_any(&mut self, id: &Id) -> Vec<usize> {
        let list = &self.list;
        let any = self.any.get_or_insert_with(|| {
            let mut any = HashMap::new();
            for (index, resource) in list.iter().enumerate() {
                for id in resource.all_ids() {
                    enter(&mut any, id, index);
                }
            }
            any
        });
        let found = any.get(id).map(Vec::as_slice).unwrap_or_default();
        let left = |index: &&usize| list.get(**index).is_some_and(|resource| !resource.is_empty());
        found.iter().filter(left).copied().collect()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Resource> {
        self.list.get(index)
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut Resource> {
        self.list_mut().get_mut(index)
    }

    /// Returns an object for changes beyond its identity. After a change of its identity, call [`Self::forget_indices`].
    pub(crate) fn get_mut_keeping_id(&mut self, index: usize) -> Option<&mut Resource> {
        self.list.get_mut(index)
    }

    /// Forgets the identities, after one changed.
    pub(crate) fn forget_indices(&mut self) {
        self.current = None;
        self.any = None;
    }

    /// Refuses objects of equal identity, and drops empty ones. Objects that are known to differ are not compared.
    pub(crate) fn refuse_equal(&mut self) -> Result<(), Error> {
        self.drop_empties();
        if self.current.is_some() {
            return Ok(());
        }
        self.refuse_equal_by_now().map_err(|(error, _)| error)
    }

    /// Refuses objects of equal identity, with the second one in the error. All identities are known afterwards.
    pub(crate) fn refuse_equal_by_now(&mut self) -> Result<(), (Error, &Resource)> {
        self.forget_indices();
        let mut current = HashSet::with_capacity(self.list.len());
        let mut is_new = |resource: &Resource| current.insert(resource.id().clone());
        if let Some(second) = self.list.iter().find(|resource| !is_new(resource)) {
            return Err((is_there(second), second));
        }
        self.current = Some(current);
        Ok(())
    }

    /// Drops empty objects.
    pub(crate) fn drop_empties(&mut self) {
        if self.list.iter().any(Resource::is_empty) {
            self.list_mut().retain(|resource| !resource.is_empty());
        }
    }

    /// Absorbs generated objects, each by its behavior. Fails if an object exists that must be new, or one is missing that
    /// must exist.
    pub(crate) fn absorb_all(&mut self, generated: Self) -> Result<(), Error> {
        generated
            .list
            .into_iter()
            .try_for_each(|resource| self.absorb(resource))
    }

    fn absorb(&mut self, resource: Resource) -> Result<(), Error> {
        let id = resource.id().clone();
        let behavior = resource.history.behavior;
        let found = self.find_any(&id);
        let index = match (found.as_slice(), behavior) {
            ([], Behavior::Merge | Behavior::Replace) => {
                let problem = format!("id {id} does not exist; cannot merge or replace");
                return Err(Error::new(Step::Generator, problem));
            }
            ([], _) => return self.append(resource),
            ([index], Behavior::Merge | Behavior::Replace) => *index,
            ([_], _) => {
                let behavior = behavior.as_str();
                let problem = format!(
                    "id {id} exists; can not use behavior: '{behavior}', behavior must be merge or replace"
                );
                return Err(Error::new(Step::Generator, problem));
            }
            (several, _) => {
                let several: Vec<_> = several.iter().filter_map(|index| self.get(*index)).collect();
                let ids: Vec<_> = several.iter().map(|found| found.id().to_string()).collect();
                let problem = format!(
                    "found multiple objects [{}] that could accept merge of {id}",
                    ids.join(" ")
                );
                return Err(Error::new(Step::Generator, problem));
            }
        };
        let Some(old) = self.list.get_mut(index) else {
            return Ok(());
        };
        let merged = absorb::absorbed(old, resource);
        let moved = merged.id() != old.id();
        *old = merged;
        // It gets name, namespace and history of the old one, and so its index, unless a patch had changed its kind.
        if moved {
            self.forget_indices();
        }
        Ok(())
    }
}

fn is_there(resource: &Resource) -> Error {
    let id = resource.id();
    let problem = format!("may not add resource with an already registered id: {id}");
    Error::new(Step::Accumulate, problem)
}

fn enter(any: &mut HashMap<Arc<Id>, Vec<usize>>, id: Arc<Id>, index: usize) {
    let indices = any.entry(id).or_default();
    if indices.last() != Some(&index) {
        indices.push(index);
    }
}

impl FromIterator<Resource> for ResMap {
    fn from_iter<I: IntoIterator<Item = Resource>>(resources: I) -> Self {
        Self {
            list: resources.into_iter().collect(),
            ..Self::default()
        }
    }
}
