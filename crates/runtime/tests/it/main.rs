//! The process around the passes, with a real API server and a controller of its own (examples/probe.rs) as a process.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests, too, fail by panicking"
)]

mod bounds;
mod crashes;
mod events;
mod faults;
mod isolation;
mod lease;
mod passes;
mod setup;
