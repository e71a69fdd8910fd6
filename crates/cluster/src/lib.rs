//! Talking to a Kubernetes cluster about untyped objects.
//!
//! Server-side apply, discovery, listing by label, deletion with preconditions, waiting, impersonation and remote
//! clusters. Objects are [`yaml::Value`] on the outside. Every request is bounded in time and size, retried where that
//! is safe, and ends when its [`Cluster`] is cancelled. This crate knows nothing of kluctl projects, and decides nothing
//! about what to apply or delete.

pub mod access;
mod admission;
mod apply;
mod connection;
mod delete;
mod discovery;
mod error;
mod legacy;
mod list;
mod path;
mod read;
mod wait;

pub use admission::Admission;
pub use apply::{Applied, ApplyOptions};
pub use connection::{Cluster, Settings};
pub use delete::{DeleteOptions, Deleted};
pub use discovery::{Kind, Scope, Snapshot};
pub use error::{ApiError, Error};
pub use list::{Detail, Incomplete, Listing};
pub use wait::{WaitOptions, Waited};
