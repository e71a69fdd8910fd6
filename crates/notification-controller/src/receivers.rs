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
mod server;
mod targets;
mod types;

use api::{
    Fault, Reason,
    notification::{Receiver, ReceiverSpec},
};
use sha2::{Digest, Sha256};

use index::SYNC;
pub(crate) use index::{Index, follow, secret_triggers};
pub(crate) use keys::Keys;
pub(crate) use server::Server;
pub(crate) use types::{ALL, Type, token};

/// Prefix of the paths of all webhooks.
const PREFIX: &str = "/hook/";
/// The type that needs no Secret.
const OIDC: &str = "generic-oidc";
/// Maximum number of resources of a Receiver, for the time that a request may take.
const MAX_RESOURCES: usize = 1000;

/// Returns the path of a webhook, which anyone with the token can compute.
pub(crate) fn path(token: &[u8], name: &str, namespace: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(token);
    hash.update(name.as_bytes());
    hash.update(namespace.as_bytes());
    format!("{PREFIX}{}", hex::encode(hash.finalize()))
}

pub(crate) fn kind_of(spec: &ReceiverSpec) -> Option<&'static types::Type> {
    ALL.iter().find(|known| known.name == spec.type_)
}

/// Refuses a Receiver that can't work with any Secret.
pub(crate) fn validate(receiver: &Receiver) -> Result<(), Fault> {
    let spec = &receiver.spec;
    let stall = |reason, why: String| {
        let message = format!("Reconciliation failed terminally due to configuration error: {why}");
        Err(Fault::stall(reason, message))
    };
    if kind_of(spec).is_none() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_digests_of_token_name_and_namespace() {
        // echo -n "tokentestdefault" | sha256sum
        let expected = hex::encode(Sha256::digest(b"tokentestdefault"));
        assert_eq!(path(b"token", "test", "default"), format!("/hook/{expected}"));
        assert_ne!(
            path(b"token\n", "test", "default"),
            path(b"token", "test", "default")
        );
    }
}
