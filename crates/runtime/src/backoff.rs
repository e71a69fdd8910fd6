//! When to look again: exponential delays after failures, spread intervals after successes. Pure.

use std::time::Duration;

/// No interval is shorter, whatever an object says: a spin helps nobody.
pub const SHORTEST: Duration = Duration::from_millis(100);
/// No delay is longer.
pub const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// Exponential delays between two bounds.
#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    /// The first delay.
    pub min: Duration,
    /// The longest delay.
    pub max: Duration,
}

impl Backoff {
    /// The delay after so many failures in a row (the first is 1).
    #[must_use]
    pub fn delay(&self, failures: u32) -> Duration {
        let factor = 2u32.saturating_pow(failures.saturating_sub(1).min(31));
        self.min.saturating_mul(factor).min(self.max)
    }
}

/// Spreads an interval by `percent` to both sides; `random` is in `0.0..1.0`.
#[must_use]
pub fn spread(interval: Duration, percent: u8, random: f64) -> Duration {
    let share = f64::from(percent.min(100)) / 100.0;
    let factor = 1.0 + share * (2.0 * random - 1.0);
    bounded(interval.min(LONGEST).mul_f64(factor.max(0.0)))
}

/// Keeps a delay between the shortest and the longest one.
#[must_use]
pub fn bounded(delay: Duration) -> Duration {
    delay.clamp(SHORTEST, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_bound() {
        let backoff = Backoff {
            min: Duration::from_millis(750),
            max: Duration::from_secs(900),
        };
        let millis: Vec<_> = [0, 1, 2, 3, 11, 12, 1_000_000]
            .map(|n| backoff.delay(n).as_millis())
            .to_vec();
        assert_eq!(millis, [750, 750, 1500, 3000, 768_000, 900_000, 900_000]);
    }

    #[test]
    fn intervals_are_spread_and_bounded() {
        let minute = Duration::from_secs(60);
        assert_eq!(spread(minute, 5, 0.5), minute);
        assert_eq!(spread(minute, 5, 0.0), Duration::from_secs(57));
        assert_eq!(spread(minute, 0, 0.9), minute);
        assert_eq!(spread(Duration::ZERO, 5, 0.9), SHORTEST);
        assert!(spread(Duration::MAX, 100, 0.999) <= LONGEST);
    }
}
