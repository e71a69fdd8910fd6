//! The rules for references, from the flags of the process.

use std::time::Duration;

use api::{Fault, Reason};
use runtime::{CommonFlags, ObjectKey};

/// The rules for references, from the flags of the process.
#[derive(Debug, Clone, Copy)]
pub struct ReferenceRules {
    /// If true, a reference may name another namespace (`--no-cross-namespace-refs` turns it off).
    pub cross_namespace: bool,
    /// Delay before a dependency that is not ready is read again (`--requeue-dependency`).
    pub requeue_dependency: Duration,
}

impl ReferenceRules {
    #[must_use]
    pub fn new(flags: &CommonFlags) -> Self {
        Self {
            cross_namespace: !flags.no_cross_namespace_refs,
            requeue_dependency: flags.requeue_dependency,
        }
    }

    /// Refuses a reference to another namespace if these are blocked. The object is retried after `retry`: the flag may
    /// change.
    pub(crate) fn allow(
        &self,
        own_namespace: &str,
        kind: &str,
        target: &ObjectKey,
        retry: Duration,
    ) -> Result<(), Fault> {
        if self.cross_namespace || own_namespace == target.namespace {
            return Ok(());
        }
        let message = format!("can't access '{kind}/{target}', cross-namespace references have been blocked");
        Err(Fault::wait(retry, Reason::AccessDenied, message))
    }
}
