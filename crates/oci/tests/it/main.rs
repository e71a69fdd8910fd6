//! Tests against real registries and HTTP servers.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests, outside of test functions"
)]

mod archives;
mod registries;
mod repositories;
mod support;
