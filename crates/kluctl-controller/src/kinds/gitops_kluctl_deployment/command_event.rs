//! A command that ran, as its event has it.

use runtime::Severity;

#[derive(Debug, Clone)]
pub(super) struct CommandEvent {
    pub(super) severity: Severity,
    pub(super) message: String,
}
