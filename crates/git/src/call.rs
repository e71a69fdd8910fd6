//! Timeout, cancellation and limits of one session.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use tokio::runtime::Handle;

use crate::{Limits, Reservations, SshConnections, clock::Clock};

#[derive(Debug, Clone)]
pub struct Call {
    pub timeout: Duration,
    pub cancelled: Arc<AtomicBool>,
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
            limits: Limits::default(),
            tenant: String::new(),
            ssh: SshConnections::default(),
            reservations: Reservations::default(),
        }
    }

    pub(crate) fn start_clock(&self, runtime: Handle, safe_url: String) -> Clock {
        let limits = (self.timeout, self.limits.silence);
        Clock::start(runtime, limits, Arc::clone(&self.cancelled), safe_url)
    }
}
