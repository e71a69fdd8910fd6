//! Permits for fetching the projects of a process, each on a thread of its own.

use std::time::Duration;

use limits::{PermitLimits, TenantPermit, TenantPermits};

/// Fetches at the same time. Servers that drip make theirs slow, and leave the permits to others.
const FETCHES: PermitLimits = PermitLimits {
    quick: 64,
    reserve: 16,
    slow: 128,
    slow_of_tenant: 32,
    quick_time: Duration::from_secs(3),
    evict_after: Duration::from_secs(30),
};

/// Permits for fetches, which tenants such as namespaces share fairly.
#[derive(Debug, Clone)]
pub struct FetchPermits(TenantPermits);

impl Default for FetchPermits {
    fn default() -> Self {
        Self(TenantPermits::new(FETCHES))
    }
}

impl FetchPermits {
    pub(super) async fn acquire(&self, tenant: &str) -> TenantPermit {
        self.0.acquire(tenant).await
    }

    #[cfg(test)]
    pub(super) fn free(&self) -> usize {
        self.0.free()
    }

    #[cfg(test)]
    pub(super) const QUICK: usize = FETCHES.quick;
}
