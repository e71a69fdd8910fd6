//! The specs of Providers and Receivers: the types, and the faults of invalid and unsupported fields. Pure; for the controller, and for checks
//! of manifests without a cluster.

pub mod provider;
pub mod receiver;
