//! The process around a controller: what starts before it, what ends after it, and in which order.

use std::{future::Future, process::ExitCode, time::Duration};

use kube::Config;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
    task::JoinHandle,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    admin::{self, Readiness},
    client,
    context::{Context, Inner},
    error::Error,
    events::{Flush, Recorder},
    flags::{CommonFlags, report_idle},
    gate::WriteGate,
    http::{self, Limits},
    lease::{Candidate, Election, Leadership},
    logging,
    metrics::Metrics,
    panics,
};

/// How long a controller may take to end after it was told to.
const BODY_GRACE: Duration = Duration::from_millis(6500);
/// How long events may take to go out at the end.
const FLUSH_GRACE: Duration = Duration::from_millis(1500);
const RESIGN_GRACE: Duration = Duration::from_millis(2500);

/// What makes one controller different from the others.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Name of the controller: its field manager, its name in events, its log.
    pub name: &'static str,
    /// Name of its lease, as upstream's controller names it.
    pub lease: &'static str,
    /// Where events are posted to; empty for nowhere.
    pub events_addr: String,
    /// Whether replicas that do not lead write Kubernetes Events too.
    pub standby_records: bool,
}

/// Runs a controller until a signal, or until it cannot go on: the whole of a `main`. `body` starts at once and uses
/// [`Context::leader`] (as [`crate::run_kind`] does) before it does what only a leader may.
pub fn start<F, Fut>(spec: Spec, flags: CommonFlags, body: F) -> ExitCode
where
    F: FnOnce(Context) -> Fut + Send + 'static,
    Fut: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    logging::init(spec.name, flags.log_level, flags.log_encoding);
    panics::install_hook();
    // A second installation is refused; the first one is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let result = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(64)
        .thread_keep_alive(Duration::from_secs(5))
        // Rendering recurses; only what is used of a stack takes memory.
        .thread_stack_size(8 * 1024 * 1024)
        .enable_all()
        .build()
        .map_err(Error::Start)
        .and_then(|tokio| {
            let result = tokio.block_on(run(spec, flags, body));
            tokio.shutdown_timeout(Duration::from_millis(200));
            result
        });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = %api::redact(&error.to_string()), "the controller ended");
            ExitCode::FAILURE
        }
    }
}

/// Everything that [`start`] keeps in its hands.
struct Process {
    ctx: Context,
    servers: TaskTracker,
    flush: Flush,
    /// Ends the campaign, or the lead.
    retire: CancellationToken,
    candidate: Option<JoinHandle<Result<(), Error>>>,
}

async fn run<F, Fut>(spec: Spec, flags: CommonFlags, body: F) -> Result<(), Error>
where
    F: FnOnce(Context) -> Fut + Send + 'static,
    Fut: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    flags.check().map_err(Error::Flags)?;
    report_idle(&flags.idle());
    let mut process = Process::new(&spec, flags).await?;
    tracing::info!(
        controller = spec.name,
        version = env!("CARGO_PKG_VERSION"),
        "starting"
    );
    let mut work = tokio::spawn(body(process.ctx.clone()));
    let told = signals().map_err(Error::Start)?;
    let result = tokio::select! {
        name = told => {
            tracing::info!(signal = name, "ending");
            Ok(())
        }
        ended = &mut work => Err(ended_early(ended)),
        lost = lost(&mut process.candidate) => lost,
    };
    process.end(work, result).await
}

impl Process {
    async fn new(spec: &Spec, flags: CommonFlags) -> Result<Self, Error> {
        let config = client::infer_config().await?;
        let metrics = Metrics::new(spec.name)?;
        let gate = if flags.enable_leader_election {
            WriteGate::shut()
        } else {
            WriteGate::open()
        };
        let client = client::build(config.clone(), gate.clone(), metrics.clone())?;
        let free = client::build(config.clone(), WriteGate::open(), metrics.clone())?;
        let instance = hostname();
        let (shutdown, retire) = (CancellationToken::new(), CancellationToken::new());
        let teller = if spec.standby_records {
            free.clone()
        } else {
            client.clone()
        };
        let (recorder, flush) =
            Recorder::start(spec.name, &instance, teller, &spec.events_addr, metrics.clone())?;
        let readiness = Readiness::starting();
        let servers = serve_admin(&flags, &metrics, &readiness, &shutdown).await?;
        let (leadership, candidate) = if flags.enable_leader_election {
            let namespace = lease_namespace(&flags, &config);
            let election = Election::of(&flags, spec.lease, &namespace, &instance);
            let candidate = Candidate::new(election, free, gate.clone(), metrics.clone());
            (
                candidate.subscribe(),
                Some(tokio::spawn(candidate.run(retire.clone()))),
            )
        } else {
            (watch::Sender::new(Leadership::Leader).subscribe(), None)
        };
        let inner = Inner {
            name: spec.name,
            instance,
            flags,
            client,
            config,
            recorder,
            metrics,
            readiness,
            gate,
            leadership,
            shutdown,
            abort: CancellationToken::new(),
        };
        Ok(Self {
            ctx: Context { inner: inner.into() },
            servers,
            flush,
            retire,
            candidate,
        })
    }

    /// Ends in order: no new work, running work, events, lease, ports.
    async fn end(
        self,
        mut work: JoinHandle<anyhow::Result<()>>,
        result: Result<(), Error>,
    ) -> Result<(), Error> {
        let inner = &self.ctx.inner;
        inner.shutdown.cancel();
        if matches!(result, Err(Error::LeaseLost(_))) {
            inner.abort.cancel();
        }
        if !work.is_finished() && tokio::time::timeout(BODY_GRACE, &mut work).await.is_err() {
            inner.abort.cancel();
            work.abort();
        }
        self.flush.wait(FLUSH_GRACE).await;
        self.retire.cancel();
        if let Some(candidate) = self.candidate {
            // It may have ended already; what it said then is in the result.
            let _ = tokio::time::timeout(RESIGN_GRACE, candidate).await;
        }
        let _ = tokio::time::timeout(Duration::from_millis(500), self.servers.wait()).await;
        result
    }
}

/// What the body's end means while nobody told it to end.
fn ended_early(ended: Result<anyhow::Result<()>, tokio::task::JoinError>) -> Error {
    Error::Body(match ended {
        Ok(Ok(())) => "it returned although nobody told it to end".to_owned(),
        Ok(Err(error)) => format!("{error:#}"),
        Err(error) if error.is_panic() => "it panicked".to_owned(),
        Err(_) => "it was cancelled".to_owned(),
    })
}

/// Ends when the candidate does, which is when it lost the lease.
async fn lost(candidate: &mut Option<JoinHandle<Result<(), Error>>>) -> Result<(), Error> {
    match candidate {
        None => std::future::pending().await,
        Some(running) => {
            let ended = running.await;
            *candidate = None;
            ended.unwrap_or_else(|_| Err(Error::LeaseLost("after a panic".to_owned())))
        }
    }
}

async fn serve_admin(
    flags: &CommonFlags,
    metrics: &Metrics,
    readiness: &Readiness,
    shutdown: &CancellationToken,
) -> Result<TaskTracker, Error> {
    let servers = TaskTracker::new();
    let ports = [
        (
            "metrics",
            &flags.metrics_addr,
            admin::metrics_router(metrics.clone()),
        ),
        (
            "health",
            &flags.health_addr,
            admin::health_router(readiness.clone()),
        ),
    ];
    for (what, address, router) in ports {
        if matches!(address.as_str(), "" | "0") {
            continue;
        }
        let listener = http::listen(address).await?;
        tracing::info!(what, address = http::local(&listener), "listening");
        let limits = Limits {
            connections: 32,
            ..Limits::default()
        };
        servers.spawn(http::serve(listener, router, limits, shutdown.clone()));
    }
    servers.close();
    Ok(servers)
}

/// Resolves to the name of the first signal that asks for the end.
fn signals() -> std::io::Result<impl Future<Output = &'static str>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        }
    })
}

fn lease_namespace(flags: &CommonFlags, config: &Config) -> String {
    if flags.runtime_namespace.is_empty() {
        config.default_namespace.clone()
    } else {
        flags.runtime_namespace.clone()
    }
}

fn hostname() -> String {
    let named = std::env::var("HOSTNAME").ok().filter(|name| !name.is_empty());
    named
        .or_else(|| {
            std::fs::read_to_string("/proc/sys/kernel/hostname")
                .ok()
                .map(|name| name.trim().to_owned())
        })
        .unwrap_or_else(|| "unknown".to_owned())
}
