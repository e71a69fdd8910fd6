//! Scenarios with the real binaries against a real control plane: the demo, injected faults, and the benchmarks.

#![allow(
    clippy::indexing_slicing,
    reason = "scenarios are tests: reading past the end of their own data should stop them"
)]

pub mod attack;
pub mod bench;
pub mod cluster;
pub mod demo;
pub mod events;
pub mod fault;
pub mod rbac;
pub mod report;
pub mod tutorial;
pub mod workloads;
