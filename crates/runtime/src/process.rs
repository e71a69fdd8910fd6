//! The process around a controller: start and shutdown, in order.

use std::{ffi::OsString, future::Future, process::ExitCode, time::Duration};

use kube::Config;
use net::{AddressPolicy, ClusterServices, OwnAddresses};
use rustix::process::{Resource, Rlimit, setrlimit};
use tokio::{
    runtime::Handle,
    signal::unix::{SignalKind, signal},
    sync::watch,
    task::JoinHandle,
};
use tokio_util::{
    sync::CancellationToken,
    task::{AbortOnDropHandle, TaskTracker},
};

use crate::{
    admin::{self, Readiness},
    allocator, client,
    context::{Context, Inner},
    crash_marks::CrashMarks,
    error::Error,
    events::{Flush, Recorder},
    flags::{CommonFlags, EventsFlags, report_idle},
    gate::WriteGate,
    http::{self, Limits},
    lease::{Candidate, Election, Leadership},
    logging, memory,
    metrics::Metrics,
    own_addresses, panics,
    watchdog::{self, Liveness},
};

/// Time for the controller's `body` to end after the start of a shutdown: for running passes, and for requests to its servers.
const BODY_GRACE: Duration = Duration::from_millis(5500);
const FLUSH_GRACE: Duration = Duration::from_millis(1000);
const RESIGN_GRACE: Duration = Duration::from_millis(1500);
const ADMIN_GRACE: Duration = Duration::from_millis(500);
const RUNTIME_GRACE: Duration = Duration::from_millis(200);

#[derive(Debug, Clone)]
pub struct Spec {
    pub name: &'static str,
    /// Name of its lease, the same as in the original.
    pub lease: &'static str,
    pub events: EventsFlags,
    pub standby_records: bool,
}

/// Runs a controller until a signal or a fatal error; this is the whole of a `main`. `body` starts immediately, and calls
/// [`Context::leader`] (as [`crate::run_kind`] does) before anything that only the leader may do.
pub fn start<F, Fut>(spec: Spec, flags: CommonFlags, body: F) -> ExitCode
where
    F: FnOnce(Context) -> Fut + Send + 'static,
    Fut: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    logging::init(spec.name, flags.log_level, flags.log_encoding);
    panics::install_hook();
    forbid_core_files();
    memory::set(flags.work_memory_max_size);
    // A second installation is refused; the first one is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let result = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(64)
        .thread_keep_alive(Duration::from_secs(5))
        // Rendering recurses; only the used part of a stack takes memory.
        .thread_stack_size(8 * 1024 * 1024)
        .enable_all()
        .build()
        .map_err(Error::Start)
        .and_then(|tokio| {
            let result = tokio.block_on(run(spec, flags, body));
            tokio.shutdown_timeout(RUNTIME_GRACE);
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

/// Writes no core file if the process is aborted: its memory has the secrets of all tenants. A program in `core_pattern` of the node gets the memory
/// nevertheless.
fn forbid_core_files() {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    if let Err(error) = setrlimit(Resource::Core, none) {
        tracing::warn!(%error, "cannot forbid core files, which would have secrets");
    }
}

struct Process {
    ctx: Context,
    liveness: Liveness,
    servers: TaskTracker,
    flush: Flush,
    retire: CancellationToken,
    candidate: Option<JoinHandle<Result<(), Error>>>,
}

async fn run<F, Fut>(spec: Spec, flags: CommonFlags, body: F) -> Result<(), Error>
where
    F: FnOnce(Context) -> Fut + Send + 'static,
    Fut: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    flags.check()?;
    report_idle(&flags.idle());
    let mut process = Process::new(&spec, flags).await?;
    tracing::info!(
        controller = spec.name,
        version = env!("CARGO_PKG_VERSION"),
        "starting"
    );
    let _purging = AbortOnDropHandle::new(tokio::spawn(allocator::keep_purging()));
    let _watching = AbortOnDropHandle::new(tokio::spawn(own_addresses::watch(process.ctx.clone())));
    let mut work = tokio::spawn(body(process.ctx.clone()));
    let signal = signals().map_err(Error::Start)?;
    let result = tokio::select! {
        name = signal => {
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
        let config = client::configured(&flags.connection).await?;
        let addresses = addresses(&flags, &config).await;
        let metrics = Metrics::with(spec.name, flags.metrics_per_object)?;
        let gate = if flags.enable_leader_election {
            WriteGate::shut()
        } else {
            WriteGate::open()
        };
        let client = client::build(&config, gate.clone(), metrics.clone())?;
        let free = client::build(&config, WriteGate::open(), metrics.clone())?;
        let instance = hostname();
        let (shutdown, retire) = (CancellationToken::new(), CancellationToken::new());
        let teller = if spec.standby_records {
            free.clone()
        } else {
            client.clone()
        };
        let (recorder, flush) = Recorder::start(spec.name, &instance, teller, &spec.events, metrics.clone())?;
        let readiness = Readiness::starting();
        let liveness = watchdog::watch(&Handle::current()).map_err(Error::Start)?;
        let crash_marks = crash_marks(&flags, spec.name, &config);
        let servers = serve_admin(&flags, &metrics, (&readiness, &liveness), &shutdown).await?;
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
            addresses,
            recorder,
            metrics,
            readiness,
            gate,
            crash_marks,
            leadership,
            shutdown,
            abort: CancellationToken::new(),
        };
        Ok(Self {
            ctx: Context { inner: inner.into() },
            liveness,
            servers,
            flush,
            retire,
            candidate,
        })
    }

    /// Shuts down in order: new work, running work, events, lease, ports.
    async fn end(
        self,
        mut work: JoinHandle<anyhow::Result<()>>,
        result: Result<(), Error>,
    ) -> Result<(), Error> {
        let inner = &self.ctx.inner;
        // The probe ends a process whose worker is blocked: a pass is to blame.
        if !self.liveness.is_blocked() {
            inner.crash_marks.end();
        }
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
            // It may have ended already; its error is in the result then.
            let _ = tokio::time::timeout(RESIGN_GRACE, candidate).await;
        }
        let _ = tokio::time::timeout(ADMIN_GRACE, self.servers.wait()).await;
        result
    }
}

async fn addresses(flags: &CommonFlags, config: &Config) -> AddressPolicy {
    // Variables that are not UTF-8 name no address.
    let text = |text: OsString| text.into_string().ok();
    let variables = std::env::vars_os().filter_map(|(name, value)| Some((text(name)?, text(value)?)));
    let mut services = ClusterServices::from_variables(variables, &flags.runtime_namespace);
    services.own_addresses = OwnAddresses::of_process(!services.api_server.is_empty());
    if let Some(host) = config.cluster_url.host() {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let default = if config.cluster_url.scheme_str() == Some("http") {
            80
        } else {
            443
        };
        let port = config.cluster_url.port_u16().unwrap_or(default);
        let found = tokio::net::lookup_host((host, port)).await;
        services.api_server_sockets.extend(found.into_iter().flatten());
    }
    flags.address_policy(services)
}

/// Opens the marks of this controller in this cluster. Its address tells processes apart that run on one machine.
fn crash_marks(flags: &CommonFlags, name: &str, config: &Config) -> CrashMarks {
    let dir = flags.crash_marks_path.clone().unwrap_or_else(std::env::temp_dir);
    CrashMarks::open(
        &dir,
        name,
        &format!("{} {}", config.cluster_url, flags.health_addr),
    )
}

fn ended_early(ended: Result<anyhow::Result<()>, tokio::task::JoinError>) -> Error {
    Error::Body(match ended {
        Ok(Ok(())) => "it returned without a shutdown".to_owned(),
        Ok(Err(error)) => format!("{error:#}"),
        Err(error) if error.is_panic() => "it panicked".to_owned(),
        Err(_) => "it was cancelled".to_owned(),
    })
}

/// Ends with the candidate, which is when it lost the lease.
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
    (readiness, liveness): (&Readiness, &Liveness),
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
            admin::health_router(readiness.clone(), liveness.clone()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver;

    #[test]
    fn process_writes_no_core_file() {
        forbid_core_files();
        let limit = rustix::process::getrlimit(Resource::Core);
        assert_eq!((limit.current, limit.maximum), (Some(0), Some(0)));
    }

    #[test]
    fn shutdown_fits_the_shortest_grace_period_of_our_pods() {
        let whole = BODY_GRACE + FLUSH_GRACE + RESIGN_GRACE + ADMIN_GRACE + RUNTIME_GRACE;
        // deploy/base has terminationGracePeriodSeconds: 10.
        assert!(whole <= Duration::from_secs(9), "{whole:?}");
        assert!(driver::SHUTDOWN_TIME < BODY_GRACE);
    }
}
