//! Benchmarks: the controllers under load, and the command line beside the original programs.

pub mod calm;
pub mod events;
pub mod gitops;
pub mod helm;
pub mod kluctl;
pub mod kustomizations;
pub mod kustomize;
pub mod measure;
pub mod pairs;
pub mod sources;
