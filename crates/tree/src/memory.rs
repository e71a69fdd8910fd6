//! The memory that all pieces of work of a process hold together.

#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The unit of counting, in bytes.
const UNIT: u64 = 1024;
/// The part of the bytes that one tenant may hold, as a fraction.
const PART: (u64, u64) = (3, 4);
/// Longest wait for bytes that others hold.
const PATIENCE: Duration = Duration::from_secs(30);

/// The bytes that the work of a whole process may hold at the same time, beside the [`crate::Budget`] of each piece of work.
/// Tenants wait in the order of their requests, and none may hold more than three quarters. Clones count together.
#[derive(Debug, Clone)]
pub struct Memory {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    all: Arc<Semaphore>,
    bytes: u64,
    tenants: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// The error of work that would hold too many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// The work needs more bytes than it will ever get.
    #[error("it needs more than {limit} bytes of memory")]
    TooMuch {
        /// The most bytes that one tenant may hold.
        limit: u64,
    },
    /// Other work held the bytes for too long.
    #[error("other work held the memory for {0:?}; it will be tried again")]
    Busy(Duration),
    /// Other work holds the bytes, and this work may not wait for them.
    #[error("other work holds the memory; it will be tried again")]
    Held,
}

/// The work of one tenant, such as a namespace or a server.
#[derive(Debug, Clone)]
pub struct Tenant {
    memory: Memory,
    own: Arc<Semaphore>,
}

/// Units of the tenant, and the same units of all.
type Taken = (OwnedSemaphorePermit, OwnedSemaphorePermit);

/// The bytes that a piece of work holds until it is dropped.
#[derive(Debug)]
pub struct Share {
    tenant: Tenant,
    bytes: u64,
    /// Bytes of other shares of the same work.
    beside: u64,
    units: u64,
    all: Option<OwnedSemaphorePermit>,
    own: Option<OwnedSemaphorePermit>,
}

impl Memory {
    /// Makes a memory of this many bytes, which are waited for 30 s at most.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        Self {
            inner: Arc::new(Inner {
                all: Arc::new(Semaphore::new(permits(bytes))),
                bytes,
                tenants: Mutex::default(),
            }),
        }
    }

    /// Returns the tenant with this name.
    #[must_use]
    pub fn tenant(&self, name: &str) -> Tenant {
        let mut tenants = self.inner.tenants.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// Returns the number of bytes that are held now.
    #[must_use]
    pub fn held(&self) -> u64 {
        let left = self.inner.all.available_permits();
        (permits(self.inner.bytes).saturating_sub(left) as u64) * UNIT
    }

    fn of_tenant(&self) -> u64 {
        self.inner.bytes / PART.1 * PART.0
    }
}

impl Tenant {
    /// Returns a share without any bytes yet.
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

    /// Returns the most bytes that one share may hold.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.memory.of_tenant()
    }
}

impl Share {
    /// Returns a share of the same work without any bytes yet, which fails to grow when both together are too large: it would
    /// wait for itself.
    #[must_use]
    pub fn beside(&self) -> Self {
        Self {
            beside: self.beside.saturating_add(self.bytes),
            ..self.tenant.share()
        }
    }

    /// Takes bytes that the share will grow by, waiting for those that others hold. Shares that already hold some may wait for each
    /// other until they lose their patience: take all bytes at once, and others only by [`Share::try_grow`].
    ///
    /// # Errors
    /// Fails at once if the share would be larger than a tenant may have, and if others hold the bytes for more than 30 s. Then
    /// the share stays as it was.
    pub async fn reserve(&mut self, bytes: u64) -> Result<(), MemoryError> {
        let more = self.missing(bytes)?;
        if more > 0 {
            let taken = tokio::time::timeout(PATIENCE, self.tenant.take(more)).await;
            self.add(taken.ok().flatten().ok_or(MemoryError::Busy(PATIENCE))?, more);
        }
        Ok(())
    }

    /// Takes more bytes without waiting, first those that were reserved. Shares that grow only so never wait for each other.
    ///
    /// # Errors
    /// Fails if the share would be larger than a tenant may have, and if others hold the bytes or wait for them. Then the
    /// share stays as it was.
    pub fn try_grow(&mut self, bytes: u64) -> Result<(), MemoryError> {
        let more = self.missing(bytes)?;
        if more > 0 {
            self.add(self.tenant.try_take(more).ok_or(MemoryError::Held)?, more);
        }
        self.bytes = self.bytes.saturating_add(bytes);
        Ok(())
    }

    /// Takes more bytes without waiting, of which the tenant may hold three quarters of what the other tenants leave. However many
    /// tenants take all that they get, there is a part for the next one.
    ///
    /// # Errors
    /// Fails where [`Share::try_grow`] does, and if the tenant's part is used up.
    pub fn try_grow_fairly(&mut self, bytes: u64) -> Result<(), MemoryError> {
        let more = self.missing(bytes)?;
        if more > 0 && !self.tenant.has_part(u64::from(more)) {
            return Err(MemoryError::Held);
        }
        self.try_grow(bytes)
    }

    /// The units to take for so many bytes more.
    fn missing(&self, bytes: u64) -> Result<u32, MemoryError> {
        let wanted = self.bytes.saturating_add(bytes);
        let limit = self.tenant.most();
        if wanted.saturating_add(self.beside) > limit {
            return Err(MemoryError::TooMuch { limit });
        }
        // A tenant's limit is below that of all: the units of a share fit 32 bits, or the memory has no use for a limit.
        let more = wanted.div_ceil(UNIT).saturating_sub(self.units);
        Ok(u32::try_from(more).unwrap_or(u32::MAX))
    }

    fn add(&mut self, (own, all): Taken, units: u32) {
        merge(&mut self.own, own);
        merge(&mut self.all, all);
        self.units += u64::from(units);
    }

    /// Moves the bytes of another share of the same tenant to this one.
    ///
    /// # Errors
    /// Fails if the share would be larger than a tenant may have. Then both stay as they were.
    pub fn merge(&mut self, other: &mut Self) -> Result<(), MemoryError> {
        let limit = self.tenant.most();
        if self.bytes.saturating_add(other.bytes) > limit {
            return Err(MemoryError::TooMuch { limit });
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

    /// Gives back bytes, and all that were reserved and aren't used.
    pub fn shrink(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
        let kept = self.bytes.div_ceil(UNIT);
        let excess = self.units.saturating_sub(kept);
        self.units -= excess;
        let excess = usize::try_from(excess).unwrap_or(usize::MAX);
        for permit in [&mut self.all, &mut self.own].into_iter().flatten() {
            drop(permit.split(excess));
        }
    }

    /// Returns the number of bytes that the share took from the others: its own, and those that were reserved.
    #[must_use]
    pub fn reserved(&self) -> u64 {
        self.units * UNIT
    }

    /// Returns the number of bytes of the share.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Tenant {
    /// Returns true if the tenant would hold at most its part of what the others leave with so many units more.
    fn has_part(&self, more: u64) -> bool {
        let units = |bytes: u64| permits(bytes) as u64;
        let memory = &self.memory;
        let own = units(memory.of_tenant()).saturating_sub(self.own.available_permits() as u64);
        let left = (memory.inner.all.available_permits() as u64).saturating_add(own);
        own.saturating_add(more) <= left / PART.1 * PART.0
    }

    /// Takes units: the tenant's own first, so that a tenant that waits for its own takes none from the others.
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

fn merge(held: &mut Option<OwnedSemaphorePermit>, more: OwnedSemaphorePermit) {
    match held {
        Some(held) => held.merge(more),
        None => *held = Some(more),
    }
}

fn permits(bytes: u64) -> usize {
    usize::try_from(bytes / UNIT).map_or(Semaphore::MAX_PERMITS, |units| units.min(Semaphore::MAX_PERMITS))
}
