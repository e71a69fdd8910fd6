//! The known consumers, by their sources and dependencies. Pure.

use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
};

use runtime::{
    ObjectKey,
    triggers::{Change, Effect, Known},
};

use super::configs::ConfigId;
use crate::{Links, SourceId};

/// All known consumers. Each lookup and each change costs as much as the objects that are concerned, not as all.
#[derive(Debug, Default)]
pub(super) struct Consumers {
    known: Known<Links>,
    by_source: HashMap<SourceId, HashSet<ObjectKey>>,
    by_dependency: HashMap<ObjectKey, HashSet<ObjectKey>>,
    by_config: HashMap<ConfigId, HashSet<ObjectKey>>,
}

impl Consumers {
    /// Applies a change, and returns an object that exists with its state before and now.
    pub(super) fn apply(&mut self, change: Change<Links>) -> Option<(ObjectKey, Links, Links)> {
        match self.known.apply(change) {
            Effect::Gone(objects) => {
                for (key, links) in objects {
                    self.unlink(&key, &links);
                }
                None
            }
            Effect::Changed { key, before, now } => {
                let is_moved = before.source != now.source
                    || before.dependencies != now.dependencies
                    || before.configs != now.configs;
                if is_moved {
                    self.unlink(&key, &before);
                }
                self.link(&key, &now);
                Some((key, before, now))
            }
        }
    }

    /// Returns the consumers of a source, with their states.
    pub(super) fn of_source(&self, source: &SourceId) -> impl Iterator<Item = (&ObjectKey, &Links)> {
        let keys = self.by_source.get(source).into_iter().flatten();
        keys.filter_map(|key| Some((key, self.known.get(key)?)))
    }

    pub(super) fn of_dependency(&self, dependency: &ObjectKey) -> impl Iterator<Item = &ObjectKey> {
        self.by_dependency.get(dependency).into_iter().flatten()
    }

    pub(super) fn of_config(&self, config: &ConfigId) -> impl Iterator<Item = &ObjectKey> {
        self.by_config.get(config).into_iter().flatten()
    }

    fn link(&mut self, key: &ObjectKey, links: &Links) {
        if let Some(source) = &links.source {
            add(&mut self.by_source, source, key);
        }
        for dependency in &links.dependencies {
            add(&mut self.by_dependency, dependency, key);
        }
        for config in &links.configs {
            add(&mut self.by_config, config, key);
        }
    }

    fn unlink(&mut self, key: &ObjectKey, links: &Links) {
        if let Some(source) = &links.source {
            remove(&mut self.by_source, source, key);
        }
        for dependency in &links.dependencies {
            remove(&mut self.by_dependency, dependency, key);
        }
        for config in &links.configs {
            remove(&mut self.by_config, config, key);
        }
    }
}

fn add<K: Hash + Eq + Clone>(map: &mut HashMap<K, HashSet<ObjectKey>>, to: &K, key: &ObjectKey) {
    match map.get_mut(to) {
        Some(keys) => {
            if !keys.contains(key) {
                keys.insert(key.clone());
            }
        }
        None => {
            map.insert(to.clone(), HashSet::from([key.clone()]));
        }
    }
}

fn remove<K: Hash + Eq>(map: &mut HashMap<K, HashSet<ObjectKey>>, from: &K, key: &ObjectKey) {
    if let Some(keys) = map.get_mut(from) {
        keys.remove(key);
        if keys.is_empty() {
            map.remove(from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SourceKind;

    fn key(number: usize) -> ObjectKey {
        ObjectKey::new("apps", format!("o{number}"))
    }

    fn source(number: usize) -> SourceId {
        SourceId {
            kind: SourceKind::GitRepository,
            key: key(number),
        }
    }

    #[test]
    fn lookups_find_the_same_as_a_search_of_all_consumers() {
        const COUNT: usize = 12;
        let mut consumers = Consumers::default();
        let mut state: u32 = 7;
        let mut random = |below: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as usize % below
        };
        for _ in 0..3_000 {
            let change = match random(20) {
                0 => Change::ListStarted,
                1 => Change::ListDone,
                2..5 => Change::Deleted(key(random(COUNT))),
                _ => {
                    let links = Links {
                        source: (random(4) > 0).then(|| source(random(4))),
                        dependencies: (0..random(3)).map(|_| key(random(COUNT))).collect(),
                        ..Links::default()
                    };
                    Change::Exists(key(random(COUNT)), links)
                }
            };
            consumers.apply(change);
            for number in 0..COUNT {
                let all = || (0..COUNT).filter_map(|n| Some((key(n), consumers.known.get(&key(n))?)));
                let refers = |links: &Links| links.source == Some(source(number));
                let expected: HashSet<_> = all()
                    .filter(|(_, links)| refers(links))
                    .map(|(key, _)| key)
                    .collect();
                let found: HashSet<_> = consumers
                    .of_source(&source(number))
                    .map(|(key, _)| key.clone())
                    .collect();
                assert_eq!(found, expected);
                let depends = |links: &Links| links.dependencies.contains(&key(number));
                let expected: HashSet<_> = all()
                    .filter(|(_, links)| depends(links))
                    .map(|(key, _)| key)
                    .collect();
                let found: HashSet<_> = consumers.of_dependency(&key(number)).cloned().collect();
                assert_eq!(found, expected);
            }
        }
        for number in 0..COUNT {
            consumers.apply(Change::Deleted(key(number)));
        }
        assert!(
            consumers.by_source.is_empty() && consumers.by_dependency.is_empty(),
            "{consumers:?}"
        );
    }
}
