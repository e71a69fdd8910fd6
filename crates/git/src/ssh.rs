//! Git over SSH: `git-upload-pack` on a channel of a connection, which the requests of a pass share.
//!
//! - [`address`] parses URLs and scp-like addresses (pure);
//! - [`known_hosts`], [`key`], [`algorithms`] and [`login`] have trusted keys, offered algorithms and credentials (pure);
//! - [`connect`] connects and authenticates;
//! - [`pair`] generates keys, and [`scan`] asks for a host key that nobody knows yet;
//! - [`reuse`] keeps connections for the next requests of a pass;
//! - [`link`] is the blocking reader and writer for gix.

pub(crate) mod address;
pub(crate) mod algorithms;
pub(crate) mod connect;
#[cfg(test)]
mod fuzz;
pub(crate) mod key;
pub(crate) mod known_hosts;
pub(crate) mod link;
pub(crate) mod login;
pub(crate) mod pair;
pub(crate) mod reuse;
pub(crate) mod scan;
