//! Artifacts: a source's files become one tarball, which is stored, served, fetched and unpacked.
//!
//! [`pack`] turns a list of files into the same bytes on every machine. [`Storage`] has one directory per object, and
//! [`server`] serves it over HTTP. A consumer's [`ArtifactCache`] downloads a tarball, verifies its digest, and only then
//! unpacks it. This crate knows neither Git nor Kubernetes.

mod digest;
mod error;
pub mod fetch;
pub mod hashes;
pub mod pack;
pub mod server;
pub mod storage;

pub use digest::{Algorithm, Digest};
pub use error::Error;
pub use fetch::{
    ArtifactCache, Limits as FetchLimits, Unpacked, is_small, open_stored, unpack, unpack_selected,
    unpack_stored, unpack_with,
};
pub use hashes::DirectoryHashes;
pub use storage::{Key, Storage};
