//! A quota of bytes that all operations of a process share.

#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

const UNIT: u64 = 1024;
/// The fraction of the bytes that one tenant may take.
const PART: (u64, u64) = (3, 4);
/// Longest wait for bytes that others hold.
const WAIT: Duration = Duration::from_secs(30);

/// The bytes that a whole process may hold at the same time, beside the budget of each operation. Tenants wait in
/// the order of their requests, and none may hold more than three quarters; of a fair budget, three quarters of the bytes that the
/// others leave. Clones count together.
#[derive(Debug, Clone)]
pub struct ByteBudget {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    all: Arc<Semaphore>,
    bytes: u64,
    /// Maximum number of bytes of one tenant.
    of_tenant: u64,
    /// Notified of bytes that are given back, if the budget is fair.
    freed: Option<Arc<Notify>>,
    tenants: Mutex<HashMap<String, Weak<Semaphore>>>,
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
}

/// A user of the budget, such as a namespace or a server.
#[derive(Debug, Clone)]
pub struct Tenant {
    memory: ByteBudget,
    own: Arc<Semaphore>,
}

/// Units of the tenant, and the same units of all.
type Taken = (OwnedSemaphorePermit, OwnedSemaphorePermit);

/// The bytes that an operation holds until the share is dropped.
#[derive(Debug)]
pub struct Share {
    tenant: Tenant,
    bytes: u64,
    /// Bytes of other shares of the same operation.
    beside: u64,
    units: u64,
    all: Option<OwnedSemaphorePermit>,
    own: Option<OwnedSemaphorePermit>,
}

impl ByteBudget {
    /// Makes a budget of this many bytes, which are waited for 30 s at most.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        Self::with_part(bytes, bytes / PART.1 * PART.0, None)
    }

    /// Makes a budget of this many bytes, of which a tenant gets at most three quarters of those that the others leave: some are left for
    /// the next tenant, however many there are. Waits of 30 s at most end as soon as the bytes are there, in no order.
    #[must_use]
    pub fn fair(bytes: u64) -> Self {
        Self::with_part(bytes, bytes / PART.1 * PART.0, Some(Arc::default()))
    }

    /// Makes a budget without parts: one tenant may hold all bytes.
    #[must_use]
    pub fn undivided(bytes: u64) -> Self {
        Self::with_part(bytes, bytes, None)
    }

    fn with_part(bytes: u64, of_tenant: u64, freed: Option<Arc<Notify>>) -> Self {
        Self {
            inner: Arc::new(Inner {
                all: Arc::new(Semaphore::new(permits(bytes))),
                bytes,
                of_tenant,
                freed,
                tenants: Mutex::default(),
            }),
        }
    }

    #[must_use]
    pub fn tenant(&self, name: &str) -> Tenant {
        let mut tenants = self.inner.tenants.lock();
        let known = tenants.get(name).and_then(Weak::upgrade);
        let own = known.unwrap_or_else(|| {
            tenants.retain(|_, own| own.strong_count() > 0);
            let own = Arc::new(Semaphore::new(permits(self.of_tenant())));
            tenants.insert(name.to_owned(), Arc::downgrade(&own));
            own
        });
        Tenant {
            memory: self.clone(),
            own,
        }
    }

    /// Returns the number of bytes that tenants hold now.
    #[must_use]
    pub fn in_use(&self) -> u64 {
        let left = self.inner.all.available_permits();
        (permits(self.inner.bytes).saturating_sub(left) as u64) * UNIT
    }

    fn of_tenant(&self) -> u64 {
        self.inner.of_tenant
    }
}

impl Tenant {
    #[must_use]
    pub fn share(&self) -> Share {
        Share {
            tenant: self.clone(),
            bytes: 0,
            beside: 0,
            units: 0,
            all: None,
            own: None,
        }
    }

    #[must_use]
    pub fn most(&self) -> u64 {
        self.memory.of_tenant()
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

    /// Reserves bytes by which the share will grow, waiting up to 30 s for those that others hold. Shares that already hold
    /// some may wait for each other until the timeout: reserve all bytes at once, and take others only by
    /// [`Share::try_grow`]. Fails at once if the share would exceed the tenant's limit. The share stays as it was on
    /// failure.
    pub async fn reserve(&mut self, bytes: u64) -> Result<(), ByteBudgetError> {
        let more = self.missing(bytes)?;
        if more > 0 {
            let taken = tokio::time::timeout(WAIT, self.tenant.wait(more)).await;
            self.add(taken.ok().flatten().ok_or(ByteBudgetError::Busy(WAIT))?, more);
        }
        Ok(())
    }

    /// Takes more bytes without waiting, first the reserved ones. Shares that grow only so never wait for each other. Fails
    /// if the share would exceed the tenant's limit, or others hold or wait for the bytes. The share stays as it was on
    /// failure.
    pub fn try_grow(&mut self, bytes: u64) -> Result<(), ByteBudgetError> {
        let more = self.missing(bytes)?;
        if more > 0 {
            if self.tenant.memory.inner.freed.is_some() && !self.tenant.has_part(u64::from(more)) {
                return Err(ByteBudgetError::InUse);
            }
            self.add(self.tenant.try_take(more).ok_or(ByteBudgetError::InUse)?, more);
        }
        self.bytes = self.bytes.saturating_add(bytes);
        Ok(())
    }

    /// Takes more bytes as [`Share::try_grow`] does, and fails if the tenant would hold more than three quarters of the
    /// bytes that the other tenants leave: some are left for the next tenant, however many there are.
    pub fn try_grow_fairly(&mut self, bytes: u64) -> Result<(), ByteBudgetError> {
        let more = self.missing(bytes)?;
        if more > 0 && !self.tenant.has_part(u64::from(more)) {
            return Err(ByteBudgetError::InUse);
        }
        self.try_grow(bytes)
    }

    /// Returns the number of units that `bytes` more need.
    fn missing(&self, bytes: u64) -> Result<u32, ByteBudgetError> {
        let wanted = self.bytes.saturating_add(bytes);
        let limit = self.tenant.most();
        if wanted.saturating_add(self.beside) > limit {
            return Err(ByteBudgetError::TooMuch { limit });
        }
        // A tenant's limit is below the whole: the units of a share fit 32 bits, or the budget is as good as unlimited.
        let more = wanted.div_ceil(UNIT).saturating_sub(self.units);
        Ok(u32::try_from(more).unwrap_or(u32::MAX))
    }

    fn add(&mut self, (own, all): Taken, units: u32) {
        merge(&mut self.own, own);
        merge(&mut self.all, all);
        self.units += u64::from(units);
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
        if let Some(own) = other.own.take() {
            merge(&mut self.own, own);
        }
        if let Some(all) = other.all.take() {
            merge(&mut self.all, all);
        }
        Ok(())
    }

    /// Gives back bytes, and all reserved ones that aren't used.
    pub fn shrink(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
        let used = self.bytes.div_ceil(UNIT);
        let excess = self.units.saturating_sub(used);
        self.units -= excess;
        let excess = usize::try_from(excess).unwrap_or(usize::MAX);
        for permit in [&mut self.all, &mut self.own].into_iter().flatten() {
            drop(permit.split(excess));
        }
        self.tenant.freed();
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

impl Tenant {
    /// Returns true if the tenant would hold at most its fraction of the bytes that the others leave with `more` units.
    fn has_part(&self, more: u64) -> bool {
        let units = |bytes: u64| permits(bytes) as u64;
        let memory = &self.memory;
        let own = units(memory.of_tenant()).saturating_sub(self.own.available_permits() as u64);
        let left = (memory.inner.all.available_permits() as u64).saturating_add(own);
        own.saturating_add(more) <= left / PART.1 * PART.0
    }

    /// Waits for units, and for their part of a fair budget.
    async fn wait(&self, units: u32) -> Option<Taken> {
        let Some(freed) = &self.memory.inner.freed else {
            return self.take(units).await;
        };
        loop {
            let mut notified = std::pin::pin!(freed.notified());
            notified.as_mut().enable();
            if self.has_part(u64::from(units))
                && let Some(taken) = self.try_take(units)
            {
                return Some(taken);
            }
            notified.await;
        }
    }

    fn freed(&self) {
        if let Some(freed) = &self.memory.inner.freed {
            freed.notify_waiters();
        }
    }

    /// Takes units, the tenant's own first: a tenant that waits for its own takes none from the others.
    async fn take(&self, units: u32) -> Option<Taken> {
        let own = Arc::clone(&self.own).acquire_many_owned(units).await.ok()?;
        let all = Arc::clone(&self.memory.inner.all);
        Some((own, all.acquire_many_owned(units).await.ok()?))
    }

    fn try_take(&self, units: u32) -> Option<Taken> {
        let own = Arc::clone(&self.own).try_acquire_many_owned(units).ok()?;
        let all = Arc::clone(&self.memory.inner.all);
        Some((own, all.try_acquire_many_owned(units).ok()?))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.units > 0 {
            drop((self.all.take(), self.own.take()));
            self.tenant.freed();
        }
    }
}

fn merge(permit: &mut Option<OwnedSemaphorePermit>, more: OwnedSemaphorePermit) {
    match permit {
        Some(permit) => permit.merge(more),
        None => *permit = Some(more),
    }
}

fn permits(bytes: u64) -> usize {
    usize::try_from(bytes / UNIT).map_or(Semaphore::MAX_PERMITS, |units| units.min(Semaphore::MAX_PERMITS))
}
