//! The integration tests of builds.

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod differ;
#[cfg(test)]
mod quirks;
