//! The families of metrics, by subject.

use std::collections::HashMap;

use parking_lot::Mutex;
use prometheus::{
    GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, core::Collector,
    process_collector::ProcessCollector,
};

use super::{objects::Objects, registry::Registry, unfinished::Unfinished};

const SECONDS: [f64; 14] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
];

#[derive(Debug)]
pub(super) struct Families {
    pub(super) registry: Registry,
    /// By the value of the label `group`.
    objects: Mutex<HashMap<Option<&'static str>, Objects>>,
    pub(super) passes: Passes,
    pub(super) queue: Queue,
    pub(super) requests: IntCounterVec,
    pub(super) leader: IntGaugeVec,
    pub(super) dropped: IntCounterVec,
    pub(super) pending: IntGaugeVec,
}

#[derive(Debug)]
pub(super) struct Passes {
    pub(super) ended: IntCounterVec,
    pub(super) errors: IntCounterVec,
    pub(super) terminal: IntCounterVec,
    pub(super) panics: IntCounterVec,
    pub(super) time: HistogramVec,
    pub(super) max_concurrent: IntGaugeVec,
    pub(super) active: IntGaugeVec,
}

/// By kind: the objects that wait for a pass, and those in one.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) depth: IntGaugeVec,
    pub(super) adds: IntCounterVec,
    pub(super) retries: IntCounterVec,
    pub(super) waited: HistogramVec,
    pub(super) worked: HistogramVec,
    pub(super) unfinished: GaugeVec,
    pub(super) longest: GaugeVec,
    /// Running passes, for the last two.
    pub(super) running: Unfinished,
}

impl Families {
    pub(super) fn register(controller: &str, per_object: bool) -> Result<Self, prometheus::Error> {
        let registry = Registry::new(per_object);
        let families = Self {
            objects: Mutex::default(),
            passes: Passes::register(&registry)?,
            queue: Queue::register(&registry)?,
            requests: counter(
                &registry,
                "rest_client_requests_total",
                "Number of requests to the API server.",
                &["code", "host", "method"],
            )?,
            leader: gauge(
                &registry,
                "leader_election_master_status",
                "Whether this process is the leader.",
                &["name"],
            )?,
            pending: gauge(
                &registry,
                "weir_events_pending",
                "Number of events that wait until the notification-controller acknowledges them.",
                &[],
            )?,
            dropped: counter(
                &registry,
                "weir_events_dropped_total",
                "Number of events that were dropped because a queue was full or a sink did not take them.",
                &["sink"],
            )?,
            registry,
        };
        let build = gauge(
            &families.registry,
            "weir_build_info",
            "The version of the controller.",
            &["controller", "version"],
        )?;
        build
            .with_label_values(&[controller, env!("CARGO_PKG_VERSION")])
            .set(1);
        families
            .registry
            .register(Box::new(ProcessCollector::for_self()))?;
        Ok(families)
    }

    pub(super) fn objects(&self, group: Option<&'static str>) -> Result<Objects, prometheus::Error> {
        let mut all = self.objects.lock();
        if let Some(objects) = all.get(&group) {
            return Ok(objects.clone());
        }
        let objects = match group {
            Some(group) => Objects::register(&self.registry.labelled("group", group))?,
            None => Objects::register(&self.registry)?,
        };
        all.insert(group, objects.clone());
        Ok(objects)
    }
}

impl Passes {
    fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let kind = &["controller"];
        Ok(Self {
            ended: counter(
                registry,
                "controller_runtime_reconcile_total",
                "Number of reconciliations.",
                &["controller", "result"],
            )?,
            errors: counter(
                registry,
                "controller_runtime_reconcile_errors_total",
                "Number of reconciliations that failed.",
                kind,
            )?,
            terminal: counter(
                registry,
                "controller_runtime_terminal_reconcile_errors_total",
                "Number of reconciliations that only a change of the object can help.",
                kind,
            )?,
            panics: counter(
                registry,
                "controller_runtime_reconcile_panics_total",
                "Number of panics caught in reconciliations.",
                kind,
            )?,
            time: histogram(
                registry,
                "controller_runtime_reconcile_time_seconds",
                "How long reconciliations took.",
                kind,
                SECONDS.to_vec(),
            )?,
            max_concurrent: gauge(
                registry,
                "controller_runtime_max_concurrent_reconciles",
                "How many reconciliations may run at the same time.",
                kind,
            )?,
            active: gauge(
                registry,
                "controller_runtime_active_workers",
                "How many reconciliations run now.",
                kind,
            )?,
        })
    }
}

impl Queue {
    fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let labels = &["name", "controller"];
        Ok(Self {
            depth: gauge(
                registry,
                "workqueue_depth",
                "How many objects wait for a worker.",
                labels,
            )?,
            adds: counter(
                registry,
                "workqueue_adds_total",
                "Number of adds to the queue.",
                labels,
            )?,
            retries: counter(
                registry,
                "workqueue_retries_total",
                "Number of retries after failures.",
                labels,
            )?,
            waited: histogram(
                registry,
                "workqueue_queue_duration_seconds",
                "How long objects waited for a worker.",
                labels,
                SECONDS.to_vec(),
            )?,
            worked: histogram(
                registry,
                "workqueue_work_duration_seconds",
                "How long a worker took.",
                labels,
                SECONDS.to_vec(),
            )?,
            unfinished: seconds(
                registry,
                "workqueue_unfinished_work_seconds",
                "How long the workers that are busy have been so, in sum.",
                labels,
            )?,
            longest: seconds(
                registry,
                "workqueue_longest_running_processor_seconds",
                "How long the worker that is busy for longest has been so.",
                labels,
            )?,
            running: Unfinished::default(),
        })
    }
}

fn gauge(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<IntGaugeVec, prometheus::Error> {
    registered(registry, IntGaugeVec::new(Opts::new(name, help), labels)?)
}

fn seconds(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<GaugeVec, prometheus::Error> {
    registered(registry, GaugeVec::new(Opts::new(name, help), labels)?)
}

fn counter(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<IntCounterVec, prometheus::Error> {
    registered(registry, IntCounterVec::new(Opts::new(name, help), labels)?)
}

fn histogram(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
    buckets: Vec<f64>,
) -> Result<HistogramVec, prometheus::Error> {
    let options = HistogramOpts::new(name, help).buckets(buckets);
    registered(registry, HistogramVec::new(options, labels)?)
}

pub fn registered<C: Collector + Clone + 'static>(
    registry: &Registry,
    family: C,
) -> Result<C, prometheus::Error> {
    registry.register(Box::new(family.clone()))?;
    Ok(family)
}
