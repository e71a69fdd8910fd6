//! The objects that a KluctlDeployment may have deployed, by its status. Pure.

pub mod flux;
pub mod gitops;
