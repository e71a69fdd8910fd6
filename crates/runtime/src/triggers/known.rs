//! The known states of the objects of a kind. Pure.

use std::collections::{HashMap, HashSet};

use kube::{ResourceExt, core::DynamicObject, runtime::watcher::Event};

use super::watched::Watched;
use crate::queue::ObjectKey;

/// A change of a watched object, whose state is `T`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change<T> {
    /// A list begins.
    ListStarted,
    Exists(ObjectKey, T),
    Deleted(ObjectKey),
    /// All objects of the list were seen.
    ListDone,
}

impl<T> Change<T> {
    /// Reads the state of the object in an event.
    pub fn of<F: 'static>(event: Event<Watched<F>>, read: impl Fn(&DynamicObject) -> T) -> Self {
        let key =
            |object: &Watched<F>| ObjectKey::new(object.namespace().unwrap_or_default(), object.name_any());
        match event {
            Event::Init => Self::ListStarted,
            Event::InitApply(object) | Event::Apply(object) => {
                Self::Exists(key(&object), read(&object.object))
            }
            Event::Delete(object) => Self::Deleted(key(&object)),
            Event::InitDone => Self::ListDone,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum Effect<T> {
    /// An object is new or may have changed: its state before (the default if it is new) and now.
    Changed { key: ObjectKey, before: T, now: T },
    /// These objects are gone.
    Gone(Vec<(ObjectKey, T)>),
}

/// The known states of the objects of a kind.
#[derive(Debug)]
pub struct Known<T> {
    objects: HashMap<ObjectKey, T>,
    /// The objects that a running list has shown so far.
    listed: Option<HashSet<ObjectKey>>,
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self {
            objects: HashMap::new(),
            listed: None,
        }
    }
}

impl<T: Clone + Default> Known<T> {
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<&T> {
        self.objects.get(key)
    }

    /// Takes in a change, and returns its effect.
    pub fn apply(&mut self, change: Change<T>) -> Effect<T> {
        match change {
            Change::ListStarted => {
                self.listed = Some(HashSet::new());
                Effect::Gone(Vec::new())
            }
            Change::Deleted(key) => Effect::Gone(self.objects.remove_entry(&key).into_iter().collect()),
            Change::ListDone => {
                let listed = self.listed.take();
                let is_gone = |key: &ObjectKey| listed.as_ref().is_some_and(|listed| !listed.contains(key));
                Effect::Gone(self.objects.extract_if(|key, _| is_gone(key)).collect())
            }
            Change::Exists(key, now) => {
                if let Some(listed) = &mut self.listed {
                    listed.insert(key.clone());
                }
                let before = self.objects.insert(key.clone(), now.clone()).unwrap_or_default();
                Effect::Changed { key, before, now }
            }
        }
    }
}
