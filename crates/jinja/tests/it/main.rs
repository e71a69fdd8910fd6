//! Integration tests of the dialect.

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod dates;
#[cfg(test)]
mod dialect;
#[cfg(test)]
mod differ;
#[cfg(test)]
mod language;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod paths;
#[cfg(test)]
mod shared;
