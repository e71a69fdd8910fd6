//! Charts from OCI registries and Helm repositories.
//!
//! [`Charts`] are at an address, and a [`Source`] is where one of them is; it lists its versions and pulls one of them as an [`Archive`], whose files come out as
//! a [`tree::Mem`] or in a directory. [`Repository`] and [`Registry`] are the two kinds of places by themselves.
//!
//! Everything that is read is bounded by [`Limits`], what a digest is known of is verified, credentials go to their own host
//! alone, and link-local addresses are never asked. This crate runs no program, reads no configuration of the user, and speaks
//! plain http to a registry only when asked to.

mod access;
mod archive;
mod client;
mod digest;
mod error;
#[cfg(test)]
mod fuzz;
mod hop;
mod index;
mod limits;
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
pub use index::Entry;
pub use limits::Limits;
pub use reference::{Reference, Wanted};
pub use registry::{Descriptor, Manifest, Registry};
pub use repository::Repository;
pub use source::{Charts, Source};
pub use version::{newest, sort};
