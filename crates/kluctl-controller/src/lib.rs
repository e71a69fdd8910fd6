//! The kluctl-controller: deploys targets of kluctl projects from the artifacts of sources, and keeps them deployed.

pub mod kinds;
