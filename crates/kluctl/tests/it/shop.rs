//! The example project.
