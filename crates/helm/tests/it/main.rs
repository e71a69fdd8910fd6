//! Integration tests of charts.

#[cfg(test)]
mod binary;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod differ;
#[cfg(test)]
mod malice;
#[cfg(test)]
mod modules;
#[cfg(test)]
mod options;
#[cfg(test)]
mod random_values;
#[cfg(test)]
mod structure;
