//! Tests of the test kit itself: that its peers are real, and that they end with their owner.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests, outside of test functions"
)]

mod controller;
mod git;
mod plane;
mod prometheus;
mod proxy;
mod sink;
mod statuses;
