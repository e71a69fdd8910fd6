//! `kustomize build`, as far as it is there: `resources` and `namespace`.
//!
//! [`build`] reads a directory of a [`tree::Tree`] and gives its objects in the order in which kustomize accumulates
//! them. A field that is not obeyed is refused by name, with file and line. Nothing is fetched, written or run.

mod build;
mod error;
mod file;
#[cfg(test)]
mod fuzz;
mod identity;
mod namespace;
mod reference;
mod resource;

#[cfg(test)]
mod tests;

pub use build::{Built, build, build_located};
pub use error::Error;
pub use file::{FILE_NAMES, find as find_kustomization};
