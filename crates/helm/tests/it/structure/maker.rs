//! Choices of a case.

use testkit::fuzz::Random;

/// Makes random choices, in most cases hardly any invalid ones.
pub(super) struct Maker<'r> {
    pub(super) random: &'r mut Random,
    wild: bool,
}

impl<'r> Maker<'r> {
    pub(super) fn new(random: &'r mut Random) -> Self {
        let wild = random.one_in(4);
        Self { random, wild }
    }

    /// Returns true in one of `n` cases, for valid choices.
    pub(super) fn rare(&mut self, n: usize) -> bool {
        self.random.one_in(n)
    }

    /// Returns true in one of `n` cases if the maker is wild, else in one of `12 * n`, for (nearly) invalid choices.
    pub(super) fn odd(&mut self, n: usize) -> bool {
        self.random.one_in(if self.wild { n } else { n * 12 })
    }

    /// Picks one of the words between the bars.
    pub(super) fn of(&mut self, words: &'static str) -> &'static str {
        let words: Vec<&str> = words.split('¦').collect();
        self.random.pick::<&str>(&words)
    }

    /// Picks a valid word, or an invalid one in the odd case.
    pub(super) fn of_or(&mut self, n: usize, words: &'static str, others: &'static str) -> &'static str {
        let is_odd = self.odd(n);
        self.of(if is_odd { others } else { words })
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        self.random.below(n)
    }
}
