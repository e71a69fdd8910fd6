//! Scenarios that need several controllers, or the manifests in `deploy/`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "helpers of tests may panic, too"
)]

mod attack;
mod buckets;
mod canary;
mod compaction;
mod crash;
mod deploy;
mod flux_cli;
mod flux_consumers;
mod flux_notification;
mod gates;
mod lease;
mod outage;
mod prometheus;
mod seeds;
mod self_managed;
mod story;
mod successors;
mod tutorial;

fn init() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}
