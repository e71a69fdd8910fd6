//! Time for which the removal of an object is tried again. Pure.

use std::time::Duration;

/// Time after the deletion of an object for which removing what it deployed is tried again.
const GIVE_UP_AFTER: Duration = Duration::from_secs(300);
/// Minimum time for which a process tries: the object may have been deleted long before it started.
const AT_LEAST: Duration = Duration::from_secs(60);

/// Returns the time that is left for further attempts; `None` if there is none. `deleted_for` is the time since the object was
/// deleted, which no restart begins again, `tried_for` the time since this process first tried.
pub(crate) fn left(deleted_for: Duration, tried_for: Duration) -> Option<Duration> {
    let by_clock = GIVE_UP_AFTER.saturating_sub(deleted_for);
    // The clock of the API server may be ahead of that of this process.
    let left = by_clock
        .max(AT_LEAST.saturating_sub(tried_for))
        .min(GIVE_UP_AFTER.saturating_sub(tried_for));
    Some(left).filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends_five_minutes_after_the_deletion_but_not_with_the_first_attempts() {
        let seconds = Duration::from_secs;
        for (title, deleted_for, tried_for, expected) in [
            ("at once", 0, 0, Some(300)),
            ("a while", 200, 200, Some(100)),
            ("the end", 300, 300, None),
            ("a restart in between", 290, 100, Some(10)),
            ("a restart near the end", 290, 0, Some(60)),
            ("deleted before the start", 7200, 0, Some(60)),
            ("deleted before the start, tried", 7200, 60, None),
            ("a clock that is behind", 0, 299, Some(1)),
            ("a clock that is behind, at the end", 0, 300, None),
        ] {
            let found = left(seconds(deleted_for), seconds(tried_for));
            assert_eq!(found, expected.map(seconds), "{title}");
        }
    }
}
