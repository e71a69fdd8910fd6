//! The kinds under control.

pub mod kustomization;
