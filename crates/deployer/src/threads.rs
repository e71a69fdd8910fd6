//! Threads for the work of passes, such as builds.

use std::time::Duration;

use limits::{
    PermitLimits, TenantPermits,
    blocking::{self, Failed, Job},
};
use runtime::Pass;

/// Work that is done at the same time. Work of more than 5 s is slow: it computes much, or waits for servers.
const LIMITS: PermitLimits = PermitLimits {
    quick: 8,
    reserve: 2,
    slow: 16,
    slow_of_tenant: 4,
    quick_time: Duration::from_secs(5),
    evict_after: Duration::from_secs(30),
};

/// The threads of a process for the work of passes, which namespaces share fairly. Clones are the same.
#[derive(Debug, Clone)]
pub struct PassThreads(TenantPermits);

impl Default for PassThreads {
    fn default() -> Self {
        Self(TenantPermits::new(LIMITS))
    }
}

impl PassThreads {
    /// Runs work of a pass on a thread, and lends the permit of the pass meanwhile. Returns its result, and the time after which it was
    /// cancelled if another namespace needed the thread.
    ///
    /// # Errors
    /// If no thread can be started, the work panics, or the pass is cancelled before it starts.
    pub async fn run<O, T: Send + 'static>(
        &self,
        pass: &Pass<'_, O>,
        timeout: Duration,
        work: impl FnOnce(&Job) -> T + Send + 'static,
    ) -> Result<(T, Option<Duration>), Failed> {
        let work = blocking::run_with_permit(&self.0, pass.namespace, timeout, &pass.cancel, work);
        pass.slot.lending(work).await
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn builds_that_wait_for_servers_leave_threads_to_another_namespace() {
        let threads = PassThreads::default();
        let all = LIMITS.quick + LIMITS.slow;
        let mut waiting: Vec<_> = (0..all).map(|_| Box::pin(threads.0.acquire("bad"))).collect();
        let held = waiting.iter_mut().filter_map(|request| request.now_or_never());
        let held: Vec<_> = held.collect();
        assert_eq!(held.len(), LIMITS.quick - LIMITS.reserve);
        for namespace in ["good", "other"] {
            assert!(
                threads.0.acquire(namespace).now_or_never().is_some(),
                "{namespace}"
            );
        }
    }
}
