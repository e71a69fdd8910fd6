//! The metrics of deployments, under the names that dashboards for kluctl query.
//!
//! Labels are names of objects and commands, never messages; the series of an object go with it.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use prometheus::{GaugeVec, HistogramVec, Opts, histogram_opts};
use results::Counts;
use runtime::{
    ObjectKey,
    metrics::{Registry, registered},
};

const PREFIX: &str = "kluctldeployments_";
const OBJECT: &[&str] = &["namespace", "name"];
const MODE: &[&str] = &["namespace", "name", "mode"];
const ACTION: &[&str] = &["namespace", "name", "action"];
const SOURCE: &[&str] = &["namespace", "name", "url", "path", "ref"];

/// A value of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Gauge {
    Changed,
    /// The same under the name of `flux.kluctl.io`.
    Changes,
    Deleted,
    Orphans,
    Images,
    Interval,
    DryRun,
    Prune,
    Delete,
    Ready,
    DeployStart,
}

const GAUGES: [(Gauge, &str, &str); 11] = [
    (Gauge::Changed, "number_of_changed_objects", CHANGED),
    (Gauge::Changes, "number_of_changes", CHANGED),
    (
        Gauge::Deleted,
        "number_of_deleted_objects",
        "Objects deleted by the last command.",
    ),
    (
        Gauge::Orphans,
        "number_of_orphan_objects",
        "Orphans that the last command saw.",
    ),
    (Gauge::Images, "number_of_images", "Images that the spec pins."),
    (
        Gauge::Interval,
        "deployment_interval_seconds",
        "How often the cluster is deployed to.",
    ),
    (
        Gauge::DryRun,
        "dry_run_enabled",
        "Whether nothing is really written.",
    ),
    (Gauge::Prune, "prune_enabled", "Whether orphans are pruned."),
    (
        Gauge::Delete,
        "delete_enabled",
        "Whether objects go with their deployment.",
    ),
    (
        Gauge::Ready,
        "last_object_status",
        "Whether the deployment is ready.",
    ),
    (
        Gauge::DeployStart,
        "last_deploy_start_timestamp_seconds",
        DEPLOY_START,
    ),
];
const CHANGED: &str = "Objects changed by the last deployment.";
const DEPLOY_START: &str = "When the last deployment began, in seconds since the epoch.";

#[derive(Debug, Clone)]
pub struct Metrics {
    gauges: HashMap<Gauge, GaugeVec>,
    /// Durations of the commands; of both commands that deploy by mode.
    durations: HashMap<Command, HistogramVec>,
    errors: GaugeVec,
    warnings: GaugeVec,
    source: GaugeVec,
    /// URL, path and reference in the series of each object.
    sources: Arc<Mutex<HashMap<ObjectKey, [String; 3]>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Command {
    Deploy,
    PokeImages,
    Prune,
    Validate,
    Delete,
}

impl Command {
    const ALL: [Self; 5] = [
        Self::Deploy,
        Self::PokeImages,
        Self::Prune,
        Self::Validate,
        Self::Delete,
    ];

    /// Returns the command that deploys, by the mode of the deployment.
    #[must_use]
    pub const fn deploying(pokes_images: bool) -> Self {
        match pokes_images {
            true => Self::PokeImages,
            false => Self::Deploy,
        }
    }

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deploy => "deploy",
            Self::PokeImages => "poke-images",
            Self::Prune => "prune",
            Self::Validate => "validate",
            Self::Delete => "delete",
        }
    }

    /// Returns the mode of a command that deploys, as a label.
    const fn mode(self) -> Option<&'static str> {
        match self {
            Self::Deploy => Some("full-deploy"),
            Self::PokeImages => Some("poke-images"),
            Self::Prune | Self::Validate | Self::Delete => None,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct SpecValues {
    /// Period of deployments; `None` if there is none.
    pub interval: Option<Duration>,
    /// `spec.dryRun`, or the flag `--dry-run`.
    pub dry_run: bool,
    pub prune: bool,
    /// True if the deployed objects are deleted with the object.
    pub delete: bool,
    pub images: usize,
    /// Kind, namespace and name of the source.
    pub source: String,
    pub path: String,
    /// Reference of the source, as in `refs/heads/main`; empty if it is part of the source.
    pub reference: String,
}

impl Metrics {
    /// Creates and registers all families.
    ///
    /// # Errors
    /// If a family of the same name is registered.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        Self::with(registry, |gauge| gauge != Gauge::Changes)
    }

    /// Creates and registers all families of `flux.kluctl.io`, whose dashboards query another name for the number of changed objects.
    ///
    /// # Errors
    /// If a family of the same name is registered.
    pub fn of_flux(registry: &Registry) -> Result<Self, prometheus::Error> {
        Self::with(registry, |_| true)
    }

    fn with(registry: &Registry, has: impl Fn(Gauge) -> bool) -> Result<Self, prometheus::Error> {
        let gauge = |name: &str, help: &str, labels| {
            registered(
                registry,
                GaugeVec::new(Opts::new(format!("{PREFIX}{name}"), help), labels)?,
            )
        };
        let seconds = |what: &str, labels| {
            let (name, help) = (
                format!("{PREFIX}{what}_duration_seconds"),
                format!("How long a {what} took, in seconds."),
            );
            let buckets = registry.object_buckets(prometheus::DEFAULT_BUCKETS.to_vec());
            registered(
                registry,
                HistogramVec::new(histogram_opts!(name, help, buckets), labels)?,
            )
        };
        let gauges = GAUGES.iter().filter(|(key, ..)| has(*key));
        let deployment = seconds("deployment", MODE)?;
        Ok(Self {
            gauges: gauges
                .map(|&(key, name, help)| Ok((key, gauge(name, help, OBJECT)?)))
                .collect::<Result<_, prometheus::Error>>()?,
            durations: HashMap::from([
                (Command::Deploy, deployment.clone()),
                (Command::PokeImages, deployment),
                (Command::Prune, seconds("prune", OBJECT)?),
                (Command::Validate, seconds("validate", OBJECT)?),
                (Command::Delete, seconds("delete", OBJECT)?),
            ]),
            errors: gauge("number_of_errors", "Errors of the last command.", ACTION)?,
            warnings: gauge("number_of_warnings", "Warnings of the last command.", ACTION)?,
            source: gauge("source_spec", "What is deployed, in the labels.", SOURCE)?,
            sources: Arc::default(),
        })
    }

    pub fn wanted(&self, key: &ObjectKey, wanted: &SpecValues) {
        let seconds = wanted.interval.map_or(0.0, |interval| interval.as_secs_f64());
        self.set(key, Gauge::Interval, seconds);
        self.set(key, Gauge::DryRun, f64::from(wanted.dry_run));
        self.set(key, Gauge::Prune, f64::from(wanted.prune));
        self.set(key, Gauge::Delete, f64::from(wanted.delete));
        self.set(key, Gauge::Images, number(wanted.images));
        let source = [&wanted.source, &wanted.path, &wanted.reference];
        self.show_source(key, Some(source.map(String::clone)));
    }

    pub fn deploy_starts(&self, key: &ObjectKey, seconds_since_epoch: f64) {
        self.set(key, Gauge::DeployStart, seconds_since_epoch);
    }

    /// Records the counts and the duration of a command.
    pub fn done(&self, key: &ObjectKey, command: Command, took: Duration, counted: Counts) {
        if let Some(durations) = self.durations.get(&command) {
            durations
                .with_label_values(&labels(key, command.mode()))
                .observe(took.as_secs_f64());
        }
        let gauges: &[Gauge] = match command {
            Command::Deploy | Command::PokeImages => {
                &[Gauge::Changed, Gauge::Changes, Gauge::Deleted, Gauge::Orphans]
            }
            Command::Prune => &[Gauge::Deleted, Gauge::Orphans],
            Command::Validate => &[],
            Command::Delete => &[Gauge::Deleted],
        };
        for &gauge in gauges {
            let count = match gauge {
                Gauge::Deleted => counted.deleted,
                Gauge::Orphans => counted.orphans,
                _ => counted.new + counted.changed,
            };
            self.set(key, gauge, number(count));
        }
        let labels = labels(key, Some(command.name()));
        self.errors.with_label_values(&labels).set(number(counted.errors));
        self.warnings
            .with_label_values(&labels)
            .set(number(counted.warnings));
    }

    pub fn ready(&self, key: &ObjectKey, ready: bool) {
        self.set(key, Gauge::Ready, f64::from(ready));
    }

    pub fn forget(&self, key: &ObjectKey) {
        for gauge in self.gauges.values() {
            let _ = gauge.remove_label_values(&labels(key, None));
        }
        for command in Command::ALL {
            if let Some(durations) = self.durations.get(&command) {
                let _ = durations.remove_label_values(&labels(key, command.mode()));
            }
            for gauge in [&self.errors, &self.warnings] {
                let _ = gauge.remove_label_values(&labels(key, Some(command.name())));
            }
        }
        self.show_source(key, None);
    }

    fn set(&self, key: &ObjectKey, gauge: Gauge, value: f64) {
        if let Some(gauge) = self.gauges.get(&gauge) {
            gauge.with_label_values(&labels(key, None)).set(value);
        }
    }

    /// Sets the source of an object, and removes the series of the previous one.
    fn show_source(&self, key: &ObjectKey, now: Option<[String; 3]>) {
        let mut sources = self.sources.lock();
        if now.as_ref() == sources.get(key) {
            return;
        }
        let labels = |[url, path, reference]: &[String; 3]| {
            [&key.namespace, &key.name, url, path, reference].map(String::clone)
        };
        if let Some(before) = sources.remove(key) {
            let _ = self.source.remove_label_values(&labels(&before));
        }
        if let Some(now) = now {
            self.source.with_label_values(&labels(&now)).set(0.0);
            sources.insert(key.clone(), now);
        }
    }
}

fn labels<'a>(key: &'a ObjectKey, third: Option<&'a str>) -> Vec<&'a str> {
    let both = [key.namespace.as_str(), key.name.as_str()];
    both.into_iter().chain(third).collect()
}

fn number(n: usize) -> f64 {
    f64::from(u32::try_from(n).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(registry: &Registry) -> String {
        registry.text().expect("text")
    }

    #[test]
    fn series_of_an_object_are_removed_with_it() {
        let registry = Registry::default();
        let metrics = Metrics::of_flux(&registry).expect("families");
        let (key, other) = (ObjectKey::new("apps", "shop"), ObjectKey::new("apps", "other"));
        let wanted = SpecValues {
            interval: Some(Duration::from_secs(60)),
            prune: true,
            images: 3,
            ..SpecValues::default()
        };
        for key in [&key, &other] {
            metrics.wanted(
                key,
                &SpecValues {
                    path: "old".to_owned(),
                    ..wanted.clone()
                },
            );
            metrics.wanted(key, &wanted);
            metrics.deploy_starts(key, 1.0);
            metrics.ready(key, true);
            for command in Command::ALL {
                metrics.done(
                    key,
                    command,
                    Duration::from_secs(1),
                    Counts {
                        changed: 2,
                        ..Counts::default()
                    },
                );
            }
        }
        let before = text(&registry);
        for series in [
            "kluctldeployments_number_of_changed_objects{name=\"shop\",namespace=\"apps\"} 2",
            "kluctldeployments_number_of_changes{name=\"shop\",namespace=\"apps\"} 2",
            "kluctldeployments_deployment_interval_seconds{name=\"shop\",namespace=\"apps\"} 60",
            "kluctldeployments_deployment_duration_seconds_count{mode=\"full-deploy\",name=\"shop\",namespace=\"apps\"} 1",
            "kluctldeployments_deployment_duration_seconds_count{mode=\"poke-images\",name=\"shop\",namespace=\"apps\"} 1",
            "kluctldeployments_number_of_images{name=\"shop\",namespace=\"apps\"} 3",
            "kluctldeployments_number_of_errors{action=\"prune\",name=\"shop\",namespace=\"apps\"} 0",
        ] {
            assert!(before.contains(series), "{series} is missing in\n{before}");
        }
        assert!(!before.contains("path=\"old\""), "{before}");
        metrics.forget(&key);
        let after = text(&registry);
        assert!(!after.contains("shop") && after.contains("other"), "{after}");
    }
}
