//! Remembered objects that are not commits.

use std::{collections::HashSet, sync::Arc};

use parking_lot::Mutex;

const MAX_OBJECTS: usize = 4096;

/// IDs of fetched objects that lead to no commit, which holds on any server. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct NonCommits(Arc<Mutex<HashSet<String>>>);

impl NonCommits {
    pub(crate) fn has(&self, id: &str) -> bool {
        self.0.lock().contains(id)
    }

    pub(super) fn remember(&self, id: &str) {
        let mut all = self.0.lock();
        if all.len() >= MAX_OBJECTS
            && let Some(other) = all.iter().next().cloned()
        {
            all.remove(&other);
        }
        all.insert(id.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembered_objects_are_bounded_in_number() {
        let objects = NonCommits::default();
        for id in 0..=MAX_OBJECTS {
            objects.remember(&id.to_string());
        }
        assert!(objects.has(&MAX_OBJECTS.to_string()) && !objects.has("x"));
        assert_eq!(objects.0.lock().len(), MAX_OBJECTS);
    }
}
