//! Requests to a Kubernetes cluster about untyped objects.
//!
//! Server-side apply, discovery, listing by label, deletion with preconditions, impersonation and remote clusters. Objects are
//! [`yaml::Value`]. Every request is bounded in time and size, retried where that is safe, and ends when its [`Cluster`] is
//! cancelled. Crate `apply` decides which objects to apply or delete.

pub mod access;
mod activity;
mod admission;
mod apply;
mod connection;
mod delete;
mod discovery;
mod error;
mod forward;
mod legacy;
mod list;
mod logs;
mod patch;
mod path;
mod read;
mod review;
mod snapshot;
mod stream;
mod watch;

pub use activity::{Branch, WorkPermit};
pub use admission::{Admission, AdmissionWatch};
pub use apply::{Applied, ApplyOptions};
pub use connection::{Cluster, Settings};
pub use delete::{DeleteOptions, Deleted, Propagation};
pub use error::{AnswerLimit, ApiError, Error};
pub use forward::Forward;
pub use list::{Detail, Gap, Listing, Restriction};
pub use logs::{LogLine, LogLines, LogOptions};
pub use patch::Patch;
pub use snapshot::{GroupVersion, ResourceKind, Scope, Snapshot};
pub use stream::{Change, Changes, Selection};
pub use watch::{News, ObjectWatch};
