//! The times of passes. Pure.

use std::time::Duration;

use api::{GoDuration, MIN_INTERVAL, Time};
use jiff::Timestamp;

/// Minimum timeout of a pass.
const MIN_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum delay before objects that are not ready are checked again.
const MAX_RECHECK: Duration = Duration::from_secs(60);

/// Returns the interval of a spec, at least a second.
#[must_use]
pub fn interval(given: GoDuration) -> Duration {
    given.as_duration().max(MIN_INTERVAL)
}

/// Returns the timeout of a spec, at least 30 seconds.
#[must_use]
pub fn timeout(given: GoDuration) -> Duration {
    given.as_duration().max(MIN_TIMEOUT)
}

/// Returns the time since `then`; zero if it is in the future.
#[must_use]
pub fn since(then: Timestamp, now: &Time) -> Duration {
    Duration::try_from(now.0.duration_since(then)).unwrap_or_default()
}

/// Returns the age at which something of this period is due. The schedule has jitter, so the last tenth of the period counts as passed.
#[must_use]
pub fn due_age(period: Duration) -> Duration {
    period.mul_f32(0.9)
}

/// Returns the time until the next pass: the first of the interval and the times after which something is `due`, at least a second. Objects
/// that are not ready are checked again soon, and less often the longer it takes.
#[must_use]
pub fn next_pass(
    interval: Duration,
    due: impl IntoIterator<Item = Option<Duration>>,
    not_ready_for: Option<Duration>,
) -> Duration {
    let recheck = not_ready_for.map(|since| (since / 4).clamp(MIN_INTERVAL, MAX_RECHECK));
    due.into_iter()
        .chain([recheck])
        .flatten()
        .fold(interval, Duration::min)
        .max(MIN_INTERVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_that_are_not_ready_are_checked_again_after_a_quarter_of_that_time() {
        let next = |seconds| {
            let not_ready_for = Some(Duration::from_secs(seconds));
            next_pass(Duration::from_secs(300), [None], not_ready_for).as_secs()
        };
        assert_eq!((next(0), next(40), next(4000)), (1, 10, 60));
        let due = [Some(Duration::ZERO), None];
        assert_eq!(next_pass(Duration::from_secs(300), due, None), MIN_INTERVAL);
    }
}
