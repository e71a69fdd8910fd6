//! The integration tests of kluctl projects.

mod conformance;
mod shop;
mod support;
