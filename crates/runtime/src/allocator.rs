//! The allocator of all controllers. Its settings are in `.cargo/config.toml`.

use std::{hint::black_box, time::Duration};

use tikv_jemallocator::Jemalloc;
use tokio::time::MissedTickBehavior;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// Interval of [`keep_purging`].
const INTERVAL: Duration = Duration::from_secs(10);
/// Size of an allocation that no cache of a thread serves, in bytes.
const SIZE: usize = 4096;
/// Number of such allocations and releases. The allocator purges after a thousand of them in the mean; if it
/// doesn't within so many, it does the next time.
const TIMES: usize = 4000;

/// Lets the allocator give back memory that is free, forever. It looks for such memory by the way of allocations, of which a process that is
/// idle after a burst makes too few; it has no function for it that is safe to call.
pub(crate) async fn keep_purging() {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        for _ in 0..TIMES {
            drop(black_box(Vec::<u8>::with_capacity(SIZE)));
        }
    }
}
