//! kluctl projects: from a tree of files to the objects of a target.
//!
//! [`render`] loads `.kluctl.yaml`, chooses the target, computes arguments and variables, walks `deployment.yaml` and its
//! includes, renders each item through Jinja2, Helm and kustomize, and labels the objects. Unsupported features are refused
//! by name, with file and line. No network, clock, randomness or environment: kube contexts and arguments are values of the
//! [`Request`], and its callbacks read everything else.

pub mod annotations;
mod args;
mod chart;
mod decrypt;
mod deployment;
mod error;
mod fields;
mod files;
#[cfg(test)]
mod fuzz;
mod git_reference;
pub mod hooks;
mod images;
mod inclusion;
mod item;
mod legacy;
mod list;
mod merge;
mod namespaces;
mod plan;
mod postprocess;
#[cfg(test)]
mod products;
mod project;
mod render;
mod rendered;
mod repeated;
mod request;
mod source;
mod target;
mod vars;

pub use args::{add_argument, add_arguments_file};
pub use chart::{
    ChartSource, Charts, ClusterView, GIT_INFO, HelmChart, PULLED_CHARTS, PullChart, location::repo_key,
};
pub use decrypt::{Decrypt, Encrypted};
pub use deployment::Outline;
pub use error::{ArgumentError, CallbackError, Error};
pub use git_reference::GitReference;
pub use helm::functions::Moment;
pub use images::{FixedImage, RequestedImage};
pub use inclusion::Inclusion;
pub use jinja::{History, HistoryError};
pub use list::{choose_target, list_images, list_targets};
pub use namespaces::{Scope, fix_namespaces};
pub use render::render;
pub use rendered::{Item, ObjectSelector, Rendered, Target, objects_hash};
pub use request::{Contexts, Request};
pub use source::{FetchedSource, RemoteRef, SourceAddress, Sources};
pub use vars::{HttpAnswer, HttpRequest, ObjectQuery, ObjectSelection, SecretQuery, VarsError, VarsSources};
