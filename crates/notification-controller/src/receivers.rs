//! Receivers: webhooks that request reconciliations.
//!
//! ```text
//! POST /hook/<digest> -> index (path to Receiver) -> body (bounded) -> types (who sent it) -> filters -> targets (annotate)
//! ```
//! A request has the same cost for any number of Receivers. Nothing of it is parsed before its sender is known, unless its type
//! has no authentication but the path. The reason of a refusal is in the log, and never in the response.

mod compute;
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
mod targets;
mod types;

use api::{Fault, Reason, notification::Receiver};

pub(crate) use index::{Index, follow, secret_triggers};
pub(crate) use keys::Keys;
pub(crate) use path::path;
pub(crate) use server::Server;
pub(crate) use types::{ALL, Type, find, token};

/// Maximum number of resources of a Receiver, for the time that a request may take.
const MAX_RESOURCES: usize = 1000;

/// Refuses a Receiver that can't work with any Secret.
pub(crate) fn validate(receiver: &Receiver) -> Result<(), Fault> {
    let spec = &receiver.spec;
    let stall = |reason, why: String| {
        let message = format!("Reconciliation failed terminally due to configuration error: {why}");
        Err(Fault::stall(reason, message))
    };
    if find(spec).is_none() {
        return stall(
            Reason::ValidationFailed,
            format!("spec.type: unknown type {:?}", spec.type_),
        );
    }
    if let Err(why) = oidc::validate(spec) {
        return stall(Reason::ValidationFailed, why);
    }
    if spec.resources.len() > MAX_RESOURCES {
        return stall(
            Reason::ValidationFailed,
            format!("spec.resources: at most {MAX_RESOURCES} are allowed"),
        );
    }
    match filters::broken(spec).or_else(|| oidc::broken(spec)) {
        Some(why) => stall(Reason::InvalidCELExpression, why),
        None => Ok(()),
    }
}
