//! The specs of the sources of Flux: the values that their fields stand for, and the faults of invalid and unsupported fields, in the words of
//! the original. Pure; for the controller, and for checks of manifests without a cluster.

pub mod bucket;
pub mod fields;
pub mod git_repository;
pub mod helm_chart;
pub mod helm_repository;
pub mod oci_repository;
