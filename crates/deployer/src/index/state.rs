//! The known objects of each kind, by the value of their label. Pure.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use runtime::{
    ObjectKey,
    triggers::{Change, Effect, Known},
};

use super::LabelledObject;

/// Maximum number of objects of all kinds, about 100 MB. With more, nothing is known of the kind with the most.
const MAX_OBJECTS: usize = 400_000;
/// Maximum number of objects with a value for which there is an answer: as many as a deployment may have by default. Anybody may label
/// objects, and each pass of the owner would visit all of them.
const OBJECTS_OF_VALUE: usize = 20_000;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Labelled {
    pub(super) value: Box<str>,
    pub(super) version: Box<str>,
}

pub(super) type KindName = Arc<(String, String)>;

/// A kind with the watch that may change its objects: one that began later for the same kind replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WatchedKind {
    pub(super) name: KindName,
    watch: u64,
}

/// The phase of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    /// Nothing is known yet.
    #[default]
    Starting,
    /// All kinds are known, and have watches.
    Watching,
    /// The controller may not watch everything, or the kinds can't be read.
    Off,
}

#[derive(Debug, Default)]
struct KindState {
    known: Known<Labelled>,
    /// True while a watch that has listed all objects is running.
    is_synced: bool,
    /// True if a watch failed since the last list.
    has_failed: bool,
    /// True if the kind can be listed and not watched, or has too many objects.
    is_unwatchable: bool,
    /// True if the kind has too many objects, until they are listed again.
    is_overfull: bool,
    /// Number of its objects.
    objects: usize,
    watch: u64,
}

#[derive(Debug)]
pub(super) struct State {
    max_objects: usize,
    /// Number of objects of all kinds.
    objects: usize,
    phase: Phase,
    kinds: HashMap<KindName, KindState>,
    by_value: HashMap<Box<str>, HashSet<(KindName, ObjectKey)>>,
    /// Number of watches that began.
    watches: u64,
}

impl Default for State {
    fn default() -> Self {
        Self {
            max_objects: MAX_OBJECTS,
            objects: 0,
            phase: Phase::default(),
            kinds: HashMap::new(),
            by_value: HashMap::new(),
            watches: 0,
        }
    }
}

impl State {
    /// Returns true as long as first lists are missing.
    pub(super) fn is_starting(&self) -> bool {
        let is_listing = |kind: &KindState| !(kind.is_synced || kind.has_failed || kind.is_unwatchable);
        match self.phase {
            Phase::Starting => true,
            Phase::Watching => self.kinds.values().any(is_listing),
            Phase::Off => false,
        }
    }

    /// Returns the objects whose label has a value, and one without a name for each kind that can't be watched; `None` if not all
    /// others are watched now, or there are more than 20,000.
    pub(super) fn objects(&self, value: &str) -> Option<Vec<LabelledObject>> {
        let is_unknown = |kind: &KindState| !kind.is_synced && !kind.is_unwatchable;
        if self.phase != Phase::Watching || self.kinds.values().any(is_unknown) {
            return None;
        }
        let found = self.by_value.get(value);
        if found.is_some_and(|objects| objects.len() > OBJECTS_OF_VALUE) {
            return None;
        }
        let found = found.into_iter().flatten();
        let version = |kind: &KindName, key: &ObjectKey| {
            let known = self.kinds.get(kind).and_then(|state| state.known.get(key));
            known.map(|object| object.version.to_string())
        };
        let object = |kind: &KindName, key: ObjectKey| LabelledObject {
            group: kind.0.clone(),
            kind: kind.1.clone(),
            version: version(kind, &key).unwrap_or_default(),
            key,
        };
        let unwatchable = self.kinds.iter().filter(|(_, state)| state.is_unwatchable);
        let unwatchable = unwatchable.map(|(kind, _)| object(kind, ObjectKey::new("", "")));
        let found = found.map(|(kind, key)| object(kind, key.clone()));
        Some(found.chain(unwatchable).collect())
    }

    /// Sets the served kinds, forgets all others, and returns the new ones.
    pub(super) fn serve(&mut self, served: &HashSet<KindName>) -> Vec<WatchedKind> {
        self.phase = Phase::Watching;
        let gone: Vec<KindName> = self
            .kinds
            .keys()
            .filter(|kind| !served.contains(*kind))
            .cloned()
            .collect();
        for kind in gone {
            self.forget_objects(&kind);
            self.kinds.remove(&kind);
        }
        let new: Vec<KindName> = served
            .iter()
            .filter(|kind| !self.kinds.contains_key(*kind))
            .cloned()
            .collect();
        let begin = |name: KindName| {
            self.watches += 1;
            let watch = self.watches;
            let state = KindState {
                watch,
                ..KindState::default()
            };
            self.kinds.insert(Arc::clone(&name), state);
            WatchedKind { name, watch }
        };
        new.into_iter().map(begin).collect()
    }

    /// Returns true if a watch is still needed.
    pub(super) fn has(&self, kind: &WatchedKind) -> bool {
        self.kinds
            .get(&kind.name)
            .is_some_and(|state| state.watch == kind.watch)
    }

    fn of(&mut self, kind: &WatchedKind) -> Option<&mut KindState> {
        let state = self.kinds.get_mut(&kind.name)?;
        (state.watch == kind.watch).then_some(state)
    }

    /// Turns the index off: it answers nothing until kinds are set again.
    pub(super) fn turn_off(&mut self) {
        self.phase = Phase::Off;
    }

    /// Returns true if a kind has too many objects: its watch is needed again when they may be fewer.
    pub(super) fn is_overfull(&self, kind: &WatchedKind) -> bool {
        self.has(kind) && self.kinds.get(&kind.name).is_some_and(|state| state.is_overfull)
    }

    /// Notes that the watch of a kind broke off: nothing is known of its objects until it has listed them again.
    pub(super) fn broke_off(&mut self, kind: &WatchedKind, is_watchable: bool) {
        if let Some(state) = self.of(kind) {
            state.is_synced = false;
            state.has_failed = true;
            state.is_unwatchable = !is_watchable;
        }
    }

    /// Applies a change of an object of a kind.
    pub(super) fn apply(&mut self, kind: &WatchedKind, change: Change<Labelled>) {
        let Some(state) = self.of(kind) else {
            return;
        };
        state.is_overfull &= change != Change::ListStarted;
        if state.is_overfull {
            return;
        }
        if change == Change::ListDone {
            (state.is_synced, state.is_unwatchable) = (true, false);
        }
        let effect = state.known.apply(change);
        let kind = &kind.name;
        match effect {
            Effect::Gone(objects) => {
                for (key, object) in objects {
                    self.remove(kind, key, &object.value);
                }
            }
            Effect::Changed { key, before, now } => {
                if before.value != now.value {
                    self.remove(kind, key.clone(), &before.value);
                }
                let objects = self.by_value.entry(now.value).or_default();
                if objects.insert((Arc::clone(kind), key)) {
                    self.objects += 1;
                    if let Some(state) = self.kinds.get_mut(kind) {
                        state.objects += 1;
                    }
                }
            }
        }
        if self.objects > self.max_objects {
            self.forget_largest();
        }
    }

    fn remove(&mut self, kind: &KindName, key: ObjectKey, value: &str) {
        let Some(objects) = self.by_value.get_mut(value) else {
            return;
        };
        if objects.remove(&(Arc::clone(kind), key)) {
            self.objects -= 1;
            if let Some(state) = self.kinds.get_mut(kind) {
                state.objects -= 1;
            }
        }
        if objects.is_empty() {
            self.by_value.remove(value);
        }
    }

    /// Forgets the objects of the kind with the most: it is searched for each deployment, like a kind that can't be watched.
    fn forget_largest(&mut self) {
        let largest = self.kinds.iter().max_by_key(|(_, state)| state.objects);
        let Some(largest) = largest.map(|(kind, _)| Arc::clone(kind)) else {
            return;
        };
        self.forget_objects(&largest);
        if let Some(state) = self.kinds.get_mut(&largest) {
            (state.is_overfull, state.is_unwatchable, state.is_synced) = (true, true, false);
        }
    }

    fn forget_objects(&mut self, kind: &KindName) {
        let Some(state) = self.kinds.get_mut(kind) else {
            return;
        };
        state.known = Known::default();
        self.objects -= std::mem::take(&mut state.objects);
        self.by_value.retain(|_, objects| {
            objects.retain(|(of, _)| of != kind);
            !objects.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(name: &str) -> KindName {
        Arc::new((String::new(), name.to_owned()))
    }

    fn exists(name: &str, value: &str) -> Change<Labelled> {
        let labelled = Labelled {
            value: value.into(),
            version: "1".into(),
        };
        Change::Exists(ObjectKey::new("apps", name), labelled)
    }

    fn names(state: &State, value: &str) -> Option<Vec<String>> {
        let mut names: Vec<String> = state
            .objects(value)?
            .into_iter()
            .map(|object| format!("{}/{}", object.kind, object.key.name))
            .collect();
        names.sort();
        Some(names)
    }

    fn strings(names: &[&str]) -> Option<Vec<String>> {
        Some(names.iter().map(|&name| name.to_owned()).collect())
    }

    #[test]
    fn index_answers_only_while_every_kind_is_synced() {
        let (maps, secrets) = (kind("ConfigMap"), kind("Secret"));
        let mut state = State::default();
        assert!(state.is_starting());
        assert_eq!(names(&state, "shop"), None);
        let served = HashSet::from([maps.clone(), secrets.clone()]);
        let watched = state.serve(&served);
        let watch = |name: &KindName| watched.iter().find(|one| one.name == *name).unwrap().clone();
        let (maps, secrets) = (watch(&maps), watch(&secrets));
        for change in [
            Change::ListStarted,
            exists("a", "shop"),
            exists("b", "other"),
            Change::ListDone,
        ] {
            state.apply(&maps, change);
        }
        assert!(state.is_starting());
        assert_eq!(names(&state, "shop"), None, "Secrets are unknown");
        state.apply(&secrets, Change::ListStarted);
        state.apply(&secrets, Change::ListDone);
        assert!(!state.is_starting());
        assert_eq!(names(&state, "shop"), strings(&["ConfigMap/a"]));
        assert_eq!(names(&state, "none"), strings(&[]));

        state.broke_off(&secrets, true);
        assert_eq!(names(&state, "shop"), None, "the watch broke off");
        assert!(!state.is_starting(), "nobody waits for it again");
        state.apply(&secrets, Change::ListStarted);
        assert_eq!(names(&state, "shop"), None, "the list has only begun");
        state.apply(&secrets, Change::ListDone);
        assert_eq!(names(&state, "shop"), strings(&["ConfigMap/a"]));
        state.broke_off(&secrets, false);
        let all = strings(&["ConfigMap/a", "Secret/"]);
        assert_eq!(
            names(&state, "shop"),
            all,
            "a kind without watches is always searched"
        );
        state.turn_off();
        assert_eq!(names(&state, "shop"), None);
    }

    #[test]
    fn kind_with_the_most_objects_is_forgotten_if_there_are_too_many() {
        let (maps, secrets) = (kind("ConfigMap"), kind("Secret"));
        let mut state = State {
            max_objects: 4,
            ..State::default()
        };
        let watched = state.serve(&HashSet::from([maps.clone(), secrets.clone()]));
        let watch = |name: &KindName| watched.iter().find(|one| one.name == *name).unwrap().clone();
        let (maps, secrets) = (watch(&maps), watch(&secrets));
        let list = |state: &mut State, kind: &WatchedKind, objects: &[&str]| {
            state.apply(kind, Change::ListStarted);
            for name in objects {
                state.apply(kind, exists(name, name));
            }
            state.apply(kind, Change::ListDone);
        };
        list(&mut state, &secrets, &["own"]);
        list(&mut state, &maps, &["own", "b", "c"]);
        assert_eq!(names(&state, "own"), strings(&["ConfigMap/own", "Secret/own"]));
        assert!(!state.is_overfull(&maps));
        for name in ["d", "e"] {
            state.apply(&maps, exists(name, name));
        }
        assert!(state.is_overfull(&maps) && !state.is_overfull(&secrets) && !state.is_starting());
        assert_eq!(names(&state, "own"), strings(&["ConfigMap/", "Secret/own"]));
        assert_eq!((state.objects, state.by_value.len()), (1, 1));
        list(&mut state, &maps, &["own"]);
        assert!(!state.is_overfull(&maps));
        assert_eq!(names(&state, "own"), strings(&["ConfigMap/own", "Secret/own"]));
        assert_eq!(state.objects, 2);
    }

    #[test]
    fn index_follows_changes_of_the_label_and_of_the_served_kinds() {
        let (config_map, thing) = (kind("ConfigMap"), kind("Thing"));
        let mut state = State::default();
        let watched = state.serve(&HashSet::from([config_map.clone(), thing.clone()]));
        let watch = |name: &KindName| watched.iter().find(|one| one.name == *name).unwrap().clone();
        let (maps, things) = (watch(&config_map), watch(&thing));
        for kind in [&maps, &things] {
            state.apply(kind, Change::ListStarted);
            state.apply(kind, exists("a", "shop"));
            state.apply(kind, Change::ListDone);
        }
        assert_eq!(names(&state, "shop"), strings(&["ConfigMap/a", "Thing/a"]));
        state.apply(&maps, exists("a", "moved"));
        assert_eq!(names(&state, "shop"), strings(&["Thing/a"]));
        assert_eq!(names(&state, "moved"), strings(&["ConfigMap/a"]));
        state.apply(&maps, Change::Deleted(ObjectKey::new("apps", "a")));
        assert_eq!(names(&state, "moved"), strings(&[]));
        // A list that misses an object ends it.
        state.apply(&maps, exists("b", "shop"));
        state.apply(&maps, Change::ListStarted);
        state.apply(&maps, Change::ListDone);
        assert_eq!(names(&state, "shop"), strings(&["Thing/a"]));

        assert!(state.serve(&HashSet::from([config_map.clone()])).is_empty());
        assert_eq!(names(&state, "shop"), strings(&[]), "the kind is gone");
        assert!(state.has(&maps) && !state.has(&things));
        assert!(state.by_value.is_empty());
        let again = state.serve(&HashSet::from([config_map, thing.clone()]));
        assert_eq!(again.iter().map(|one| &one.name).collect::<Vec<_>>(), [&thing]);
        assert!(!state.has(&things), "the first watch of the kind is over");
        state.apply(&things, Change::ListDone);
        assert_eq!(names(&state, "shop"), None, "it came back and is not listed");
    }

    #[test]
    fn value_with_too_many_objects_has_no_answer_and_others_have() {
        let maps = kind("ConfigMap");
        let mut state = State::default();
        let watched = state.serve(&HashSet::from([maps]));
        let maps = watched.first().unwrap();
        state.apply(maps, Change::ListStarted);
        for number in 0..=OBJECTS_OF_VALUE {
            state.apply(maps, exists(&number.to_string(), "flooded"));
        }
        state.apply(maps, exists("a", "shop"));
        state.apply(maps, Change::ListDone);
        assert!(state.objects("flooded").is_none());
        assert_eq!(names(&state, "shop"), strings(&["ConfigMap/a"]));
        state.apply(maps, Change::Deleted(ObjectKey::new("apps", "0")));
        let objects = state.objects("flooded").unwrap();
        assert_eq!(objects.len(), OBJECTS_OF_VALUE);
    }
}
