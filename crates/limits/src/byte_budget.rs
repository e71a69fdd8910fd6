//! A quota of bytes that all operations of a process share.

mod state;
#[cfg(test)]
mod tests;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use state::{Request, State};

const UNIT: u64 = 1024;
/// The fraction of the bytes that one tenant may take.
const PART: (u64, u64) = (3, 4);
/// Longest wait for bytes that others hold.
const WAIT: Duration = Duration::from_secs(30);
/// Interval at which a wait looks for shares that may be revoked.
const RECHECK: Duration = Duration::from_secs(1);

/// The bytes that a whole process may hold at the same time, beside the budget of each operation. A tenant gets at most three quarters of the
/// bytes that the others leave at that time. Since many tenants leave next to nothing, shares may be revoked ([`Tenant::revoked_by`]): a
/// tenant that is refused bytes revokes the newest large share, older than 15 s, of the tenant with the most bytes, if that has more than the
/// refused one would have. Up to an eighth of all bytes, it is enough that it has more than the refused one has. The revoked bytes
/// are reserved for a minute for the tenant that they were revoked for. So a tenant gets an eighth in some 15 s, as soon as the
/// revoked work has stopped, however many others have taken all they get. Clones count together.
#[derive(Debug, Clone)]
pub struct ByteBudget {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Maximum number of bytes of one tenant.
    of_tenant: u64,
    next_share: AtomicU64,
    state: Mutex<State>,
    /// Notified of bytes that are given back.
    freed: Notify,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ByteBudgetError {
    /// More than a tenant ever gets.
    #[error("it needs more than {limit} bytes of memory")]
    TooMuch { limit: u64 },
    /// Others held the bytes for too long.
    #[error("other work held the memory for {0:?}; it will be tried again")]
    Busy(Duration),
    /// Others hold the bytes, and the request may not wait.
    #[error("other work holds the memory; it will be tried again")]
    InUse,
    /// The bytes of the operation were revoked for a tenant with fewer.
    #[error("other work needed the memory that it held for long; it will be tried again")]
    Revoked,
}

/// A user of the budget, such as a namespace or a server.
#[derive(Debug, Clone)]
pub struct Tenant {
    memory: ByteBudget,
    name: Arc<str>,
    token: Option<CancellationToken>,
}

/// The bytes that an operation holds until the share is dropped.
#[derive(Debug)]
pub struct Share {
    tenant: Tenant,
    number: u64,
    bytes: u64,
    /// Bytes of other shares of the same operation.
    beside: u64,
    units: u64,
}

impl ByteBudget {
    /// Makes a budget of this many bytes, of which a tenant gets at most three quarters of those that the others leave. They are waited for
    /// 30 s at most.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        Self::with_part(bytes, bytes / PART.1 * PART.0, true)
    }

    /// Makes a budget without parts: one tenant may hold all bytes, and none are revoked.
    #[must_use]
    pub fn undivided(bytes: u64) -> Self {
        Self::with_part(bytes, bytes, false)
    }

    fn with_part(bytes: u64, of_tenant: u64, is_divided: bool) -> Self {
        Self {
            inner: Arc::new(Inner {
                of_tenant,
                next_share: AtomicU64::new(0),
                state: Mutex::new(State::new(bytes / UNIT, is_divided)),
                freed: Notify::new(),
            }),
        }
    }

    #[must_use]
    pub fn tenant(&self, name: &str) -> Tenant {
        Tenant {
            memory: self.clone(),
            name: Arc::from(name),
            token: None,
        }
    }

    /// Returns the number of bytes that tenants hold now.
    #[must_use]
    pub fn in_use(&self) -> u64 {
        self.inner.state.lock().in_use() * UNIT
    }
}

impl Tenant {
    /// Returns the tenant for work that holds its bytes while others, such as servers, take their time. Its shares may be revoked: `token` is
    /// cancelled, none of them grows any more, and the work must end soon.
    #[must_use]
    pub fn revoked_by(&self, token: &CancellationToken) -> Self {
        Self {
            token: Some(token.clone()),
            ..self.clone()
        }
    }

    #[must_use]
    pub fn share(&self) -> Share {
        Share {
            tenant: self.clone(),
            number: self.memory.inner.next_share.fetch_add(1, Ordering::Relaxed),
            bytes: 0,
            beside: 0,
            units: 0,
        }
    }

    #[must_use]
    pub fn most(&self) -> u64 {
        self.memory.inner.of_tenant
    }
}

impl Share {
    /// Returns an empty share for the same operation. It fails to grow when both together are too large: it would wait for
    /// itself.
    #[must_use]
    pub fn beside(&self) -> Self {
        let mut share = self.tenant.share();
        share.beside = self.beside.saturating_add(self.bytes);
        share
    }

    /// Waits until the share is revoked; for ever if it can't be.
    pub async fn revoked(&self) {
        match &self.tenant.token {
            Some(token) => token.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// Reserves bytes by which the share will grow, waiting up to 30 s for those that others hold. Shares that already hold
    /// some may wait for each other until the timeout: reserve all bytes at once, and take others only by
    /// [`Share::try_grow`]. Fails at once if the share would exceed the tenant's limit. The share stays as it was on
    /// failure.
    pub async fn reserve(&mut self, bytes: u64) -> Result<(), ByteBudgetError> {
        let more = self.missing(bytes)?;
        if more == 0 {
            return Ok(());
        }
        tokio::select! {
            biased;
            () = self.revoked() => return Err(ByteBudgetError::Revoked),
            waited = tokio::time::timeout(WAIT, self.wait(more)) => {
                waited.map_err(|_| ByteBudgetError::Busy(WAIT))?;
            }
        }
        self.units += more;
        Ok(())
    }

    /// Takes more bytes without waiting, first the reserved ones. Shares that grow only so never wait for each other. Fails
    /// if the share would exceed the tenant's limit, or others hold the bytes; shares may be revoked for the next attempt then. The
    /// share stays as it was on failure.
    pub fn try_grow(&mut self, bytes: u64) -> Result<(), ByteBudgetError> {
        let more = self.missing(bytes)?;
        if more > 0 && !self.try_take(more) {
            return Err(ByteBudgetError::InUse);
        }
        self.units += more;
        self.bytes = self.bytes.saturating_add(bytes);
        Ok(())
    }

    /// Returns the number of units that `bytes` more need.
    fn missing(&self, bytes: u64) -> Result<u64, ByteBudgetError> {
        let wanted = self.bytes.saturating_add(bytes);
        let limit = self.tenant.most();
        if wanted.saturating_add(self.beside) > limit {
            return Err(ByteBudgetError::TooMuch { limit });
        }
        if self
            .tenant
            .token
            .as_ref()
            .is_some_and(CancellationToken::is_cancelled)
        {
            return Err(ByteBudgetError::Revoked);
        }
        Ok(wanted.div_ceil(UNIT).saturating_sub(self.units))
    }

    /// Takes units, or revokes shares of others for a later attempt.
    fn try_take(&self, units: u64) -> bool {
        let request = Request {
            tenant: &self.tenant.name,
            share: self.number,
            token: self.tenant.token.as_ref(),
            units,
        };
        let now = Instant::now();
        let revoked = {
            let mut state = self.tenant.memory.inner.state.lock();
            if state.take(request, now) {
                return true;
            }
            state.revoke_for(request, now)
        };
        for token in revoked {
            token.cancel();
        }
        false
    }

    async fn wait(&self, units: u64) {
        loop {
            let mut freed = std::pin::pin!(self.tenant.memory.inner.freed.notified());
            freed.as_mut().enable();
            if self.try_take(units) {
                return;
            }
            // Another share becomes old enough to be revoked with time.
            let _ = tokio::time::timeout(RECHECK, freed).await;
        }
    }

    /// Moves the bytes of another share of the same tenant to this one. Fails if the share would exceed the tenant's limit.
    /// Both stay as they were on failure.
    pub fn merge(&mut self, other: &mut Self) -> Result<(), ByteBudgetError> {
        let limit = self.tenant.most();
        if self.bytes.saturating_add(other.bytes) > limit {
            return Err(ByteBudgetError::TooMuch { limit });
        }
        self.bytes += std::mem::take(&mut other.bytes);
        self.units += std::mem::take(&mut other.units);
        self.tenant
            .memory
            .inner
            .state
            .lock()
            .merge(other.number, self.number);
        Ok(())
    }

    /// Gives back bytes, and all reserved ones that aren't used.
    pub fn shrink(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
        let used = self.bytes.div_ceil(UNIT);
        self.give_back(self.units.saturating_sub(used));
    }

    fn give_back(&mut self, units: u64) {
        if units == 0 {
            return;
        }
        self.units -= units;
        let inner = &self.tenant.memory.inner;
        inner.state.lock().give_back(self.number, units);
        inner.freed.notify_waiters();
    }

    #[must_use]
    pub fn reserved(&self) -> u64 {
        self.units * UNIT
    }

    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back(self.units);
    }
}
