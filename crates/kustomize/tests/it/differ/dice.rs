//! Random choices.

use std::ops::Range;

use serde_json::{Map, Value as Json};

/// The random choices of one tree: the same seed makes the same tree.
pub(super) struct Dice {
    random: fastrand::Rng,
    is_wild: bool,
}

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let is_wild = random.usize(..6) == 0;
        Self { random, is_wild }
    }

    /// Returns true if the tree may have mistakes, which most have not: a tree that can't be built tests little.
    pub(super) fn is_wild(&self) -> bool {
        self.is_wild
    }

    /// Returns true once in `n` times, if mistakes may be made.
    pub(super) fn slips(&mut self, n: usize) -> bool {
        self.is_wild && self.one_in(n)
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        self.random.usize(..n)
    }

    pub(super) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    pub(super) fn text(&mut self, from: &[&str]) -> String {
        (*self.pick(from)).to_owned()
    }

    pub(super) fn list<T>(&mut self, length: Range<usize>, mut item: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let length = length.start + self.below(length.len());
        (0..length).map(|_| item(self)).collect()
    }

    /// Picks some of the names, in their order, each at most once.
    pub(super) fn some<'a>(&mut self, from: &[&'a str]) -> Vec<&'a str> {
        let keep = self.below(from.len()) + 1;
        let mut names = from.to_vec();
        while names.len() > keep {
            names.remove(self.below(names.len()));
        }
        names
    }

    /// Sets a field, once in `n` times.
    pub(super) fn field(
        &mut self,
        map: &mut Json,
        n: usize,
        key: &str,
        make: impl FnOnce(&mut Self) -> Json,
    ) {
        if self.one_in(n) {
            let value = make(self);
            map[key] = value;
        }
    }

    /// Makes a map of strings.
    pub(super) fn pairs(&mut self, keys: &[&str], values: &[&str]) -> Json {
        let mut map = Map::new();
        for key in self.some(keys) {
            map.insert(key.to_owned(), self.text(values).into());
        }
        map.into()
    }
}
