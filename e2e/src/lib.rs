//! Scenarios with the real binaries against a real control plane: the demo, injected faults, and the benchmark.

#![allow(
    clippy::indexing_slicing,
    reason = "scenarios are tests: one that reads past what it made should stop"
)]

pub mod crash;
pub mod fleet;
pub mod foreign;
pub mod granted;
pub mod measure;
pub mod rights;
pub mod shop;
pub mod stage;
pub mod world;
