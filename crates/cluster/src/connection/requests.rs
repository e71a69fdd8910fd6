//! The number of requests in flight, which tenants share.

use std::time::Duration;

use limits::PermitLimits;

/// Requests that only tenants without any in flight may add.
const RESERVE: usize = 4;
/// Part of the slow requests that one tenant may have.
const PART_OF_TENANT: usize = 4;
/// Time after which a request is slow.
const QUICK: Duration = Duration::from_secs(3);
/// Time after which a request is sent again later, if a tenant without any waits.
const EVICT_AFTER: Duration = Duration::from_secs(15);

/// Returns the limits of requests of which a tenant may have `concurrency` quick ones. Pure.
pub(super) fn limits(concurrency: usize) -> PermitLimits {
    let concurrency = concurrency.max(1);
    PermitLimits {
        quick: concurrency + RESERVE,
        reserve: RESERVE,
        slow: concurrency,
        slow_of_tenant: (concurrency / PART_OF_TENANT).max(1),
        quick_time: QUICK,
        evict_after: EVICT_AFTER,
    }
}

#[cfg(test)]
mod tests {
    use ::limits::TenantPermits;
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn tenant_with_all_requests_that_it_can_have_does_not_delay_the_first_of_another() {
        let permits = TenantPermits::new(limits(16));
        let mut held = Vec::new();
        for _ in 0..10 {
            held.extend((0..100).map_while(|_| permits.acquire("bad").now_or_never()));
            tokio::time::advance(QUICK).await;
        }
        assert!(held.len() >= 16, "{}", held.len());
        let mut waiting: Vec<_> = (0..100).map(|_| Box::pin(permits.acquire("bad"))).collect();
        assert!(waiting.iter_mut().all(|request| request.now_or_never().is_none()));
        for tenant in ["good", "other", "https://kubernetes.default.svc"] {
            assert!(permits.acquire(tenant).now_or_never().is_some(), "{tenant}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn slow_requests_of_many_tenants_delay_another_one_by_seconds() {
        let permits = TenantPermits::new(limits(16));
        let mut held = Vec::new();
        for number in 0..100 {
            held.extend(permits.acquire(&number.to_string()).now_or_never());
            tokio::time::advance(QUICK).await;
        }
        let start = tokio::time::Instant::now();
        let ends = held.into_iter().map(|permit| async move {
            permit.evicted().cancelled().await;
        });
        tokio::select! {
            _ = permits.acquire("good") => {}
            _ = futures::future::join_all(ends) => {}
        }
        assert!(start.elapsed() <= EVICT_AFTER + QUICK, "{:?}", start.elapsed());
    }

    #[test]
    fn single_tenant_has_all_quick_requests() {
        for (concurrency, expected) in [(0, 1), (1, 1), (16, 16)] {
            let limits = limits(concurrency);
            assert_eq!(limits.quick - limits.reserve, expected);
            assert!(limits.slow_of_tenant >= 1 && limits.slow_of_tenant <= limits.slow);
        }
    }
}
