//! One folder a kind: its decisions, and nothing that is the same for all kinds.

pub mod git_repository;
