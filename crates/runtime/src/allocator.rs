//! The allocator of all controllers. Its settings are in `.cargo/config.toml`.

use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;
