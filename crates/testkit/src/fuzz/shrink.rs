//! Makes a failing case smaller: fewer choices, and smaller ones.

use std::time::{Duration, Instant};

const TRIES: usize = 5000;

struct Search<F> {
    best: Vec<u64>,
    fails: F,
    tries: usize,
    until: Instant,
}

/// The smallest choices that were found in that time. `fails` tells which of the choices it was given a case took, if it failed.
pub(super) fn smallest(
    time: Duration,
    found: Vec<u64>,
    fails: impl FnMut(Vec<u64>) -> Option<Vec<u64>>,
) -> Vec<u64> {
    let mut search = Search {
        best: found,
        fails,
        tries: 0,
        until: Instant::now() + time,
    };
    while search.pass() && search.may_go_on() {}
    search.best
}

impl<F: FnMut(Vec<u64>) -> Option<Vec<u64>>> Search<F> {
    fn may_go_on(&self) -> bool {
        self.tries < TRIES && Instant::now() < self.until
    }

    /// Keeps a candidate that still fails, if it is smaller: shorter, or equally long with smaller numbers.
    fn keeps(&mut self, candidate: Vec<u64>) -> bool {
        if !self.may_go_on() {
            return false;
        }
        self.tries += 1;
        let taken = (self.fails)(candidate);
        match taken {
            Some(taken) if (taken.len(), &taken) < (self.best.len(), &self.best) => {
                self.best = taken;
                true
            }
            _ => false,
        }
    }

    /// Tries everything once, and tells whether anything helped.
    fn pass(&mut self) -> bool {
        let mut helped = false;
        for size in [64, 16, 8, 4, 3, 2, 1] {
            let mut at = self.best.len().saturating_sub(size);
            while at > 0 || (size <= self.best.len() && at == 0) {
                let mut candidate = self.best.clone();
                candidate.drain(at.min(candidate.len())..(at + size).min(candidate.len()));
                helped |= self.keeps(candidate);
                if at == 0 {
                    break;
                }
                at -= 1;
            }
        }
        for at in 0..self.best.len() {
            for smaller in [|_| 0, |n: u64| n / 2, |n: u64| n.saturating_sub(1)] {
                let mut candidate = self.best.clone();
                let Some(value) = candidate.get_mut(at) else { break };
                if *value == 0 {
                    break;
                }
                *value = smaller(*value);
                helped |= self.keeps(candidate);
            }
        }
        helped
    }
}
