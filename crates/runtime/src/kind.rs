//! The loop of one kind: watch, queue, passes.

use std::{
    collections::HashMap,
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
    Api, Resource,
    api::{ApiResource, PartialObjectMeta},
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::{
    Reconciler,
    backoff::bounded,
    context::Context,
    error::Error,
    metrics::Ending,
    queue::{ObjectKey, Queue},
    report::{Next, Report},
    run::{Kind, Memory},
    watching::{Change, Index},
    work::Stop,
};

/// Passes at the same time, where neither flag nor controller says otherwise.
const CONCURRENCY: u16 = 4;
/// How often the whole list is read again, in case a watch missed something.
const RELIST: Duration = Duration::from_secs(120);
/// How long running passes may go on after the process was told to end.
const FINISH_GRACE: Duration = Duration::from_secs(3);
/// How long they get after that to put their things away.
const ABORT_GRACE: Duration = Duration::from_millis(2500);

/// A wish to look at an object, from elsewhere than its own watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// The object.
    pub key: ObjectKey,
    /// Whether a running pass works on outdated facts and should be cancelled.
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

/// How a kind is run.
pub struct RunOptions {
    /// Passes at the same time; the flag `--concurrent` has precedence.
    pub concurrency: u16,
    /// Wishes from elsewhere: a source that has a new artifact, say.
    pub triggers: Vec<BoxStream<'static, Trigger>>,
    /// How often the whole list is read again.
    pub relist: Duration,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            concurrency: CONCURRENCY,
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

/// Reconciles the objects of a kind from the moment this process leads until it is told to end.
///
/// # Errors
/// None at present: what fails is retried, and said in the status of the object or in the log.
pub async fn run_kind<R: Reconciler>(ctx: &Context, reconciler: R, options: RunOptions) -> Result<(), Error> {
    if ctx.leader().await.is_err() {
        return Ok(());
    }
    let kind = R::Object::kind(&()).into_owned();
    ctx.readiness().expect(&kind);
    ctx.readiness().started();
    let concurrency = usize::from(ctx.flags().concurrent.unwrap_or(options.concurrency).max(1));
    let metrics = ctx.metrics().kind(&kind);
    metrics.start(concurrency);
    tracing::info!(kind, concurrency, "starting");
    let shared = Kind {
        ctx: ctx.clone(),
        reconciler,
        resource: ApiResource::erase::<R::Object>(&()),
        metrics,
    };
    let driver = Driver {
        kind: Arc::new(shared),
        name: kind,
        concurrency,
        index: Index::default(),
        queue: Queue::default(),
        running: HashMap::new(),
        kept: HashMap::new(),
        passes: JoinSet::new(),
        abort: ctx.inner.abort.child_token(),
    };
    driver.run(options).await;
    Ok(())
}

/// A pass that runs.
struct Running {
    superseded: CancellationToken,
    generation: Arc<AtomicI64>,
    started: Instant,
}

/// What is kept of an object between passes.
#[derive(Default)]
struct Kept {
    memory: Memory,
    failures: u32,
}

struct Finished {
    key: ObjectKey,
    kept: Kept,
    report: Report,
}

struct Driver<R> {
    kind: Arc<Kind<R>>,
    name: String,
    concurrency: usize,
    index: Index,
    queue: Queue,
    running: HashMap<ObjectKey, Running>,
    kept: HashMap<ObjectKey, Kept>,
    passes: JoinSet<Finished>,
    abort: CancellationToken,
}

impl<R: Reconciler> Driver<R> {
    async fn run(mut self, options: RunOptions) {
        let shutdown = self.kind.ctx.shutdown().clone();
        let mut triggers: SelectAll<_> = stream::select_all(options.triggers);
        let mut watch = self.watch();
        let mut relist = tokio::time::interval(options.relist.max(Duration::from_secs(1)));
        relist.tick().await;
        loop {
            self.start_due();
            let due = self
                .queue
                .next_due()
                .filter(|_| self.passes.len() < self.concurrency);
            tokio::select! {
                () = shutdown.cancelled() => break,
                Some(event) = watch.next() => self.watched(event),
                Some(trigger) = triggers.next(), if !triggers.is_empty() => self.triggered(&trigger),
                Some(finished) = self.passes.join_next() => self.joined(finished),
                () = sleep_until(due), if due.is_some() => {}
                _ = relist.tick() => watch = self.watch(),
            }
        }
        self.end().await;
    }

    fn watch(&self) -> BoxStream<'static, Result<Event<PartialObjectMeta<R::Object>>, watcher::Error>> {
        let client = self.kind.ctx.client().clone();
        let flags = self.kind.ctx.flags();
        let api: Api<PartialObjectMeta<R::Object>> = match flags.watch_namespace() {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::all(client),
        };
        let mut config = watcher::Config::default();
        if !flags.watch_label_selector.is_empty() {
            config = config.labels(&flags.watch_label_selector);
        }
        watcher(api, config).default_backoff().boxed()
    }

    fn watched(&mut self, event: Result<Event<PartialObjectMeta<R::Object>>, watcher::Error>) {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                tracing::info!(kind = self.name, error = %api::redact(&error.to_string()), "the watch broke off");
                return;
            }
        };
        for change in self.index.apply(event) {
            match change {
                Change::Changed { key, generation } => {
                    self.want(&key, Instant::now());
                    self.supersede(&key, Some(generation));
                }
                Change::Gone(key) => self.forget(&key),
                Change::Synced => self.kind.ctx.readiness().done(&self.name),
            }
        }
    }

    fn triggered(&mut self, trigger: &Trigger) {
        // An object that is not known yet gets its first pass anyway.
        if !self.index.contains(&trigger.key) {
            return;
        }
        self.want(&trigger.key, Instant::now());
        if trigger.supersede {
            self.supersede(&trigger.key, None);
        }
    }

    fn want(&mut self, key: &ObjectKey, at: Instant) {
        if self.queue.add(key, at) {
            self.kind.metrics.added();
        }
    }

    /// Cancels the running pass of `key`, if it works on an older generation (or in any case, without one).
    fn supersede(&self, key: &ObjectKey, generation: Option<i64>) {
        let Some(running) = self.running.get(key) else {
            return;
        };
        // Zero means that the pass has not read its object yet: it will see the newest.
        let works_on = running.generation.load(Ordering::Acquire);
        if works_on != 0 && generation.is_none_or(|generation| works_on < generation) {
            running.superseded.cancel();
        }
    }

    fn forget(&mut self, key: &ObjectKey) {
        self.queue.forget(key);
        self.kept.remove(key);
        self.kind.metrics.forget(key);
        if let Some(running) = self.running.get(key) {
            running.superseded.cancel();
        }
    }

    fn start_due(&mut self) {
        let now = Instant::now();
        while self.passes.len() < self.concurrency
            && let Some((key, due)) = self.queue.pop(now)
        {
            self.start(key, now.saturating_duration_since(due));
        }
        self.kind.metrics.depth(self.queue.depth(now));
    }

    fn start(&mut self, key: ObjectKey, waited: Duration) {
        let superseded = CancellationToken::new();
        let generation = Arc::new(AtomicI64::new(0));
        let running = Running {
            superseded: superseded.clone(),
            generation: Arc::clone(&generation),
            started: Instant::now(),
        };
        self.kind.metrics.started(&key, running.started, waited);
        self.running.insert(key.clone(), running);
        let mut kept = self.kept.remove(&key).unwrap_or_default();
        let kind = Arc::clone(&self.kind);
        let stop = Stop {
            superseded,
            abort: self.abort.clone(),
        };
        let span = tracing::error_span!(
            "pass",
            controller = self.name.to_lowercase(),
            controllerKind = self.name,
            name = key.name,
            namespace = key.namespace,
            reconcileID = %uuid::Uuid::new_v4(),
        );
        let pass = async move {
            let report = kind.pass(&key, &mut kept.memory, &stop, &generation).await;
            Finished { key, kept, report }
        };
        self.passes.spawn(pass.instrument(span));
    }

    fn joined(&mut self, finished: Result<Finished, tokio::task::JoinError>) {
        match finished {
            Ok(finished) => self.finished(finished),
            // A pass catches its panics, so this is the runtime itself going down.
            Err(error) => tracing::error!(%error, "a pass was lost"),
        }
    }

    fn finished(&mut self, finished: Finished) {
        let Finished {
            key,
            mut kept,
            report,
        } = finished;
        let took = self
            .running
            .remove(&key)
            .map(|running| running.started.elapsed())
            .unwrap_or_default();
        self.kind.metrics.ended(&key, report.ending, took);
        self.queue.finish(&key);
        if report.next == Next::Gone || !self.index.contains(&key) {
            self.kind.metrics.forget(&key);
            return;
        }
        kept.failures = match report.next {
            Next::Retry => kept.failures.saturating_add(1),
            _ if report.ending == Some(Ending::Error) => kept.failures,
            _ => 0,
        };
        let ctx = &self.kind.ctx;
        let delay = match report.next {
            Next::Interval(interval) => Some(ctx.spread(interval)),
            Next::After(delay) => Some(bounded(delay)),
            Next::Retry => Some(ctx.backoff().delay(kept.failures)),
            Next::Again => Some(Duration::ZERO),
            Next::Idle | Next::Gone => None,
        };
        if report.next == Next::Retry {
            self.kind.metrics.retried();
        }
        self.kept.insert(key.clone(), kept);
        if let Some(delay) = delay {
            self.want(&key, Instant::now() + delay);
        }
    }

    /// Lets running passes finish, cancels those that don't, and leaves none behind.
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

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}
