//! The integration tests of kluctl projects.

#[cfg(test)]
mod charts;
#[cfg(test)]
mod docs;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod items;
#[cfg(test)]
mod other_sources;
#[cfg(test)]
mod projects;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod shop;
#[cfg(test)]
mod submodules;
#[cfg(test)]
mod support;
