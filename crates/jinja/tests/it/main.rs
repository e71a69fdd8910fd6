//! The integration tests of the dialect.

mod conformance;
mod dialect;
mod fuzz;
