//! The verification of a revision's signatures.

use api::Fault;

use super::resolve::Resolve;
use crate::blocking::Job;

/// Verifies signatures of revisions; by default, there are none.
pub(crate) trait Verify: Resolve {
    /// Returns true if signatures are to be verified. Pure.
    fn verifies(_: &Self::Object) -> bool {
        false
    }

    /// Returns true if the trusted keys differ from the keys of the last verification, so that it is repeated. Pure.
    fn keys_changed(_: &Self::Object, _: &Self::Request) -> bool {
        false
    }

    /// Verifies a revision before it is fetched, on a thread of its own. Called if [`Verify::verifies`] is true, and the revision, the
    /// object or the trusted keys changed since the last success. A kind that verifies while it fetches returns `None`. Fails with a reason
    /// that [`Words::failure_conditions`](super::Words::failure_conditions) maps to SourceVerified.
    fn verify(&self, _: &Self::Request, _: &Self::Resolved, _: &Job) -> Result<Option<Verification>, Fault> {
        Ok(None)
    }
}

/// A successful verification of signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verification {
    /// Message of the condition SourceVerified. `None` if a policy accepts the revision without a trusted signature: the condition is
    /// removed then, and each pass verifies.
    pub(crate) message: Option<String>,
    /// Changes with the trusted keys, if the kind records them.
    pub(crate) fingerprint: Option<String>,
}
