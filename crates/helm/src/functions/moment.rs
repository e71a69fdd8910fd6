//! A fixed time and a seed for randomness.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

use sha2::{Digest as _, Sha256};

use super::context::Environment;

/// The environment of one render without a cluster: a fixed time and a seed. Equal moments give equal output.
pub struct Moment {
    seconds: i64,
    nanos: u32,
    seed: [u8; 32],
    drawn: AtomicU64,
}

impl Moment {
    /// Takes the time since 1970 and a secret random seed, from which keys are generated.
    #[must_use]
    pub fn new(seconds: i64, nanos: u32, seed: [u8; 32]) -> Self {
        Self {
            seconds,
            nanos,
            seed,
            drawn: AtomicU64::new(0),
        }
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Moment")
            .field("seconds", &self.seconds)
            .finish_non_exhaustive()
    }
}

impl Environment for Moment {
    fn now(&self) -> (i64, u32) {
        (self.seconds, self.nanos)
    }

    fn fill(&self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(32) {
            let number = self.drawn.fetch_add(1, Ordering::Relaxed);
            let block = Sha256::new()
                .chain_update(self.seed)
                .chain_update(number.to_le_bytes())
                .finalize();
            for (byte, random) in part.iter_mut().zip(block) {
                *byte = random;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(moment: &Moment, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        moment.fill(&mut bytes);
        bytes
    }

    #[test]
    fn moment_gives_reproducible_randomness() {
        let (one, same, other) = (
            Moment::new(1, 2, [7; 32]),
            Moment::new(1, 2, [7; 32]),
            Moment::new(1, 2, [8; 32]),
        );
        let first = drawn(&one, 45);
        assert_eq!(first, drawn(&same, 45));
        assert_ne!(first, drawn(&one, 45));
        assert_ne!(first, drawn(&other, 45));
        assert_eq!(one.now(), (1, 2));
        assert!(!format!("{one:?}").contains("7, 7"));
    }
}
