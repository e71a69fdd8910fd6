//! Permits for work that may be slow, shared fairly between tenants, such as namespaces.
//!
//! A permit starts in the quick class. Work that takes longer than [`PermitLimits::quick_time`] moves to the slow class, which has a bounded
//! number of permits for each tenant and in all, and its permit is free again. If the slow class is full, the oldest slow work of the tenant
//! with the most permits is evicted for a tenant that has fewer: its [`TenantPermit::evicted`] is cancelled. Evicted work that goes on counts
//! against its tenant only. So hanging work of any number of tenants delays a permit for another one by seconds.

mod state;

use std::{fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{sync::oneshot, time::Instant};
use tokio_util::sync::CancellationToken;

use state::State;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PermitLimits {
    /// Permits of the quick class.
    pub quick: usize,
    /// Part of `quick` that only tenants without any permit get.
    pub reserve: usize,
    /// Permits of the slow class.
    pub slow: usize,
    /// Permits of one tenant in the slow class, and evicted work of one tenant that still goes on.
    pub slow_of_tenant: usize,
    /// Time after which work is slow.
    pub quick_time: Duration,
    /// Time after which work may be evicted for a tenant without permits; four times as long for others.
    pub evict_after: Duration,
}

/// The permits of a process for one kind of work. A free one goes to the tenant with the fewest, slow and evicted work included, and among
/// equals to the one that was served longest ago. Clones are the same.
#[derive(Clone)]
pub struct TenantPermits(Arc<Mutex<State>>);

/// A permit, until it is dropped.
pub struct TenantPermit {
    permits: TenantPermits,
    number: u64,
    tenant: String,
    since: Instant,
    evicted: CancellationToken,
}

impl fmt::Debug for TenantPermits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TenantPermits")
            .field("free", &self.free())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for TenantPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TenantPermit")
            .field("tenant", &self.tenant)
            .finish_non_exhaustive()
    }
}

impl TenantPermits {
    #[must_use]
    pub fn new(limits: PermitLimits) -> Self {
        Self(Arc::new(Mutex::new(State::new(limits))))
    }

    /// Returns the number of free permits of the quick class.
    #[must_use]
    pub fn free(&self) -> usize {
        self.0.lock().free()
    }

    /// Returns the number of tenants with permits or requests.
    #[must_use]
    pub fn tenants(&self) -> usize {
        self.0.lock().tenants()
    }

    /// Waits for a permit. A request whose future is dropped takes none.
    pub async fn acquire(&self, tenant: &str) -> TenantPermit {
        loop {
            let (request, mut answer) = oneshot::channel();
            self.0.lock().request(tenant, request);
            let answered = loop {
                // Requests drive the time of all permits, so that no task has to.
                let next = self.advance();
                tokio::select! {
                    biased;
                    answered = &mut answer => break answered,
                    () = tokio::time::sleep_until(next) => {}
                }
            };
            // A request is only dropped with its receiver.
            if let Ok(permit) = answered {
                return permit;
            }
        }
    }

    /// Grants permits to the requests that may have one now. Returns the next time that changes something, or at which newer permits may.
    fn advance(&self) -> Instant {
        let now = Instant::now();
        let (granted, evicted, next) = {
            let mut state = self.0.lock();
            let (granted, evicted) = state.advance(now);
            (granted, evicted, state.next_change(now))
        };
        for token in evicted {
            token.cancel();
        }
        // Not under the lock: a permit that nobody receives any more is dropped here, and takes it.
        for grant in granted {
            let permit = TenantPermit {
                permits: self.clone(),
                number: grant.number,
                tenant: grant.tenant,
                since: now,
                evicted: grant.evicted,
            };
            drop(grant.request.send(permit));
        }
        next
    }
}

impl TenantPermit {
    #[must_use]
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// Returns the time since the permit was granted.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// Returns the token that is cancelled when the work must end because another tenant waits.
    #[must_use]
    pub const fn evicted(&self) -> &CancellationToken {
        &self.evicted
    }

    /// Waits for work, which `stop` cancels when another tenant needs the permit. Returns its output, and the time after which it was
    /// cancelled.
    pub async fn run<T>(
        &self,
        stop: &CancellationToken,
        work: impl Future<Output = T>,
    ) -> (T, Option<Duration>) {
        let mut work = std::pin::pin!(work);
        let elapsed = tokio::select! {
            biased;
            done = &mut work => return (done, None),
            () = self.evicted.cancelled() => self.elapsed(),
        };
        stop.cancel();
        (work.await, Some(elapsed))
    }
}

impl Drop for TenantPermit {
    fn drop(&mut self) {
        self.permits.0.lock().remove(self.number);
        self.permits.advance();
    }
}

#[cfg(test)]
mod tests;
