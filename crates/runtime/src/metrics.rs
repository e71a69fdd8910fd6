//! The metrics of a controller process, under the names in dashboards for Flux and kluctl.
//!
//! Label values are kinds, names of objects and enums, never messages; the series of an object are removed with it.

mod families;
mod objects;
mod registry;
mod unfinished;

use std::{
    io::Write,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{error::Error, queue::ObjectKey};
use families::Families;
use objects::Objects;

pub use families::registered;
pub use registry::Registry;

#[derive(Debug, Clone)]
pub struct Metrics(Arc<Families>);

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
    pub fn new(controller: &str) -> Result<Self, Error> {
        Self::with(controller, false)
    }

    /// Registers all families. With `per_object`, histograms of single objects have all their buckets.
    pub(crate) fn with(controller: &str, per_object: bool) -> Result<Self, Error> {
        let families = Families::register(controller, per_object).map_err(Error::Metrics)?;
        Ok(Self(Arc::new(families)))
    }

    /// Returns the registry, for the families of one controller.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }

    pub(crate) fn write(&self, out: &mut impl Write) -> Result<(), prometheus::Error> {
        self.refresh();
        self.0.registry.write(out)
    }

    #[cfg(test)]
    pub(crate) fn text(&self) -> String {
        self.refresh();
        self.0.registry.text().unwrap()
    }

    fn refresh(&self) {
        let queue = &self.0.queue;
        for (controller, times) in queue.running.times(Instant::now()) {
            let labels = [controller.as_str(), &controller];
            let longest = times.iter().max().copied().unwrap_or_default();
            let sum: Duration = times.iter().sum();
            queue
                .longest
                .with_label_values(&labels)
                .set(longest.as_secs_f64());
            queue.unfinished.with_label_values(&labels).set(sum.as_secs_f64());
        }
    }

    pub(crate) fn request(&self, code: &str, host: &str, method: &str) {
        self.0.requests.with_label_values(&[code, host, method]).inc();
    }

    pub(crate) fn leader(&self, name: &str, leads: bool) {
        self.0.leader.with_label_values(&[name]).set(i64::from(leads));
    }

    pub(crate) fn events_pending(&self, number: usize) {
        self.0
            .pending
            .with_label_values(&[] as &[&str])
            .set(i64::try_from(number).unwrap_or(i64::MAX));
    }

    pub(crate) fn event_dropped(&self, sink: &str) {
        self.0.dropped.with_label_values(&[sink]).inc();
    }

    /// Returns the series of one kind. The series of its objects have the label `group`, if the kind needs one.
    pub(crate) fn kind(
        &self,
        kind: &str,
        controller: &str,
        group: Option<&'static str>,
    ) -> Result<KindMetrics, Error> {
        Ok(KindMetrics {
            metrics: self.clone(),
            objects: self.0.objects(group).map_err(Error::Metrics)?,
            kind: kind.to_owned(),
            controller: controller.to_owned(),
        })
    }
}

#[derive(Debug, Clone)]
pub(crate) struct KindMetrics {
    metrics: Metrics,
    objects: Objects,
    kind: String,
    controller: String,
}

impl KindMetrics {
    pub(crate) fn start(&self, concurrency: usize) {
        let f = &self.metrics.0;
        let controller = &[self.controller.as_str()];
        f.passes
            .max_concurrent
            .with_label_values(controller)
            .set(i64::try_from(concurrency).unwrap_or(i64::MAX));
        f.passes.active.with_label_values(controller).set(0);
        // Series that exist from the start can be queried before the first failure.
        f.passes.errors.with_label_values(controller).inc_by(0);
        f.passes.terminal.with_label_values(controller).inc_by(0);
        f.passes.panics.with_label_values(controller).inc_by(0);
        for ending in [
            Ending::Success,
            Ending::RequeueAfter,
            Ending::Requeue,
            Ending::Error,
        ] {
            f.passes
                .ended
                .with_label_values(&[self.controller.as_str(), ending.label()])
                .inc_by(0);
        }
        f.queue.retries.with_label_values(&self.queue()).inc_by(0);
        self.metrics.0.queue.running.expect(&self.controller);
        self.depth(0);
    }

    fn queue(&self) -> [&str; 2] {
        [&self.controller, &self.controller]
    }

    pub(crate) fn added(&self) {
        self.metrics.0.queue.adds.with_label_values(&self.queue()).inc();
    }

    pub(crate) fn retried(&self) {
        self.metrics
            .0
            .queue
            .retries
            .with_label_values(&self.queue())
            .inc();
    }

    pub(crate) fn depth(&self, depth: usize) {
        self.metrics
            .0
            .queue
            .depth
            .with_label_values(&self.queue())
            .set(i64::try_from(depth).unwrap_or(i64::MAX));
    }

    pub(crate) fn started(&self, key: &ObjectKey, at: Instant, waited: Duration) {
        self.metrics.0.queue.running.started(&self.controller, key, at);
        self.metrics
            .0
            .queue
            .waited
            .with_label_values(&self.queue())
            .observe(waited.as_secs_f64());
        self.metrics
            .0
            .passes
            .active
            .with_label_values(&[self.controller.as_str()])
            .inc();
    }

    pub(crate) fn ended(&self, key: &ObjectKey, ending: Option<Ending>, took: Duration) {
        self.metrics.0.queue.running.ended(&self.controller, key);
        let f = &self.metrics.0;
        let controller = &[self.controller.as_str()];
        f.passes.active.with_label_values(controller).dec();
        f.queue
            .worked
            .with_label_values(&self.queue())
            .observe(took.as_secs_f64());
        let Some(ending) = ending else { return };
        f.passes
            .ended
            .with_label_values(&[self.controller.as_str(), ending.label()])
            .inc();
        f.passes
            .time
            .with_label_values(controller)
            .observe(took.as_secs_f64());
        self.objects.passed(&self.kind, key, took);
        if matches!(ending, Ending::Error | Ending::Terminal) {
            f.passes.errors.with_label_values(controller).inc();
        }
        if ending == Ending::Terminal {
            f.passes.terminal.with_label_values(controller).inc();
        }
    }

    pub(crate) fn panicked(&self) {
        self.metrics
            .0
            .passes
            .panics
            .with_label_values(&[self.controller.as_str()])
            .inc();
    }

    pub(crate) fn suspended(&self, key: &ObjectKey, suspended: bool) {
        self.objects.suspended(&self.kind, key, suspended);
    }

    pub(crate) fn ready(&self, key: &ObjectKey, status: &str) {
        self.objects.ready(&self.kind, key, status);
    }

    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.objects.forget(&self.kind, key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_names_answer_from_the_start() {
        let metrics = Metrics::new("source-controller").unwrap();
        let kind = metrics.kind("GitRepository", "gitrepository", None).unwrap();
        kind.start(4);
        metrics.leader("source-controller-leader-election", true);
        let text = metrics.text();
        for name in [
            "controller_runtime_reconcile_total{controller=\"gitrepository\",result=\"success\"} 0",
            "controller_runtime_reconcile_errors_total{controller=\"gitrepository\"} 0",
            "controller_runtime_max_concurrent_reconciles{controller=\"gitrepository\"} 4",
            "controller_runtime_active_workers{controller=\"gitrepository\"} 0",
            "controller_runtime_reconcile_panics_total{controller=\"gitrepository\"} 0",
            "workqueue_depth{controller=\"gitrepository\",name=\"gitrepository\"} 0",
            "workqueue_unfinished_work_seconds{controller=\"gitrepository\",name=\"gitrepository\"} 0",
            "workqueue_longest_running_processor_seconds{controller=\"gitrepository\",name=\"gitrepository\"} 0",
            "leader_election_master_status{name=\"source-controller-leader-election\"} 1",
            "process_resident_memory_bytes",
            "process_cpu_seconds_total",
        ] {
            assert!(text.contains(name), "{name} is missing in:\n{text}");
        }
    }

    #[test]
    fn a_pass_that_runs_shows_until_it_ends() {
        let metrics = Metrics::new("c").unwrap();
        let kind = metrics.kind("GitRepository", "gitrepository", None).unwrap();
        let longest = || {
            let (text, name) = (metrics.text(), "workqueue_longest_running_processor_seconds{");
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()
        };
        let (key, minute) = (ObjectKey::new("team", "app"), Duration::from_secs(60));
        kind.started(&key, Instant::now().checked_sub(minute).unwrap(), Duration::ZERO);
        assert!(longest() >= 60.0);
        kind.ended(&key, None, minute);
        assert!(longest() < 1e-9);
    }

    #[test]
    fn the_series_of_an_object_go_with_it() {
        let metrics = Metrics::new("c").unwrap();
        let kind = metrics.kind("GitRepository", "gitrepository", None).unwrap();
        let key = ObjectKey::new("team", "app");
        kind.started(&key, Instant::now(), Duration::ZERO);
        kind.ended(&key, Some(Ending::Error), Duration::from_secs(2));
        kind.suspended(&key, false);
        kind.ready(&key, "False");
        let before = metrics.text();
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
        assert!(!metrics.text().contains(r#"name="app""#));
    }

    #[test]
    fn kinds_with_a_group_have_series_of_their_own() {
        let metrics = Metrics::new("c").unwrap();
        let key = ObjectKey::new("team", "app");
        let [one, two] =
            [None, Some("b.example.com")].map(|group| metrics.kind("App", "app", group).unwrap());
        metrics.kind("Other", "other", Some("b.example.com")).unwrap();
        one.suspended(&key, true);
        two.suspended(&key, false);
        let series = |end: &str| {
            let series = format!(r#"gotk_suspend_status{{kind="App",name="app",namespace="team"{end}"#);
            metrics.text().lines().any(|line| line == series)
        };
        let group = r#",group="b.example.com"} 0"#;
        assert!(series("} 1") && series(group));
        one.forget(&key);
        assert!(!series("} 1") && series(group));
    }
}
