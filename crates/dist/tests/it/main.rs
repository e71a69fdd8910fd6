//! The files of a release.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests, outside of test functions"
)]

mod archives;
mod catalogs;
mod chart;
mod images;
mod running;
mod sbom;
mod support;
mod targets;
mod unpacked;
mod verify;
mod workflows;
