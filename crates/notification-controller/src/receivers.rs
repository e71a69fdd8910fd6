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

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use api::{
    Fault, Reason,
    notification::{Receiver, ReceiverSpec},
};

pub(crate) use index::{Index, follow, secret_triggers};
pub(crate) use keys::Keys;
pub(crate) use path::path;
pub(crate) use server::Server;
pub(crate) use types::{ALL, Type, find, token};

/// Maximum number of resources of a Receiver, for the time that a request may take.
const MAX_RESOURCES: usize = 1000;

fn stall(reason: Reason, why: &str) -> Result<(), Fault> {
    let message = format!("Reconciliation failed terminally due to configuration error: {why}");
    Err(Fault::stall(reason, message))
}

/// Refuses a Receiver that can't work with any Secret, apart from its expressions.
pub(crate) fn validate(receiver: &Receiver) -> Result<(), Fault> {
    let spec = &receiver.spec;
    if find(spec).is_none() {
        return stall(
            Reason::ValidationFailed,
            &format!("spec.type: unknown type {:?}", spec.type_),
        );
    }
    if let Err(why) = oidc::validate(spec) {
        return stall(Reason::ValidationFailed, &why);
    }
    if spec.resources.len() > MAX_RESOURCES {
        return stall(
            Reason::ValidationFailed,
            &format!("spec.resources: at most {MAX_RESOURCES} are allowed"),
        );
    }
    Ok(())
}

/// Refuses a Receiver with an invalid expression. It compiles all of them, which takes time: it ends early with a fault when cancelled.
pub(crate) fn check_expressions(spec: &ReceiverSpec, cancelled: &Arc<AtomicBool>) -> Result<(), Fault> {
    let broken = filters::broken(spec, cancelled).or_else(|| oidc::broken(spec, cancelled));
    if cancelled.load(Ordering::Relaxed) {
        return Err(Fault::retry(
            Reason::Timeout,
            "checking the expressions took too long",
        ));
    }
    match broken {
        Some(why) => stall(Reason::InvalidCELExpression, &why),
        None => Ok(()),
    }
}
