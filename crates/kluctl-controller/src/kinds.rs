//! The kinds under control, a folder each.

pub mod flux_kluctl_deployment;
