//! `kustomize build`, in process, for the kluctl engine and the kustomize-controller.
//!
//! [`build`] builds a directory of a [`tree::Tree`] and returns its objects as kustomize 5.8 does, byte for byte when they
//! are printed by [`Build::to_yaml`]. Nothing is fetched or run unless [`Options`] has a callback for it. Quirks of the
//! original that users' outputs depend on stay, each with `quirk:` in a comment; `docs/differences.md` lists the others.
//!
//! `loader` finds the files that may be read, `model` is a kustomization as data, `accumulate` builds a directory after
//! those below it, and `build` finishes: references to renamed objects are fixed, vars replaced, objects sorted and printed.

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
mod origin;
mod patch;
mod plugin;
mod read;
mod reference;
pub mod remote;
mod replacement;
mod resmap;
mod resource;
mod run;
mod schema;
mod selector;
mod tables;
mod target;
#[cfg(test)]
mod testing;
mod transform;
mod vars;

pub use build::{Build, Built, build, build_each};
pub use error::{Error, Step};
pub use model::{FILE_NAMES, find as find_kustomization};
pub use options::{
    CallbackError, Chart, Fetch, Fetched, InflateChart, LoadRestriction, OpenApi, Options, Profile,
    SortOrder, Warning,
};
pub use selector::{InvalidSelector, LabelSelector};
