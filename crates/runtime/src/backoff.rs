//! Delays until the next pass: exponential after failures, intervals with jitter after successes. Pure.

use std::time::Duration;

/// Shortest interval between two passes, whatever an object asks for.
pub const SHORTEST: Duration = Duration::from_millis(100);
pub const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// Maximum share by which the delay of a retry is shortened.
const RETRY_JITTER: f64 = 0.25;

#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    pub min: Duration,
    pub max: Duration,
}

impl Backoff {
    /// Returns the delay after `failures` failures in a row (the first is 1), shortened by up to a quarter so that objects
    /// that failed together are not retried together; `random` is in `0.0..1.0`.
    #[must_use]
    pub fn delay(&self, failures: u32, random: f64) -> Duration {
        let factor = 2u32.saturating_pow(failures.saturating_sub(1).min(31));
        let delay = self.min.saturating_mul(factor).min(self.max).min(LONGEST);
        delay.mul_f64(1.0 - RETRY_JITTER * random.clamp(0.0, 1.0))
    }
}

/// Changes an interval by up to `percent` in both directions; `random` is in `0.0..1.0`.
#[must_use]
pub fn with_jitter(interval: Duration, percent: u8, random: f64) -> Duration {
    let share = f64::from(percent.min(100)) / 100.0;
    let factor = 1.0 + share * (2.0 * random - 1.0);
    bounded(interval.min(LONGEST).mul_f64(factor.max(0.0)))
}

#[must_use]
pub fn bounded(delay: Duration) -> Duration {
    delay.clamp(SHORTEST, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_delay_doubles_up_to_its_maximum_and_has_jitter() {
        let backoff = Backoff {
            min: Duration::from_millis(750),
            max: Duration::from_secs(900),
        };
        let millis: Vec<_> = [0, 1, 2, 3, 11, 12, 1_000_000]
            .map(|n| backoff.delay(n, 0.0).as_millis())
            .to_vec();
        assert_eq!(millis, [750, 750, 1500, 3000, 768_000, 900_000, 900_000]);
        assert_eq!(backoff.delay(1, 0.5), Duration::from_micros(656_250));
        assert_eq!(backoff.delay(u32::MAX, 1.0), Duration::from_secs(675));
    }

    #[test]
    fn interval_jitter_is_symmetric_and_bounded() {
        let minute = Duration::from_secs(60);
        assert_eq!(with_jitter(minute, 5, 0.5), minute);
        assert_eq!(with_jitter(minute, 5, 0.0), Duration::from_secs(57));
        assert_eq!(with_jitter(minute, 0, 0.9), minute);
        assert_eq!(with_jitter(Duration::ZERO, 5, 0.9), SHORTEST);
        assert!(with_jitter(Duration::MAX, 100, 0.999) <= LONGEST);
    }
}
