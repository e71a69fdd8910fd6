//! The reconciled kinds, one folder each.

pub mod flux_kluctl_deployment;
pub mod gitops_kluctl_deployment;
