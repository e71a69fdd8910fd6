//! The engine against a real control plane.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    reason = "helpers of tests"
)]

mod compare;
mod conflicts;
mod deploy;
mod external;
mod faults;
mod hooks;
mod identity;
mod prune;
mod readiness;
mod registries;
mod repositories;

mod render;
mod results;
mod results_at_scale;
mod unchanged;
mod world;
