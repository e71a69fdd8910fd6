//! One controller process: logs, metrics, admin port, lease, shutdown, queue, the pass.
//!
//! Everything that is the same for every kind lives here once, so that a kind is only its decisions.

pub mod pass;

pub use pass::{EventDraft, Outcome, Pass, Reconciler, Requeue, Severity};
