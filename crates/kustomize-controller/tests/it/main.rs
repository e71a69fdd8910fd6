//! The kustomize-controller as a process, against a real API server; sources are played by the tests.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests, too, fail by panicking"
)]

mod applying;
mod building;
mod clouds;
mod decrypting;
mod failing;
mod fairness;
mod faults;
mod faulty_artifacts;
mod fixture;
mod health;
mod panicking;
mod recovering;
mod removing;
mod reporting;
mod requests;
mod settings;
mod transformers;
