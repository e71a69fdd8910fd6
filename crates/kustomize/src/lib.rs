//! `kustomize build`, in process: what the kluctl engine and the kustomize-controller build directories with.
//!
//! [`build`] reads a directory of a [`tree::Tree`] and gives its objects, as kustomize 5.8 does it, byte for byte when they
//! are printed by [`Build::to_yaml`]. Nothing is fetched or run unless [`Options`] has a callback for it. Where the original
//! has quirks that users' outputs depend on, they are kept, each with `quirk:` in a comment where it is done:
//! `docs/differences.md` lists those that are not.
//!
//! `loader` reads what may be read, `model` is what a kustomization says, `accumulate` does the work of a directory after
//! those below it, and `build` finishes: new names are followed, vars replaced, objects sorted and printed.

mod accumulate;
mod build;
mod config;
mod error;
mod fieldspec;
mod files;
#[cfg(test)]
mod fuzz;
mod generate;
mod helm;
mod id;
mod loader;
mod lookup;
mod measure;
mod metadata;
mod model;
mod options;
mod order;
mod patch;
mod plugin;
mod read;
mod reference;
pub mod remote;
mod replacement;
mod resmap;
mod resource;
mod schema;
mod selector;
mod tables;
#[cfg(test)]
mod testing;
mod transform;
mod vars;

pub use build::{Build, Built, build, build_each};
pub use error::{Error, Step};
pub use model::{FILE_NAMES, find as find_kustomization};
pub use options::{
    Chart, Fetch, Fetched, InflateChart, LoadRestriction, OpenApi, Options, Order, Profile, Warning,
};
