//! The allocator of all controllers. Its settings are in `.cargo/config.toml`.

use std::{hint::black_box, time::Duration};

use tikv_jemallocator::Jemalloc;
use tokio::time::MissedTickBehavior;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

const INTERVAL: Duration = Duration::from_secs(10);
/// Size of an allocation that no cache of a thread serves, in bytes.
const SIZE: usize = 4096;
/// Number of such allocations and releases. The allocator purges after a thousand of them on average.
const TIMES: usize = 4000;

/// Lets the allocator give back free memory, forever. It purges only while it allocates, and a process that is idle after a burst allocates
/// too little; it has no safe function for it.
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
