//! The integration tests of builds.

#[cfg(test)]
mod cases;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod differ;
#[cfg(test)]
mod quirks;
