//! Scenarios that need more than one controller, or what `deploy/` says.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "helpers of tests, too, fail by panicking"
)]

mod canary;
mod crash;
mod deploy;
mod lease;
mod prometheus;
mod seeds;
mod story;

/// Chooses the crypto provider for clients of the tests.
fn init() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}
