//! Work and waits of an operation: while all its branches wait, it gives back its permit.

use std::{
    fmt,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicIsize, Ordering},
    },
    time::Duration,
};

use futures::future::BoxFuture;
use tokio::sync::{Mutex, MutexGuard};

use crate::Cluster;

pub trait WorkPermit: Send + Sync {
    fn pause(&self);

    fn resume(&self) -> BoxFuture<'_, ()>;

    /// Waits until work that takes long has to give the permit back, though it goes on.
    fn overdue(&self) -> BoxFuture<'_, ()>;

    /// Returns true if the permit was held for at least `held`, and somebody with fewer permits waits for one.
    fn is_wanted_after(&self, held: Duration) -> bool;
}

/// The working branches of an operation, and its permit.
#[derive(Clone)]
pub(crate) struct Activity(Arc<Inner>);

struct Inner {
    permit: Arc<dyn WorkPermit>,
    /// Number of working branches. Concurrent requests within a branch may make it smaller.
    working: AtomicIsize,
}

impl fmt::Debug for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Activity")
            .field("working", &self.0.working)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
#[must_use = "the branch ends when it is dropped"]
pub struct Branch(Option<Activity>);

impl Drop for Branch {
    fn drop(&mut self) {
        if let Some(activity) = &self.0 {
            activity.0.working.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

struct Wait<'a>(&'a Activity);

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.0.0.working.fetch_add(1, Ordering::AcqRel);
    }
}

impl Cluster {
    /// Returns the cluster for an operation with a permit, which waits give back.
    #[must_use]
    pub fn working_with(&self, permit: Arc<dyn WorkPermit>) -> Self {
        let inner = Inner {
            permit,
            working: AtomicIsize::new(1),
        };
        let mut cluster = self.clone();
        cluster.activity = Some(Activity(Arc::new(inner)));
        cluster
    }

    /// Returns the cluster for requests within a wait, which has no permit anyway.
    #[must_use]
    pub fn within_wait(&self) -> Self {
        let mut cluster = self.clone();
        cluster.activity = None;
        cluster
    }

    /// Starts a concurrent part of the operation. The permit is given back when all of them wait.
    pub fn branch(&self) -> Branch {
        if let Some(activity) = &self.activity {
            activity.0.working.fetch_add(1, Ordering::AcqRel);
        }
        Branch(self.activity.clone())
    }

    /// Waits for a future. If nothing else of the operation works, its permit is given back meanwhile.
    pub async fn waiting<T>(&self, wait: impl Future<Output = T>) -> T {
        let Some(activity) = &self.activity else {
            return wait.await;
        };
        let waited = {
            let left = activity.0.working.fetch_sub(1, Ordering::AcqRel) - 1;
            let _until_the_end = Wait(activity);
            if left <= 0 {
                activity.0.permit.pause();
            }
            wait.await
        };
        if activity.0.working.load(Ordering::Acquire) > 0 {
            activity.0.permit.resume().await;
        }
        waited
    }

    /// Runs work that has permits of its own, or may take long: the permit is given back as soon as it is overdue.
    pub async fn lending<T>(&self, work: impl Future<Output = T>) -> T {
        let Some(activity) = &self.activity else {
            return work.await;
        };
        let mut work = std::pin::pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = activity.0.permit.overdue() => {}
        }
        self.waiting(work).await
    }

    /// Locks something that others may hold while they wait for an answer.
    pub(crate) async fn locked<'a, T>(&self, lock: &'a Mutex<T>) -> MutexGuard<'a, T> {
        match lock.try_lock() {
            Ok(guard) => guard,
            Err(_) => self.waiting(lock.lock()).await,
        }
    }

    /// Returns true if the operation gives its permit back for the next request.
    pub(crate) fn is_wanted_after(&self, held: Duration) -> bool {
        let activity = self.activity.as_ref();
        activity.is_some_and(|activity| activity.0.permit.is_wanted_after(held))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use futures::FutureExt as _;
    use kube::{Client, Config};
    use tokio::sync::Notify;

    use super::*;
    use crate::{Settings, connection::send::Call};

    /// A permit that others want at once, and that counts how often it was given back.
    #[derive(Default)]
    struct Permit {
        paused: AtomicUsize,
        resumed: AtomicUsize,
        overdue: Notify,
    }

    impl Permit {
        fn counts(&self) -> (usize, usize) {
            let count = |number: &AtomicUsize| number.load(Ordering::Relaxed);
            (count(&self.paused), count(&self.resumed))
        }
    }

    impl WorkPermit for Permit {
        fn pause(&self) {
            self.paused.fetch_add(1, Ordering::Relaxed);
        }

        fn resume(&self) -> BoxFuture<'_, ()> {
            self.resumed.fetch_add(1, Ordering::Relaxed);
            std::future::ready(()).boxed()
        }

        fn overdue(&self) -> BoxFuture<'_, ()> {
            self.overdue.notified().boxed()
        }

        fn is_wanted_after(&self, held: Duration) -> bool {
            held.is_zero()
        }
    }

    /// Returns a cluster that nobody answers for.
    fn cluster(held: Duration) -> (Cluster, Arc<Permit>) {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
        let settings = Settings {
            attempts: 1,
            held,
            ..Settings::default()
        };
        let permit = Arc::new(Permit::default());
        let cluster = Cluster::with_settings(client, settings);
        (cluster.working_with(Arc::<Permit>::clone(&permit)), permit)
    }

    #[tokio::test]
    async fn permit_that_others_want_is_given_back_for_each_request_to_a_server_that_is_not_trusted() {
        for (held, expected) in [(Duration::ZERO, (2, 2)), (Duration::from_secs(30), (0, 0))] {
            let (cluster, permit) = cluster(held);
            for _ in 0..2 {
                let answer = cluster.send("test", &Call::get("/version".to_owned())).await;
                assert!(answer.is_err(), "nobody answers");
            }
            assert_eq!(permit.counts(), expected, "{held:?}");
        }
    }

    #[tokio::test]
    async fn work_lends_the_permit_when_it_is_overdue() {
        let (cluster, permit) = cluster(Duration::ZERO);
        assert_eq!(cluster.lending(std::future::ready(7)).await, 7);
        assert_eq!(permit.counts(), (0, 0));
        let end = Notify::new();
        let mut work = Box::pin(cluster.lending(end.notified()));
        assert!((&mut work).now_or_never().is_none());
        permit.overdue.notify_one();
        assert!((&mut work).now_or_never().is_none());
        assert_eq!(permit.counts(), (1, 0));
        end.notify_one();
        work.await;
        assert_eq!(permit.counts(), (1, 1));
    }

    #[tokio::test]
    async fn lock_that_another_operation_holds_is_waited_for_without_a_permit() {
        let (cluster, permit) = cluster(Duration::ZERO);
        let lock = Mutex::new(());
        drop(cluster.locked(&lock).await);
        assert_eq!(permit.counts(), (0, 0));
        let held = lock.lock().await;
        let mut waiting = Box::pin(cluster.locked(&lock));
        assert!((&mut waiting).now_or_never().is_none());
        assert_eq!(permit.counts(), (1, 0));
        drop(held);
        drop(waiting.await);
        assert_eq!(permit.counts(), (1, 1));
    }
}
