//! The loop of one kind: watch, queue, passes.

mod start;

use std::{
    cell::Cell,
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use futures::{
    StreamExt,
    stream::{self, BoxStream, SelectAll},
};
use kube::{
    Resource,
    api::ApiResource,
    runtime::watcher::{self, Event},
};
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    backoff::bounded,
    context::Context,
    error::Error,
    in_flight::{NextStart, PassesInFlight},
    metrics::Ending,
    pass::{ObjectMemory, ReconciledKind},
    queue::{ObjectKey, Queue},
    reconciler::Reconciler,
    report::{Next, Report},
    slots::Slots,
    watch_backoff::RELIST,
    watched::{ObjectCache, WatchedObject},
    watching::{self, Change, Index, is_unserved},
};

const CONCURRENCY: u16 = 4;
const FINISH_GRACE: Duration = Duration::from_secs(3);
const ABORT_GRACE: Duration = Duration::from_millis(2100);
/// Time after which no pass of a kind runs any more.
#[cfg(test)]
pub(crate) const SHUTDOWN_TIME: Duration = FINISH_GRACE.saturating_add(ABORT_GRACE);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    pub key: ObjectKey,
    /// If true, a running pass is cancelled because it works on outdated input.
    pub supersede: bool,
}

impl From<ObjectKey> for Trigger {
    fn from(key: ObjectKey) -> Self {
        Self {
            key,
            supersede: false,
        }
    }
}

pub struct RunOptions {
    /// Number of concurrent passes, without those that only wait; default 4. The flag `--concurrent` has precedence.
    pub concurrency: u16,
    /// Number of concurrent passes of one namespace, with waiting ones unless they started more than ten seconds ago: each needs memory.
    /// Default: no bound but the number of permits, which is the upper one in any case.
    pub most_of_namespace: usize,
    /// Requests for passes, for example for a source with a new artifact.
    pub triggers: Vec<BoxStream<'static, Trigger>>,
    /// Interval of listing all objects again; default 2 minutes, at least one second.
    pub relist: Duration,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            concurrency: CONCURRENCY,
            most_of_namespace: usize::MAX,
            triggers: Vec::new(),
            relist: RELIST,
        }
    }
}

impl std::fmt::Debug for RunOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunOptions")
            .field("concurrency", &self.concurrency)
            .finish_non_exhaustive()
    }
}

/// Reconciles the objects of a kind from the moment this process leads until its shutdown. Fails if the metrics can't be registered; other
/// failures are retried, and are in the status of the object or in the log.
pub async fn run_kind<R: Reconciler>(ctx: &Context, reconciler: R, options: RunOptions) -> Result<(), Error> {
    if ctx.leader().await.is_err() {
        return Ok(());
    }
    let kind = R::Object::kind(&()).into_owned();
    ctx.readiness().expect(&list_name::<R>());
    ctx.readiness().started();
    let concurrency = usize::from(ctx.flags().concurrent.unwrap_or(options.concurrency).max(1));
    let metrics = ctx.metrics().kind(&kind, &controller::<R>(), R::METRICS_GROUP)?;
    metrics.start(concurrency);
    tracing::info!(kind, concurrency, "starting");
    let shared = ReconciledKind {
        ctx: ctx.clone(),
        reconciler,
        resource: ApiResource::erase::<R::Object>(&()),
        metrics,
        cache: ObjectCache::default(),
        bounds: api::crd::bounds(&R::Object::group(&()), &kind),
    };
    let slots = Slots::new(concurrency);
    // More of them would evict each other if all wait for slow servers.
    let most_of_namespace = options.most_of_namespace.min(slots.most_short_waits());
    let driver = Driver {
        kind: Arc::new(shared),
        name: kind,
        unserved: false,
        slots,
        in_flight: PassesInFlight::new(most_of_namespace),
        index: Index::default(),
        queue: Queue::default(),
        news: HashSet::new(),
        running: HashMap::new(),
        states: HashMap::new(),
        passes: JoinSet::new(),
        abort: ctx.inner.abort.child_token(),
    };
    driver.run(options).await;
    Ok(())
}

struct RunningPass {
    began: Instant,
    superseded: CancellationToken,
    generation: Arc<AtomicI64>,
}

#[derive(Default)]
struct ObjectState {
    memory: ObjectMemory,
    failures: u32,
}

struct FinishedPass {
    key: ObjectKey,
    state: ObjectState,
    report: Report,
    took: Option<Duration>,
}

struct Driver<R> {
    kind: Arc<ReconciledKind<R>>,
    name: String,
    /// True if the kind was not served when it was last asked for.
    unserved: bool,
    slots: Slots,
    in_flight: PassesInFlight,
    index: Index,
    queue: Queue,
    /// Objects whose next pass is not only due by its interval: something changed, or the last pass did not end well.
    news: HashSet<ObjectKey>,
    running: HashMap<ObjectKey, RunningPass>,
    states: HashMap<ObjectKey, ObjectState>,
    passes: JoinSet<FinishedPass>,
    abort: CancellationToken,
}

impl<R: Reconciler> Driver<R> {
    async fn run(mut self, options: RunOptions) {
        let shutdown = self.kind.ctx.shutdown().clone();
        let mut triggers: SelectAll<_> = stream::select_all(options.triggers);
        let mut watch = watching::watch(&self.kind.ctx, options.relist.max(Duration::from_secs(1)));
        let (granted, mut permits) = mpsc::unbounded_channel();
        loop {
            let due = self.start_due(&granted);
            tokio::select! {
                () = shutdown.cancelled() => break,
                Some(event) = watch.next() => self.watched(event),
                Some(trigger) = triggers.next(), if !triggers.is_empty() => self.handle_trigger(&trigger),
                Some(namespace) = permits.recv() => self.in_flight.has_permit(&namespace),
                Some(finished) = self.passes.join_next() => self.joined(finished),
                () = sleep_until(due), if due.is_some() => {}
            }
        }
        self.end().await;
    }

    fn watched(&mut self, event: Result<Event<WatchedObject<R::Object>>, watcher::Error>) {
        if event.is_err() {
            self.kind.cache.clear();
        }
        let event = match event {
            Ok(event) => event,
            Err(error) if is_unserved(&error) => {
                if !std::mem::replace(&mut self.unserved, true) {
                    let group = R::Object::group(&()).into_owned();
                    tracing::info!(
                        kind = self.name,
                        group,
                        "the kind is not installed: waiting for its definition"
                    );
                }
                self.kind.ctx.readiness().done(&list_name::<R>());
                return;
            }
            Err(error) => {
                tracing::info!(kind = self.name, error = %api::redact(&error.to_string()), "the watch broke off");
                return;
            }
        };
        self.unserved = false;
        self.kind.cache.apply(&event);
        for change in self.index.apply(event) {
            match change {
                Change::Changed { key, generation } => {
                    self.enqueue(&key, Instant::now());
                    self.news.insert(key.clone());
                    self.supersede(&key, Some(generation));
                }
                Change::Gone(key) => {
                    self.kind.cache.forget(&key);
                    self.forget(&key);
                }
                Change::Synced => self.kind.ctx.readiness().done(&list_name::<R>()),
            }
        }
    }

    fn handle_trigger(&mut self, trigger: &Trigger) {
        // An object that the watch hasn't listed yet gets its first pass anyway.
        if !self.index.contains(&trigger.key) {
            return;
        }
        self.enqueue(&trigger.key, Instant::now());
        self.news.insert(trigger.key.clone());
        if trigger.supersede {
            self.supersede(&trigger.key, None);
        }
    }

    fn enqueue(&mut self, key: &ObjectKey, at: Instant) {
        if self.queue.add(key, at) {
            self.kind.metrics.added();
        }
    }

    /// Cancels the running pass of `key` if it works on an older generation than `generation`, or in any case if `generation` is `None`.
    fn supersede(&self, key: &ObjectKey, generation: Option<i64>) {
        let Some(running) = self.running.get(key) else {
            return;
        };
        // Zero means that the pass has not read its object yet: it will read the newest.
        let works_on = running.generation.load(Ordering::Acquire);
        if works_on != 0 && generation.is_none_or(|generation| works_on < generation) {
            running.superseded.cancel();
        }
    }

    fn forget(&mut self, key: &ObjectKey) {
        self.queue.forget(key);
        self.drop_state(key);
        if let Some(running) = self.running.get(key) {
            running.superseded.cancel();
        }
    }

    fn drop_state(&mut self, key: &ObjectKey) {
        self.news.remove(key);
        self.states.remove(key);
        self.kind.metrics.forget(key);
        self.kind.reconciler.forget(key);
    }

    /// Starts a pass for each namespace with a due object, if it may start. When it gets its permit, the next one of its namespace is
    /// started. Returns when to try again, unless a pass gets its permit or ends before.
    fn start_due(&mut self, granted: &mpsc::UnboundedSender<String>) -> Option<Instant> {
        let now = Instant::now();
        let earliest = Cell::new(None);
        let accepts = |in_flight: &PassesInFlight, namespace: &str| match in_flight.next_start(namespace, now)
        {
            NextStart::Now => true,
            NextStart::AfterPermit => false,
            NextStart::At(at) => {
                earliest.set(Some(earliest.get().map_or(at, |other: Instant| other.min(at))));
                false
            }
        };
        while let Some((key, due)) = {
            let in_flight = &self.in_flight;
            self.queue.pop(now, |namespace| accepts(in_flight, namespace))
        } {
            self.start(key, due, granted.clone());
        }
        let depth = self.queue.depth(now) + self.in_flight.starting();
        self.kind.metrics.depth(depth);
        let due = self
            .queue
            .next_due(|namespace| accepts(&self.in_flight, namespace));
        due.into_iter().chain(earliest.get()).min()
    }

    fn joined(&mut self, finished: Result<FinishedPass, tokio::task::JoinError>) {
        match finished {
            Ok(finished) => self.finished(finished),
            // A pass catches its panics, so this is the runtime itself going down.
            Err(error) => tracing::error!(%error, "a pass was lost"),
        }
    }

    fn finished(&mut self, finished: FinishedPass) {
        let FinishedPass {
            key,
            mut state,
            report,
            took,
        } = finished;
        if let Some(pass) = self.running.remove(&key) {
            self.in_flight.end(&key.namespace, pass.began);
        }
        if let Some(took) = took {
            self.kind.metrics.ended(&key, report.ending, took);
        }
        self.queue.finish(&key);
        if report.next == Next::Gone || !self.index.contains(&key) {
            self.drop_state(&key);
            return;
        }
        state.failures = match report.next {
            Next::Retry => state.failures.saturating_add(1),
            _ if report.ending == Some(Ending::Error) => state.failures,
            _ => 0,
        };
        let ctx = &self.kind.ctx;
        let delay = match report.next {
            Next::Interval(interval) => Some(ctx.with_jitter(interval)),
            Next::After(delay) => Some(bounded(delay)),
            Next::Retry => Some(ctx.retry_delay(state.failures)),
            Next::Again => Some(Duration::ZERO),
            Next::Idle | Next::Gone => None,
        };
        if report.next == Next::Retry {
            self.kind.metrics.retried();
        }
        if !matches!(report.next, Next::Interval(_)) {
            self.news.insert(key.clone());
        }
        self.states.insert(key.clone(), state);
        if let Some(delay) = delay {
            self.enqueue(&key, Instant::now() + delay);
        }
    }

    async fn end(mut self) {
        let waiting = self.passes.len();
        if waiting > 0 {
            tracing::info!(kind = self.name, passes = waiting, "waiting for running passes");
        }
        let abort = self.abort.clone();
        let all = async {
            while let Some(finished) = self.passes.join_next().await {
                drop(finished);
            }
        };
        let mut all = std::pin::pin!(all);
        if tokio::time::timeout(FINISH_GRACE, all.as_mut()).await.is_ok() {
            return;
        }
        abort.cancel();
        if tokio::time::timeout(ABORT_GRACE, all).await.is_err() {
            tracing::info!(kind = self.name, "passes were cut off");
        }
    }
}

/// Returns the name of the list that the process waits for before it is ready. Two groups may have kinds of one name.
fn list_name<R: Reconciler>() -> String {
    match R::CONTROLLER {
        "" => R::Object::kind(&()).into_owned(),
        _ => format!("{}.{}", R::Object::kind(&()), R::Object::group(&())),
    }
}

fn controller<R: Reconciler>() -> String {
    match R::CONTROLLER {
        "" => R::Object::kind(&()).to_lowercase(),
        name => name.to_owned(),
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}
