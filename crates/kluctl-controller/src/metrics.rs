//! The metrics of deployments, under the names that dashboards for kluctl query.
//!
//! Labels are names of objects and commands, never messages; the series of an object go with it.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use prometheus::{GaugeVec, HistogramVec, IntGaugeVec, Opts, histogram_opts};
use results::CommandResult;
use runtime::{
    ObjectKey,
    metrics::{Registry, registered},
};

const PREFIX: &str = "kluctldeployments_";
/// The modes of deployments, as a label.
const FULL_DEPLOY: &str = "full-deploy";
const POKE_IMAGES: &str = "poke-images";

#[derive(Debug, Clone)]
pub struct Metrics {
    deploy_seconds: HistogramVec,
    prune_seconds: HistogramVec,
    validate_seconds: HistogramVec,
    delete_seconds: HistogramVec,
    changed: IntGaugeVec,
    /// The same under the name of `flux.kluctl.io`.
    changes: Option<IntGaugeVec>,
    deleted: IntGaugeVec,
    orphans: IntGaugeVec,
    images: IntGaugeVec,
    errors: IntGaugeVec,
    warnings: IntGaugeVec,
    interval: GaugeVec,
    dry_run: IntGaugeVec,
    prune: IntGaugeVec,
    delete: IntGaugeVec,
    ready: IntGaugeVec,
    deploy_start: GaugeVec,
    source: IntGaugeVec,
    /// The source and path in the series of each object.
    sources: Arc<Mutex<HashMap<ObjectKey, [String; 3]>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Deploy: applies the objects.
    Deploy,
    /// Poke images: replaces images of running objects.
    PokeImages,
    /// Prune: deletes the orphans.
    Prune,
    /// Validate: checks readiness.
    Validate,
    /// Delete: deletes all objects.
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
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CommandCounts {
    /// Number of changed and new objects.
    pub changed: usize,
    pub deleted: usize,
    /// Number of objects that are no longer rendered.
    pub orphans: usize,
    pub errors: usize,
    pub warnings: usize,
}

impl From<&CommandResult> for CommandCounts {
    fn from(result: &CommandResult) -> Self {
        let counts = result.counts();
        Self {
            changed: counts.new + counts.changed,
            deleted: counts.deleted,
            orphans: counts.orphans,
            errors: counts.errors,
            warnings: counts.warnings,
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
        const OBJECT: &[&str] = &["namespace", "name"];
        const ACTION: &[&str] = &["namespace", "name", "action"];
        let seconds = |what, labels| seconds(registry, what, labels);
        let floats = |name, help| floats(registry, name, help, OBJECT);
        let gauge = |name, help, labels| gauge(registry, name, help, labels);
        let count = |name, help| gauge(name, help, OBJECT);
        Ok(Self {
            deploy_seconds: seconds("deployment", &["namespace", "name", "mode"])?,
            prune_seconds: seconds("prune", OBJECT)?,
            validate_seconds: seconds("validate", OBJECT)?,
            delete_seconds: seconds("delete", OBJECT)?,
            changed: count(
                "number_of_changed_objects",
                "Objects changed by the last deployment.",
            )?,
            changes: None,
            deleted: count(
                "number_of_deleted_objects",
                "Objects deleted by the last command.",
            )?,
            orphans: count("number_of_orphan_objects", "Orphans that the last command saw.")?,
            images: count("number_of_images", "Images that the spec pins.")?,
            errors: gauge("number_of_errors", "Errors of the last command.", ACTION)?,
            warnings: gauge("number_of_warnings", "Warnings of the last command.", ACTION)?,
            interval: floats(
                "deployment_interval_seconds",
                "How often the cluster is deployed to.",
            )?,
            dry_run: count("dry_run_enabled", "Whether nothing is really written.")?,
            prune: count("prune_enabled", "Whether orphans are pruned.")?,
            delete: count("delete_enabled", "Whether objects go with their deployment.")?,
            ready: count("last_object_status", "Whether the deployment is ready.")?,
            deploy_start: floats(
                "last_deploy_start_timestamp_seconds",
                "When the last deployment began, in seconds since the epoch.",
            )?,
            source: gauge(
                "source_spec",
                "What is deployed, in the labels.",
                &["namespace", "name", "url", "path", "ref"],
            )?,
            sources: Arc::default(),
        })
    }

    /// Creates and registers all families of `flux.kluctl.io`, whose dashboards query another name for the number of changed objects.
    ///
    /// # Errors
    /// If a family of the same name is registered.
    pub fn of_flux(registry: &Registry) -> Result<Self, prometheus::Error> {
        let help = "Objects changed by the last deployment.";
        let changes = gauge(registry, "number_of_changes", help, &["namespace", "name"])?;
        Ok(Self {
            changes: Some(changes),
            ..Self::new(registry)?
        })
    }

    pub fn wanted(&self, key: &ObjectKey, wanted: &SpecValues) {
        let labels = [key.namespace.as_str(), key.name.as_str()];
        let seconds = wanted.interval.map_or(0.0, |interval| interval.as_secs_f64());
        self.interval.with_label_values(&labels).set(seconds);
        self.dry_run.with_label_values(&labels).set(wanted.dry_run.into());
        self.prune.with_label_values(&labels).set(wanted.prune.into());
        self.delete.with_label_values(&labels).set(wanted.delete.into());
        set(&self.images, &labels, wanted.images);
        self.show_source(
            key,
            Some([
                wanted.source.clone(),
                wanted.path.clone(),
                wanted.reference.clone(),
            ]),
        );
    }

    pub fn deploy_starts(&self, key: &ObjectKey, seconds_since_epoch: f64) {
        self.deploy_start
            .with_label_values(&[&key.namespace, &key.name])
            .set(seconds_since_epoch);
    }

    /// Records the counts and the duration of a command.
    pub fn done(&self, key: &ObjectKey, command: Command, took: Duration, counted: CommandCounts) {
        let labels = [key.namespace.as_str(), key.name.as_str()];
        let seconds = took.as_secs_f64();
        match command {
            Command::Deploy | Command::PokeImages => {
                let mode = if command == Command::Deploy {
                    FULL_DEPLOY
                } else {
                    POKE_IMAGES
                };
                self.deploy_seconds
                    .with_label_values(&[labels[0], labels[1], mode])
                    .observe(seconds);
                for gauge in [Some(&self.changed), self.changes.as_ref()].into_iter().flatten() {
                    set(gauge, &labels, counted.changed);
                }
                set(&self.deleted, &labels, counted.deleted);
                set(&self.orphans, &labels, counted.orphans);
            }
            Command::Prune => {
                self.prune_seconds.with_label_values(&labels).observe(seconds);
                set(&self.orphans, &labels, counted.orphans);
                set(&self.deleted, &labels, counted.deleted);
            }
            Command::Validate => self.validate_seconds.with_label_values(&labels).observe(seconds),
            Command::Delete => {
                self.delete_seconds.with_label_values(&labels).observe(seconds);
                set(&self.deleted, &labels, counted.deleted);
            }
        }
        let labels = [labels[0], labels[1], command.name()];
        set(&self.errors, &labels, counted.errors);
        set(&self.warnings, &labels, counted.warnings);
    }

    pub fn ready(&self, key: &ObjectKey, ready: bool) {
        self.ready
            .with_label_values(&[&key.namespace, &key.name])
            .set(ready.into());
    }

    pub fn forget(&self, key: &ObjectKey) {
        let labels = [key.namespace.as_str(), key.name.as_str()];
        for gauge in [
            &self.changed,
            &self.deleted,
            &self.orphans,
            &self.images,
            &self.dry_run,
            &self.prune,
            &self.delete,
            &self.ready,
        ] {
            let _ = gauge.remove_label_values(&labels);
        }
        if let Some(changes) = &self.changes {
            let _ = changes.remove_label_values(&labels);
        }
        for gauge in [&self.interval, &self.deploy_start] {
            let _ = gauge.remove_label_values(&labels);
        }
        for histogram in [&self.prune_seconds, &self.validate_seconds, &self.delete_seconds] {
            let _ = histogram.remove_label_values(&labels);
        }
        for mode in [FULL_DEPLOY, POKE_IMAGES] {
            let _ = self
                .deploy_seconds
                .remove_label_values(&[labels[0], labels[1], mode]);
        }
        for command in Command::ALL {
            let labels = [labels[0], labels[1], command.name()];
            let _ = self.errors.remove_label_values(&labels);
            let _ = self.warnings.remove_label_values(&labels);
        }
        self.show_source(key, None);
    }

    /// Sets the source and path of an object, and removes the series of the previous ones.
    fn show_source(&self, key: &ObjectKey, now: Option<[String; 3]>) {
        let labels = |[source, path, reference]: &[String; 3]| {
            [
                key.namespace.clone(),
                key.name.clone(),
                source.clone(),
                path.clone(),
                reference.clone(),
            ]
        };
        let mut sources = self.sources.lock();
        if now.as_ref() == sources.get(key) {
            return;
        }
        if let Some(before) = sources.remove(key) {
            let _ = self.source.remove_label_values(&labels(&before));
        }
        if let Some(now) = now {
            self.source.with_label_values(&labels(&now)).set(0);
            sources.insert(key.clone(), now);
        }
    }
}

fn set(gauge: &IntGaugeVec, labels: &[&str], n: usize) {
    gauge
        .with_label_values(labels)
        .set(i64::try_from(n).unwrap_or(i64::MAX));
}

fn seconds(registry: &Registry, what: &str, labels: &[&str]) -> Result<HistogramVec, prometheus::Error> {
    let name = format!("{PREFIX}{what}_duration_seconds");
    let help = format!("How long a {what} took, in seconds.");
    let buckets = registry.object_buckets(prometheus::DEFAULT_BUCKETS.to_vec());
    registered(
        registry,
        HistogramVec::new(histogram_opts!(name, help, buckets), labels)?,
    )
}

fn gauge(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<IntGaugeVec, prometheus::Error> {
    registered(
        registry,
        IntGaugeVec::new(Opts::new(format!("{PREFIX}{name}"), help), labels)?,
    )
}

fn floats(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<GaugeVec, prometheus::Error> {
    registered(
        registry,
        GaugeVec::new(Opts::new(format!("{PREFIX}{name}"), help), labels)?,
    )
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
                    CommandCounts {
                        changed: 2,
                        ..CommandCounts::default()
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
