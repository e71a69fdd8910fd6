//! Timeout, cancellation and limits of one session.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::{Limits, Reservations, SshConnections, clock::Clock};

#[derive(Debug, Clone)]
pub struct Call {
    pub timeout: Duration,
    pub cancelled: Arc<AtomicBool>,
    /// Cancelled when other tenants need the memory or the temporary files of the call, which fails then; by default of this call only.
    pub revoked: CancellationToken,
    pub limits: Limits,
    /// Tenant whose part of the process's memory is used, such as a namespace; if empty, the host of the server.
    pub tenant: String,
    /// SSH connections for all requests of a pass; by default of this call only.
    pub ssh: SshConnections,
    /// Memory and temporary files of all fetches of a pass; by default of this call only.
    pub reservations: Reservations,
}

impl Call {
    #[must_use]
    pub fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            cancelled: Arc::default(),
            revoked: CancellationToken::new(),
            limits: Limits::default(),
            tenant: String::new(),
            ssh: SshConnections::default(),
            reservations: Reservations::default(),
        }
    }

    pub(crate) fn start_clock(&self, runtime: Handle, safe_url: String) -> Clock {
        let limits = (self.timeout, self.limits.silence);
        let ends = (Arc::clone(&self.cancelled), self.revoked.clone());
        Clock::start(runtime, limits, ends, safe_url)
    }
}
