//! Git over http, https and ssh, without a work tree and without any other program.
//!
//! A [`Network`] opens a [`Session`] with a [`Remote`]; the session lists the refs that a [`Reference`] needs, and fetches one
//! commit, shallow, to memory or to a temporary directory. The [`Snapshot`] reads files from its pack. [`select`] is the pure
//! decision which commit a reference means.
//!
//! Everything blocks under one deadline and one cancellation flag, so callers run it on a thread for blocking work. This crate
//! never checks files out, never reads Git configuration, never starts a process, and refuses every address that is not http,
//! https or ssh. Only [`Checkout`] and [`History`] read a directory that somebody else checked out, and only [`Worktree`] adds
//! commits to it.

mod announced;
mod call;
mod checkout;
mod client;
mod clock;
mod commit;
mod discover;
mod error;
#[cfg(test)]
mod fuzz;
mod history;
mod http;
mod ignore_files;
mod intake;
mod limits;
mod listing;
mod objects;
#[cfg(test)]
mod original;
mod pack;
mod push;
mod range;
mod receiver;
mod refs;
mod remote;
mod request;
mod reservations;
mod session;
mod signature;
mod snapshot;
mod ssh;
mod submodule;
mod wire;
mod worktree;

pub use call::Call;
pub use checkout::Checkout;
pub use client::Network;
pub use commit::Commit;
pub use error::Error;
pub use history::History;
pub use ignore_files::IgnoreFiles;
pub use limits::{Limits, Pace};
pub use listing::Listing;
pub use push::NewCommit;
pub use range::Range;
pub use refs::{Advertised, Reference, Resolved, Selector, select};
pub use remote::{Auth, Remote};
pub use reservations::Reservations;
pub use session::Session;
pub use signature::{SignedObject, TrustedKeys, Unverified};
pub use snapshot::{Node, NodeKind, Snapshot};
pub use ssh::{
    algorithms::{SshAlgorithms, UnsupportedAlgorithms},
    key::{InvalidKey, SshKey},
    known_hosts::{InvalidKnownHosts, KnownHosts},
    login::SshLogin,
    pair::{KeyAlgorithm, SshKeyPair},
    reuse::SshConnections,
    scan::{ScanError, scan_host_key},
};
pub use submodule::Submodule;
pub use worktree::{Author, Worktree};
