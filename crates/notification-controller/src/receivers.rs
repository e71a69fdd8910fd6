//! Receivers: webhooks that request reconciliations.
//!
//! ```text
//! POST /hook/<digest> -> index (path to Receiver) -> body (bounded) -> types (who sent it) -> filters -> targets (annotate)
//! ```
//! A request has the same cost for any number of Receivers. Nothing of it is parsed before its sender is known, unless its type
//! has no authentication but the path. The reason of a refusal is in the log, and never in the response.

mod filters;
#[cfg(test)]
mod fuzz;
mod index;
mod jwt;
mod keys;
mod oidc;
mod path;
mod refused;
mod server;
mod signatures;
mod targets;
mod types;

pub(crate) use index::{Index, follow, secret_triggers};
pub(crate) use keys::Keys;
pub(crate) use path::path;
pub(crate) use server::Server;
pub(crate) use types::{ALL, Type, find, token};
