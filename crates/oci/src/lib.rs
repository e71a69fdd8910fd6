//! Artifacts of OCI registries, their signatures, and charts from registries and Helm repositories.
//!
//! [`Charts`] lists the charts at an address. A [`ChartSource`] is one of them: it lists its versions and pulls one as an
//! [`Archive`], whose files are unpacked to a [`tree::Mem`] or a directory. [`Repository`] (an index.yaml) and [`Registry`]
//! (OCI) can also be used directly.
//!
//! All reads are bounded by [`Limits`], and content with a known digest is verified. Credentials are sent to their own host,
//! and to the token service of a registry. Addresses follow the policy of the client ([`net::AddressPolicy`]). This crate runs
//! no program and reads no configuration of the user.

mod access;
mod archive;
mod client;
pub mod cosign;
mod digest;
pub mod docker;
mod error;
#[cfg(test)]
mod fuzz;
mod hop;
mod index;
mod limits;
pub mod notation;
mod reference;
mod registry;
mod repository;
mod source;
mod version;

pub use access::{Access, Credentials, Identity};
pub use archive::{Archive, write_new};
pub use client::Client;
pub use digest::Digest;
pub use error::Error;
pub use index::{Entry, IndexFile};
pub use limits::Limits;
pub use reference::{Reference, Wanted};
pub use registry::{Artifact, CHART_LAYER, Descriptor, Manifest, Registry};
pub use repository::Repository;
pub use source::{ChartSource, Charts, versions_of_tags};
pub use version::{newest, newest_created, sort};
