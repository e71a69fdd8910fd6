//! The kluctl-controller as a process, against a real API server; sources are played by the tests.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests, too, fail by panicking"
)]

mod absent;
mod decoding;
mod deploying;
mod events;
mod failing;
mod faults;
mod fixture;
mod gitops;
mod gitops_charts;
mod gitops_cost;
mod gitops_deploying;
mod gitops_disturbed;
mod gitops_faults;
mod gitops_fetching;
mod gitops_idle;
mod gitops_keeping;
mod gitops_large;
mod gitops_options;
mod gitops_overrides;
mod gitops_removing;
mod gitops_requests;
mod gitops_schema;
mod gitops_sources;
mod gitops_suite;
mod including;
mod intervals;
mod key_services;
mod limits;
mod metrics;
mod migrating;
mod monorepo;
mod options;
mod orphans;
mod panicking;
mod poison;
mod removing;
mod removing_by_labels;
mod repeating;
mod requests;
mod rights;
mod scope;
mod secrets;
mod sharing;
mod source;
mod starting;
mod suite;
mod variables;
mod waiting;
