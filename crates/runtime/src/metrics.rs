//! The metrics of a controller process, under the names that dashboards for Flux and kluctl query.
//!
//! Label values are kinds, names of objects and enums, never messages; the series of an object go with it.

use std::{sync::Arc, time::Duration};

use prometheus::{
    Encoder, GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry, TextEncoder,
    core::Collector, process_collector::ProcessCollector,
};

use crate::{error::Error, queue::ObjectKey};

/// The statuses of a condition as the gauge counts them.
const STATUSES: [&str; 4] = ["True", "False", "Unknown", "Deleted"];

/// All series of the process.
#[derive(Debug, Clone)]
pub struct Metrics(Arc<Families>);

#[derive(Debug)]
struct Families {
    registry: Registry,
    condition: IntGaugeVec,
    suspend: IntGaugeVec,
    duration: HistogramVec,
    reconciles: IntCounterVec,
    errors: IntCounterVec,
    terminal: IntCounterVec,
    panics: IntCounterVec,
    time: HistogramVec,
    max_concurrent: IntGaugeVec,
    active: IntGaugeVec,
    depth: IntGaugeVec,
    adds: IntCounterVec,
    retries: IntCounterVec,
    queue_time: HistogramVec,
    work_time: HistogramVec,
    requests: IntCounterVec,
    leader: IntGaugeVec,
    dropped: IntCounterVec,
    build: GaugeVec,
}

/// How a pass ended, as the metrics count it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Done, nothing planned.
    Success,
    /// Done, planned again.
    RequeueAfter,
    /// To be run again at once.
    Requeue,
    /// Failed, to be retried.
    Error,
    /// Failed, only a change helps.
    Terminal,
}

impl Ending {
    fn label(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::RequeueAfter => "requeue_after",
            Self::Requeue => "requeue",
            Self::Error | Self::Terminal => "error",
        }
    }
}

impl Metrics {
    /// Makes and registers all families.
    ///
    /// # Errors
    /// Only when two families carry one name.
    pub fn new(controller: &str) -> Result<Self, Error> {
        Self::build(controller).map_err(Error::Metrics)
    }

    fn build(controller: &str) -> Result<Self, prometheus::Error> {
        let object = &["kind", "name", "namespace"][..];
        let queue = &["name", "controller"][..];
        let seconds = vec![
            0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
        ];
        let families = Families {
            registry: Registry::new(),
            condition: gauge(
                "gotk_reconcile_condition",
                "The current condition status of a GitOps Toolkit resource.",
                &["kind", "name", "namespace", "type", "status"],
            )?,
            suspend: gauge(
                "gotk_suspend_status",
                "Whether a GitOps Toolkit resource is suspended.",
                object,
            )?,
            duration: histogram(
                "gotk_reconcile_duration_seconds",
                "How long the reconciliations of an object took.",
                object,
                object_buckets(),
            )?,
            reconciles: counter(
                "controller_runtime_reconcile_total",
                "Number of reconciliations.",
                &["controller", "result"],
            )?,
            errors: counter(
                "controller_runtime_reconcile_errors_total",
                "Number of reconciliations that failed.",
                &["controller"],
            )?,
            terminal: counter(
                "controller_runtime_terminal_reconcile_errors_total",
                "Number of reconciliations that only a change of the object can help.",
                &["controller"],
            )?,
            panics: counter(
                "controller_runtime_reconcile_panics_total",
                "Number of panics caught in reconciliations.",
                &["controller"],
            )?,
            time: histogram(
                "controller_runtime_reconcile_time_seconds",
                "How long reconciliations took.",
                &["controller"],
                seconds.clone(),
            )?,
            max_concurrent: gauge(
                "controller_runtime_max_concurrent_reconciles",
                "How many reconciliations may run at the same time.",
                &["controller"],
            )?,
            active: gauge(
                "controller_runtime_active_workers",
                "How many reconciliations run now.",
                &["controller"],
            )?,
            depth: gauge("workqueue_depth", "How many objects wait for a worker.", queue)?,
            adds: counter("workqueue_adds_total", "Number of adds to the queue.", queue)?,
            retries: counter(
                "workqueue_retries_total",
                "Number of retries after failures.",
                queue,
            )?,
            queue_time: histogram(
                "workqueue_queue_duration_seconds",
                "How long objects waited for a worker.",
                queue,
                seconds.clone(),
            )?,
            work_time: histogram(
                "workqueue_work_duration_seconds",
                "How long a worker took.",
                queue,
                seconds,
            )?,
            requests: counter(
                "rest_client_requests_total",
                "Number of requests to the API server.",
                &["code", "host", "method"],
            )?,
            leader: gauge(
                "leader_election_master_status",
                "Whether this process is the leader.",
                &["name"],
            )?,
            dropped: counter(
                "weir_events_dropped_total",
                "Number of events that were dropped because a queue was full or a sink did not take them.",
                &["sink"],
            )?,
            build: GaugeVec::new(
                Opts::new("weir_build_info", "The version of the controller."),
                &["controller", "version"],
            )?,
        };
        families
            .build
            .with_label_values(&[controller, env!("CARGO_PKG_VERSION")])
            .set(1.0);
        let metrics = Self(Arc::new(families));
        metrics.register_all()?;
        Ok(metrics)
    }

    fn register_all(&self) -> Result<(), prometheus::Error> {
        let f = &self.0;
        let all: [Box<dyn Collector>; 19] = [
            Box::new(f.condition.clone()),
            Box::new(f.suspend.clone()),
            Box::new(f.duration.clone()),
            Box::new(f.reconciles.clone()),
            Box::new(f.errors.clone()),
            Box::new(f.terminal.clone()),
            Box::new(f.panics.clone()),
            Box::new(f.time.clone()),
            Box::new(f.max_concurrent.clone()),
            Box::new(f.active.clone()),
            Box::new(f.depth.clone()),
            Box::new(f.adds.clone()),
            Box::new(f.retries.clone()),
            Box::new(f.queue_time.clone()),
            Box::new(f.work_time.clone()),
            Box::new(f.requests.clone()),
            Box::new(f.leader.clone()),
            Box::new(f.dropped.clone()),
            Box::new(f.build.clone()),
        ];
        for family in all {
            f.registry.register(family)?;
        }
        f.registry.register(Box::new(ProcessCollector::for_self()))
    }

    /// The registry, for the families of one controller.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }

    /// Everything in the text format of Prometheus.
    #[must_use]
    pub fn text(&self) -> Vec<u8> {
        let mut text = Vec::new();
        if let Err(error) = TextEncoder::new().encode(&self.0.registry.gather(), &mut text) {
            tracing::error!(%error, "cannot encode the metrics");
        }
        text
    }

    /// Counts a request to the API server.
    pub(crate) fn request(&self, code: &str, host: &str, method: &str) {
        self.0.requests.with_label_values(&[code, host, method]).inc();
    }

    /// Says whether this process leads under the lease `name`.
    pub(crate) fn leader(&self, name: &str, leads: bool) {
        self.0.leader.with_label_values(&[name]).set(i64::from(leads));
    }

    /// Counts an event that did not reach `sink`.
    pub(crate) fn event_dropped(&self, sink: &str) {
        self.0.dropped.with_label_values(&[sink]).inc();
    }

    /// The series of one kind.
    pub(crate) fn kind(&self, kind: &str) -> KindMetrics {
        KindMetrics {
            metrics: self.clone(),
            kind: kind.to_owned(),
            controller: kind.to_lowercase(),
        }
    }
}

/// The series of one kind.
#[derive(Debug, Clone)]
pub(crate) struct KindMetrics {
    metrics: Metrics,
    kind: String,
    controller: String,
}

impl KindMetrics {
    pub(crate) fn start(&self, concurrency: usize) {
        let f = &self.metrics.0;
        let controller = &[self.controller.as_str()];
        f.max_concurrent
            .with_label_values(controller)
            .set(i64::try_from(concurrency).unwrap_or(i64::MAX));
        f.active.with_label_values(controller).set(0);
        // Series that exist from the start can be queried before the first failure.
        f.errors.with_label_values(controller).inc_by(0);
        f.terminal.with_label_values(controller).inc_by(0);
        f.panics.with_label_values(controller).inc_by(0);
        for ending in [
            Ending::Success,
            Ending::RequeueAfter,
            Ending::Requeue,
            Ending::Error,
        ] {
            f.reconciles
                .with_label_values(&[self.controller.as_str(), ending.label()])
                .inc_by(0);
        }
        f.retries.with_label_values(&self.queue()).inc_by(0);
        self.depth(0);
    }

    fn queue(&self) -> [&str; 2] {
        [&self.controller, &self.controller]
    }

    pub(crate) fn added(&self) {
        self.metrics.0.adds.with_label_values(&self.queue()).inc();
    }

    pub(crate) fn retried(&self) {
        self.metrics.0.retries.with_label_values(&self.queue()).inc();
    }

    pub(crate) fn depth(&self, depth: usize) {
        self.metrics
            .0
            .depth
            .with_label_values(&self.queue())
            .set(i64::try_from(depth).unwrap_or(i64::MAX));
    }

    pub(crate) fn started(&self, waited: Duration) {
        self.metrics
            .0
            .queue_time
            .with_label_values(&self.queue())
            .observe(waited.as_secs_f64());
        self.metrics
            .0
            .active
            .with_label_values(&[self.controller.as_str()])
            .inc();
    }

    pub(crate) fn ended(&self, key: &ObjectKey, ending: Option<Ending>, took: Duration) {
        let f = &self.metrics.0;
        let controller = &[self.controller.as_str()];
        f.active.with_label_values(controller).dec();
        f.work_time
            .with_label_values(&self.queue())
            .observe(took.as_secs_f64());
        let Some(ending) = ending else { return };
        f.reconciles
            .with_label_values(&[self.controller.as_str(), ending.label()])
            .inc();
        f.time.with_label_values(controller).observe(took.as_secs_f64());
        f.duration
            .with_label_values(&self.object(key))
            .observe(took.as_secs_f64());
        if matches!(ending, Ending::Error | Ending::Terminal) {
            f.errors.with_label_values(controller).inc();
        }
        if ending == Ending::Terminal {
            f.terminal.with_label_values(controller).inc();
        }
    }

    pub(crate) fn panicked(&self) {
        self.metrics
            .0
            .panics
            .with_label_values(&[self.controller.as_str()])
            .inc();
    }

    fn object<'a>(&'a self, key: &'a ObjectKey) -> [&'a str; 3] {
        [&self.kind, &key.name, &key.namespace]
    }

    pub(crate) fn suspended(&self, key: &ObjectKey, suspended: bool) {
        self.metrics
            .0
            .suspend
            .with_label_values(&self.object(key))
            .set(i64::from(suspended));
    }

    /// Records the status of the Ready condition, or `Deleted`.
    pub(crate) fn ready(&self, key: &ObjectKey, status: &str) {
        for each in STATUSES {
            self.metrics
                .0
                .condition
                .with_label_values(&[self.kind.as_str(), &key.name, &key.namespace, "Ready", each])
                .set(i64::from(each == status));
        }
    }

    /// Removes every series of an object that is gone.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        let f = &self.metrics.0;
        // A series that never was cannot be removed; that is no failure.
        let _ = f.suspend.remove_label_values(&self.object(key));
        let _ = f.duration.remove_label_values(&self.object(key));
        for each in STATUSES {
            let _ = f.condition.remove_label_values(&[
                self.kind.as_str(),
                &key.name,
                &key.namespace,
                "Ready",
                each,
            ]);
        }
    }
}

fn gauge(name: &str, help: &str, labels: &[&str]) -> Result<IntGaugeVec, prometheus::Error> {
    IntGaugeVec::new(Opts::new(name, help), labels)
}

fn counter(name: &str, help: &str, labels: &[&str]) -> Result<IntCounterVec, prometheus::Error> {
    IntCounterVec::new(Opts::new(name, help), labels)
}

fn histogram(
    name: &str,
    help: &str,
    labels: &[&str],
    buckets: Vec<f64>,
) -> Result<HistogramVec, prometheus::Error> {
    HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets), labels)
}

/// Ten buckets from 10 ms to 30 minutes, each the same factor above the last.
fn object_buckets() -> Vec<f64> {
    let factor = (1800.0f64 / 0.01).powf(1.0 / 9.0);
    (0..10).map(|step| 0.01 * factor.powi(step)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(metrics: &Metrics) -> String {
        String::from_utf8(metrics.text()).unwrap()
    }

    #[test]
    fn the_documented_names_answer_from_the_start() {
        let metrics = Metrics::new("source-controller").unwrap();
        metrics.kind("GitRepository").start(4);
        metrics.leader("source-controller-leader-election", true);
        let text = text(&metrics);
        for name in [
            "controller_runtime_reconcile_total{controller=\"gitrepository\",result=\"success\"} 0",
            "controller_runtime_reconcile_errors_total{controller=\"gitrepository\"} 0",
            "controller_runtime_max_concurrent_reconciles{controller=\"gitrepository\"} 4",
            "controller_runtime_active_workers{controller=\"gitrepository\"} 0",
            "controller_runtime_reconcile_panics_total{controller=\"gitrepository\"} 0",
            "workqueue_depth{controller=\"gitrepository\",name=\"gitrepository\"} 0",
            "leader_election_master_status{name=\"source-controller-leader-election\"} 1",
            "process_resident_memory_bytes",
            "process_cpu_seconds_total",
        ] {
            assert!(text.contains(name), "{name} is missing in:\n{text}");
        }
    }

    #[test]
    fn the_series_of_an_object_go_with_it() {
        let metrics = Metrics::new("c").unwrap();
        let kind = metrics.kind("GitRepository");
        let key = ObjectKey::new("team", "app");
        kind.started(Duration::ZERO);
        kind.ended(&key, Some(Ending::Error), Duration::from_secs(2));
        kind.suspended(&key, false);
        kind.ready(&key, "False");
        let before = text(&metrics);
        assert!(before.contains(
            r#"gotk_reconcile_condition{kind="GitRepository",name="app",namespace="team",status="False",type="Ready"} 1"#
        ));
        assert!(
            before.contains(r#"gotk_suspend_status{kind="GitRepository",name="app",namespace="team"} 0"#)
        );
        assert!(before.contains(
            r#"gotk_reconcile_duration_seconds_count{kind="GitRepository",name="app",namespace="team"} 1"#
        ));
        kind.forget(&key);
        assert!(!text(&metrics).contains(r#"name="app""#));
    }

    #[test]
    fn buckets_run_from_10_ms_to_30_minutes() {
        let buckets = object_buckets();
        assert_eq!(buckets.len(), 10);
        assert!((buckets[0] - 0.01).abs() < 1e-9 && (buckets[9] - 1800.0).abs() < 1e-6);
    }
}
