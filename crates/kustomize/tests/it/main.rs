//! The integration tests of builds.

#[cfg(test)]
mod conformance;
