//! Limits concurrent renders: one per name, and a maximum per process of those that don't wait for the network, which namespaces share.
//!
//! A cancelled render stops when it next checks its budget. One that fails to check keeps its thread and its name, so that retries for the
//! same object don't accumulate beside it. Its permit is free again: it counts against its namespace only.

use std::{collections::HashMap, sync::Arc, time::Duration};

use limits::{Claim, ExclusiveNames, KeyedPermits, PermitLimits, TenantPermit, TenantPermits};
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::Error;

/// Renders that work at the same time. A render of more than 20 s is slow.
const RENDERS: PermitLimits = PermitLimits {
    quick: 32,
    reserve: 4,
    slow: 16,
    slow_of_tenant: 4,
    quick_time: Duration::from_secs(20),
    evict_after: Duration::from_secs(60),
};
/// Threads of renders of a namespace, including renders that wait for the network.
const THREADS_OF_NAMESPACE: usize = 64;
/// Cancelled renders of a namespace that have not ended, beside which no other one of the namespace begins.
const MAX_STUCK: usize = 4;
/// Time that a render waits for the end of the previous one of its name. A cancelled render usually ends within milliseconds.
const PREVIOUS_TIMEOUT: Duration = Duration::from_secs(5);

/// Slots for the renders of a process: one per name, and a limited number in all, of which each namespace gets its part.
#[derive(Debug, Clone)]
pub struct RenderSlots {
    running: ExclusiveNames,
    permits: TenantPermits,
    threads: Arc<KeyedPermits<String>>,
    stuck: StuckRenders,
    pub(crate) previous_timeout: Duration,
}

impl Default for RenderSlots {
    fn default() -> Self {
        Self::new(RENDERS)
    }
}

impl RenderSlots {
    fn new(limits: PermitLimits) -> Self {
        Self {
            running: ExclusiveNames::default(),
            permits: TenantPermits::new(limits),
            threads: Arc::new(KeyedPermits::new(THREADS_OF_NAMESPACE)),
            stuck: StuckRenders::default(),
            previous_timeout: PREVIOUS_TIMEOUT,
        }
    }

    /// Returns the permit of a render of `name`, which is not granted yet.
    pub(crate) fn permit(&self, name: &str) -> RenderPermit {
        RenderPermit(Arc::new(PermitState {
            permits: self.permits.clone(),
            stuck: self.stuck.clone(),
            namespace: namespace_of(name).to_owned(),
            current: Mutex::new(Current::Waiting),
            evicted: watch::Sender::new(None),
        }))
    }

    /// Waits for a slot for a render of `name`, and for its `permit`. Both are released when the returned value is dropped. Fails when the
    /// previous render of `name` runs for longer than `limit`, or than 5 seconds, and when so long too many of its namespace are stuck.
    pub(crate) async fn acquire(
        &self,
        name: &str,
        limit: Option<Duration>,
        permit: RenderPermit,
    ) -> Result<RenderSlot, Error> {
        let timeout = limit.map_or(self.previous_timeout, |limit| limit.min(self.previous_timeout));
        let claim = tokio::time::timeout(timeout, self.running.claim(name))
            .await
            .map_err(|_| Error::StillRendering {
                name: name.to_owned(),
            })?;
        let namespace = permit.0.namespace.clone();
        tokio::time::timeout(timeout, self.stuck.wait(&namespace))
            .await
            .map_err(|_| Error::StuckRenders {
                namespace: namespace.clone(),
                count: MAX_STUCK,
            })?;
        let thread = self.threads.acquire(namespace).await;
        permit.acquire().await;
        Ok(RenderSlot {
            _claim: claim,
            _thread: thread,
            permit,
        })
    }
}

/// Returns the namespace in a name such as `KluctlDeployment/apps/shop`; empty if it has none.
pub(super) fn namespace_of(name: &str) -> &str {
    let mut parts = name.rsplit('/');
    parts.nth(1).unwrap_or_default()
}

/// The permit of a render to work. A render gives it back while it waits for the network, so that those that wait for silent servers
/// keep no other from working. Its waits must not overlap.
#[derive(Debug, Clone)]
pub(crate) struct RenderPermit(Arc<PermitState>);

#[derive(Debug)]
struct PermitState {
    permits: TenantPermits,
    stuck: StuckRenders,
    namespace: String,
    current: Mutex<Current>,
    /// The token of the current permit that is cancelled for others, and the time of the permit.
    evicted: watch::Sender<Option<(CancellationToken, Instant)>>,
}

#[derive(Debug)]
enum Current {
    /// Before the start of the render, and while it waits for the network.
    Waiting,
    Granted(#[allow(dead_code, reason = "it is held until it is replaced")] TenantPermit),
    /// Nobody waits for the render any more, but its thread goes on.
    Abandoned(#[allow(dead_code, reason = "it is held until it is replaced")] StuckRender),
    Ended,
}

impl RenderPermit {
    async fn acquire(&self) {
        if !matches!(*self.0.current.lock(), Current::Waiting) {
            return;
        }
        let permit = self.0.permits.acquire(&self.0.namespace).await;
        let evicted = (permit.evicted().clone(), Instant::now());
        let mut current = self.0.current.lock();
        if matches!(*current, Current::Waiting) {
            *current = Current::Granted(permit);
            self.0.evicted.send_replace(Some(evicted));
        }
    }

    fn release(&self) {
        let mut current = self.0.current.lock();
        if matches!(*current, Current::Granted(_)) {
            *current = Current::Waiting;
            self.0.evicted.send_replace(None);
        }
    }

    /// Ends the use of the permit with the thread of the render.
    fn end(&self) {
        *self.0.current.lock() = Current::Ended;
    }

    /// Frees the permit of a render that nobody waits for. Until its thread ends, it counts against its namespace.
    pub(crate) fn abandon(&self) {
        let mut current = self.0.current.lock();
        if matches!(*current, Current::Waiting | Current::Granted(_)) {
            *current = Current::Abandoned(self.0.stuck.add(&self.0.namespace));
        }
    }

    /// Waits until the render has to end, as other namespaces wait for a permit. Returns the time that it worked.
    pub(crate) async fn evicted(&self) -> Duration {
        let mut current = self.0.evicted.subscribe();
        loop {
            let permit = current.borrow_and_update().clone();
            let Some((token, since)) = permit else {
                if current.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
                continue;
            };
            tokio::select! {
                () = token.cancelled() => return since.elapsed(),
                _ = current.changed() => {}
            }
        }
    }

    pub(crate) async fn waiting<T>(&self, wait: impl Future<Output = T>) -> T {
        self.release();
        let waited = wait.await;
        self.acquire().await;
        waited
    }
}

/// The cancelled renders that have not ended, by namespace.
#[derive(Debug, Clone, Default)]
struct StuckRenders(Arc<StuckState>);

#[derive(Debug, Default)]
struct StuckState {
    counts: Mutex<HashMap<String, usize>>,
    ended: Notify,
}

/// A cancelled render, until its thread ends.
#[derive(Debug)]
struct StuckRender {
    namespace: String,
    all: StuckRenders,
}

impl StuckRenders {
    fn add(&self, namespace: &str) -> StuckRender {
        *self.0.counts.lock().entry(namespace.to_owned()).or_default() += 1;
        StuckRender {
            namespace: namespace.to_owned(),
            all: self.clone(),
        }
    }

    fn count(&self, namespace: &str) -> usize {
        self.0.counts.lock().get(namespace).copied().unwrap_or_default()
    }

    /// Waits until a namespace has few of them.
    async fn wait(&self, namespace: &str) {
        loop {
            let ended = self.0.ended.notified();
            if self.count(namespace) < MAX_STUCK {
                return;
            }
            ended.await;
        }
    }
}

impl Drop for StuckRender {
    fn drop(&mut self) {
        let mut counts = self.all.0.counts.lock();
        if let Some(count) = counts.get_mut(&self.namespace) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.namespace);
            }
        }
        drop(counts);
        self.all.0.ended.notify_waiters();
    }
}

#[derive(Debug)]
pub(crate) struct RenderSlot {
    _claim: Claim,
    _thread: Option<OwnedSemaphorePermit>,
    permit: RenderPermit,
}

impl RenderSlot {
    pub(crate) fn permit(&self) -> &RenderPermit {
        &self.permit
    }
}

impl Drop for RenderSlot {
    fn drop(&mut self) {
        self.permit.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: PermitLimits = PermitLimits {
        quick: 1,
        reserve: 0,
        ..RENDERS
    };

    async fn acquire(renders: &RenderSlots, name: &str) -> Result<RenderSlot, Error> {
        renders.acquire(name, None, renders.permit(name)).await
    }

    #[tokio::test]
    async fn slot_is_held_until_dropped_and_leaves_no_entry() {
        let renders = RenderSlots {
            previous_timeout: Duration::ZERO,
            ..RenderSlots::default()
        };
        let slot = acquire(&renders, "apps/shop").await.unwrap();
        let error = acquire(&renders, "apps/shop").await.unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("the last render of apps/shop has not ended yet"),
            "{error}"
        );
        let other = acquire(&renders, "apps/other").await.unwrap();
        drop(slot);
        drop(acquire(&renders, "apps/shop").await.unwrap());
        drop(other);
        assert!(renders.running.is_empty());
        assert_eq!(renders.permits.free(), RENDERS.quick);
        assert_eq!((renders.permits.tenants(), renders.threads.keys()), (0, 0));
    }

    #[tokio::test]
    async fn renders_beyond_the_limit_wait() {
        let renders = RenderSlots::new(ONE);
        let slot = acquire(&renders, "a").await.unwrap();
        let mut next = Box::pin(acquire(&renders, "b"));
        assert!(futures::poll!(&mut next).is_pending());
        drop(slot);
        drop(next.await.unwrap());
        // A render that is cancelled while it waits leaves no entry either.
        let slot = acquire(&renders, "a").await.unwrap();
        let mut next = Box::pin(acquire(&renders, "b"));
        assert!(futures::poll!(&mut next).is_pending());
        drop(next);
        drop(slot);
        assert!(renders.running.is_empty());
    }

    #[tokio::test]
    async fn render_that_waits_gives_its_permit_back() {
        let renders = RenderSlots::new(ONE);
        let permit = renders.permit("a");
        let waiting = renders.acquire("a", None, permit.clone()).await.unwrap();
        let (send, receive) = tokio::sync::oneshot::channel();
        let mut wait = Box::pin(permit.waiting(receive));
        assert!(futures::poll!(&mut wait).is_pending());
        let other = acquire(&renders, "b").await.unwrap();
        send.send(()).unwrap();
        assert!(futures::poll!(&mut wait).is_pending(), "the other one works");
        drop(other);
        wait.await.unwrap();
        assert_eq!(renders.permits.free(), 0);
        drop(waiting);
        assert_eq!(renders.permits.free(), 1);
    }

    #[test]
    fn namespace_is_the_part_before_the_name() {
        for (name, expected) in [
            ("KluctlDeployment.gitops.kluctl.io/apps/shop", "apps"),
            ("KluctlDeployment/apps/shop", "apps"),
            ("apps/shop", "apps"),
            ("shop", ""),
            ("", ""),
        ] {
            assert_eq!(namespace_of(name), expected, "{name}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn cancelled_renders_that_go_on_free_their_permits_and_count_against_their_namespace() {
        let renders = RenderSlots::default();
        let mut stuck = Vec::new();
        for number in 0..MAX_STUCK {
            let slot = acquire(&renders, &format!("bad/{number}")).await.unwrap();
            slot.permit().abandon();
            stuck.push(slot);
        }
        assert_eq!(renders.permits.free(), RENDERS.quick);
        let error = acquire(&renders, "bad/more").await.unwrap_err().to_string();
        assert!(
            error.starts_with("4 cancelled renders in the namespace bad have not ended"),
            "{error}"
        );
        // A wait of an abandoned render that ends takes no permit.
        stuck[0].permit().waiting(async {}).await;
        assert_eq!(renders.permits.free(), RENDERS.quick);
        let others: Vec<_> = (0..RENDERS.quick - RENDERS.reserve)
            .map(|number| format!("good/{number}"))
            .collect();
        let mut slots = Vec::new();
        for name in &others {
            slots.push(acquire(&renders, name).await.unwrap());
        }
        stuck.pop();
        let next = acquire(&renders, "bad/more").await.unwrap();
        next.permit().abandon();
        drop((next, stuck, slots));
        assert!(renders.stuck.0.counts.lock().is_empty() && renders.running.is_empty());
        assert_eq!(renders.permits.free(), RENDERS.quick);
    }

    #[tokio::test(start_paused = true)]
    async fn namespace_with_endless_renders_leaves_permits_to_others_and_loses_some() {
        let renders = RenderSlots::new(PermitLimits {
            quick: 3,
            reserve: 1,
            slow: 1,
            slow_of_tenant: 1,
            ..RENDERS
        });
        let mut endless = Vec::new();
        for number in 0..3 {
            endless.push(acquire(&renders, &format!("bad/{number}")).await.unwrap());
        }
        let waiting = acquire(&renders, "bad/more");
        assert!(
            tokio::time::timeout(RENDERS.quick_time / 2, waiting)
                .await
                .is_err()
        );
        let first = acquire(&renders, "good/1").await.unwrap();
        let evicted = endless.iter().map(|slot| Box::pin(slot.permit().evicted()));
        let evicted = tokio::time::timeout(2 * RENDERS.evict_after, futures::future::select_all(evicted));
        let (second, evicted) = tokio::join!(acquire(&renders, "other/1"), evicted);
        let (after, ..) = evicted.unwrap();
        assert!(after >= RENDERS.evict_after, "{after:?}");
        drop((first, second, endless));
    }
}
