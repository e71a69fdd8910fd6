//! Executes the plan: deploys or compares, prunes, validates.

mod done;
mod previous;
mod prune;

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};

use api::{Fault, Reason, kluctl::KluctlDeployment};
use deployer::{
    idle::{
        LastDeployment,
        search::{self, Occasion, SearchFacts},
    },
    key, retried_after,
};
use engine::{
    AppliedVersions, CompareOptions, Completeness, DeployOptions, Error, PokedImage, SearchedKinds,
};
use jiff::Timestamp;
use objects::{ObjectId, ObjectRef};
use results::{CommandResult, Counts, Inventory, ObjectError, deployed::flux as inventory};
use runtime::{ObjectKey, Pass};

use self::done::{command_done, refused, validate_done};
use super::{
    build::Built,
    controller::Controller,
    plan::{self, ApplyReason, Decision, Deploy, Prune, Validate},
    report::{self, CommandDone},
    source::ProjectSource,
    spec,
};
use crate::metrics::Command;

/// Time for which the answers to reads and applies count as the current state of the objects.
const JUST_NOW: Duration = Duration::from_secs(10);
/// Delay before the next pass if the object or its source changed during a deployment.
const START_OVER: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub struct CommandResults {
    pub(super) deploy: Option<CommandDone>,
    pub(super) prune: Option<CommandDone>,
    pub(super) validate: Option<CommandDone>,
    /// The kinds and namespaces of objects that may be deployed now, if that may have changed.
    pub(super) inventory: Option<Inventory>,
    /// Previous discriminators whose objects may be left.
    pub(super) previous: Vec<String>,
    /// Objects with previous discriminators that were found and left.
    pub(super) left: Vec<String>,
    /// True if a deployment was due, found everything deployed, and is to be noted.
    pub(super) confirmed: bool,
}

impl CommandResults {
    pub(super) fn has_failed(&self) -> bool {
        failed(&self.deploy) || failed(&self.prune)
    }
}

struct Deployment<'a> {
    controller: &'a Controller,
    object: &'a KluctlDeployment,
    key: &'a ObjectKey,
    artifact: &'a ProjectSource,
    built: &'a Built,
    dry_run: bool,
}

#[derive(Default)]
struct Deployed {
    done: Option<CommandDone>,
    /// Number of orphans; `None` if they were not counted.
    orphans: Option<usize>,
    /// All objects of a deployment that applied all of them, and the orphans that it saw.
    objects: Option<Vec<ObjectRef>>,
    complete: bool,
    /// The kinds that it searched for orphans; all if absent.
    kinds: Option<SearchedKinds>,
    /// Objects that were read or applied a moment ago and are ready.
    ready: HashSet<ObjectId>,
}

impl Controller {
    /// Returns the fault of a pass that ended for something newer, and names that.
    pub(super) async fn superseded_by(
        &self,
        object: &KluctlDeployment,
        source: Option<&ProjectSource>,
    ) -> Fault {
        let artifact = source.and_then(ProjectSource::artifact);
        let newer = match artifact {
            Some(_) => self.references.artifact(object).await.ok(),
            None => None,
        };
        let message =
            match newer.filter(|newer| artifact.is_some_and(|last| last.revision() != newer.revision())) {
                Some(newer) => {
                    format!("superseded by revision {}: starting over", newer.revision())
                }
                _ => "superseded by a change of the object or its source: starting over".to_owned(),
            };
        Fault::wait(START_OVER, Reason::Progressing, message)
    }

    /// Executes the plan. Errors about single objects are part of the results.
    pub(super) async fn deploy(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        artifact: &ProjectSource,
        built: &Built,
        decision: Decision,
    ) -> Result<CommandResults, Fault> {
        let (object, key) = (pass.object, &key(pass.object));
        let dry_run = self.is_dry_run(object);
        let deployment = Deployment {
            controller: self,
            object,
            key,
            artifact,
            built,
            dry_run,
        };
        let deployed = match decision.deploy {
            Deploy::Apply(why) => {
                tracing::info!(?why, revision = artifact.revision(), "deploying");
                deployment.deploy(why).await?
            }
            Deploy::Compare => deployment.compare(decision.prune == Prune::IfSeen).await?,
            Deploy::Nothing => Deployed::default(),
        };
        let mut done = CommandResults {
            confirmed: decision.deploy == Deploy::Compare && self.records_deployments(object),
            inventory: deployment.inventory(&deployed),
            previous: built.previous.clone(),
            deploy: deployed.done,
            ..CommandResults::default()
        };
        if failed(&done.deploy) {
            return Ok(done);
        }
        done.prune = deployment
            .prune(decision.prune, deployed.orphans, deployed.kinds.as_ref())
            .await?;
        if done.prune.is_some() && !failed(&done.prune) && !dry_run {
            done.inventory = Some(deployment.pruned_inventory());
        }
        if failed(&done.prune) {
            self.parts.states.request_sweep(key);
            return Ok(done);
        }
        // Objects that are still rendered have the new discriminator by now.
        if object.spec.prune || deployed.objects.is_some() {
            deployment.prune_previous(&mut done).await?;
            if failed(&done.prune) {
                return Ok(done);
            }
        }
        let changed = done.deploy.is_some() || done.prune.is_some();
        if decision.validate == Validate::Run || (decision.validate == Validate::IfDeployed && changed) {
            done.validate = Some(deployment.validate(&deployed.ready).await?);
        }
        Ok(done)
    }
}

/// Returns the occasion of a search; `why` is the reason of the deployment, if something is deployed.
fn occasion(why: Option<ApplyReason>) -> Occasion {
    match why {
        None | Some(ApplyReason::ObjectsChanged) => Occasion::Revision,
        Some(ApplyReason::Requested) => Occasion::Request,
        Some(ApplyReason::NeverDeployed | ApplyReason::SpecChanged | ApplyReason::LastFailed) => {
            Occasion::Other
        }
    }
}

/// Returns the objects with fields that other managers hold, by the warnings about them.
fn contested_objects(warnings: &[ObjectError]) -> HashSet<ObjectId> {
    let lost = warnings.iter().filter(|warning| warning.lost_field);
    lost.filter_map(|warning| Some(warning.reference.as_ref()?.id()))
        .collect()
}

fn failed(done: &Option<CommandDone>) -> bool {
    done.as_ref().is_some_and(|done| !done.errors.is_empty())
}

impl Deployment<'_> {
    async fn deploy(&self, why: ApplyReason) -> Result<Deployed, Fault> {
        let (memory, started) = (&self.controller.parts.states, Instant::now());
        let last = memory.begin_deployment(self.key);
        let kinds = self.searched(Some(why), &last).await;
        let options = DeployOptions {
            kinds: kinds.clone(),
            seen: last.known().map(|known| Arc::clone(&known.objects)),
            ..self.options()
        };
        let mut result = self.apply(options).await?;
        let ready = std::mem::take(&mut result.ready);
        let everything = spec::deploys_everything(&self.object.spec);
        // A search that could not see everything is repeated by pruning, which reports that.
        let orphans = result.completeness.is_complete().then(|| result.counts().orphans);
        let done = Some(command_done(&result));
        if !self.dry_run {
            memory.note_contested(self.key, contested_objects(&result.warnings));
            memory.compared(self.key, result.versions);
            if result.errors.is_empty() && result.completeness.is_complete() {
                memory.end_deployment(self.key, last.known().filter(|_| kinds.is_some()));
            }
        }
        Ok(Deployed {
            done,
            orphans,
            kinds,
            ready: just_now(started, ready),
            complete: everything && result.completeness.is_complete(),
            objects: Some(
                result
                    .objects
                    .into_iter()
                    .map(|object| object.reference)
                    .collect(),
            ),
        })
    }

    /// Returns the kinds that may have orphans; `None` if every kind may.
    async fn searched(&self, why: Option<ApplyReason>, last: &LastDeployment) -> Option<SearchedKinds> {
        let (previous, rendered) = (self.previous(), self.built.references());
        let indexed = match self.built.discriminator() {
            // The index covers the controller's own cluster.
            Some(value) if self.object.spec.kube_config.is_none() => {
                self.controller.parts.index.objects(value).await
            }
            _ => None,
        };
        let last_prune = self
            .object
            .status
            .as_ref()
            .and_then(|status| status.last_prune_result.as_ref());
        search::kinds(&SearchFacts {
            occasion: occasion(why),
            pruned: self.object.spec.prune
                && spec::deploys_everything(&self.object.spec)
                && last_prune.is_some()
                && report::failure_of(last_prune).is_none(),
            last,
            indexed: indexed.as_deref(),
            previous: previous.as_deref(),
            rendered: &rendered,
        })
    }

    /// Returns the kinds and namespaces of objects that may be deployed after a deployment: those it saw, and older ones
    /// unless it saw everything. Without it, a kind that may not be listed any more would be forgotten by the next result.
    fn inventory(&self, deployed: &Deployed) -> Option<Inventory> {
        let now = Inventory::of(Some(deployed.objects.as_deref()?));
        if deployed.complete {
            return Some(now);
        }
        Some(now.with(Inventory::of(self.previous().as_deref())))
    }

    /// Returns the kinds and namespaces of objects that are deployed after a prune that left no orphans.
    fn pruned_inventory(&self) -> Inventory {
        let now = Inventory::of(Some(&self.built.references()));
        if spec::deploys_everything(&self.object.spec) {
            return now;
        }
        now.with(Inventory::of(self.previous().as_deref()))
    }

    /// Compares the cluster with the rendered objects, and applies those that differ.
    async fn compare(&self, orphans: bool) -> Result<Deployed, Fault> {
        if spec::pokes_images(&self.object.spec) {
            return self.compare_images(orphans).await;
        }
        let (cluster, rendered) = (&self.built.cluster, &self.built.rendered);
        let inclusion = spec::inclusion(&self.object.spec);
        let (memory, started) = (&self.controller.parts.states, Instant::now());
        let last = memory.last_deployment(self.key);
        let before = memory.take_seen(self.key);
        let kinds = match orphans {
            true => self.searched(None, &last).await,
            false => None,
        };
        let previous = self.previous();
        let options = CompareOptions {
            versions: Some(&before),
            orphans,
            previous: previous.as_deref(),
            force_apply: self.object.spec.force_apply,
            inclusion: Some(&inclusion),
            kinds: kinds.as_ref(),
        };
        let comparison = engine::compare(cluster, rendered, options)
            .await
            .map_err(|error| self.fault(&error))?;
        let is_swept = orphans && kinds.is_none() && comparison.completeness.is_complete();
        let is_swept = is_swept && comparison.orphans.is_empty();
        let (to_apply, mut seen) = (comparison.to_apply(), comparison.versions);
        let mut warnings = comparison.warnings;
        for problem in comparison.errors.iter().chain(&warnings) {
            tracing::info!(%problem, "comparing");
        }
        let mut deployed = Deployed {
            done: None,
            orphans: orphans.then(|| at_least(comparison.orphans.len(), &comparison.completeness)),
            kinds,
            ..Deployed::default()
        };
        if !to_apply.is_empty() {
            tracing::info!(
                objects = to_apply.len(),
                "the cluster is not as rendered: correcting it"
            );
            let result = self
                .apply(DeployOptions {
                    only: Some(to_apply),
                    ..self.options()
                })
                .await?;
            // Fields that others own differ for good, and applying it again changes nothing.
            if !result.is_unchanged() || !result.errors.is_empty() {
                deployed.done = Some(command_done(&result));
            }
            warnings.extend(result.warnings);
            seen.extend(result.versions);
        }
        self.note_contested(&before, &seen, &warnings);
        memory.compared(self.key, seen);
        if is_swept {
            memory.swept(self.key);
        }
        deployed.ready = just_now(started, comparison.ready);
        Ok(deployed)
    }

    /// Records the objects with fields that others hold after a comparison: those that it warned of, and those that it did not compare,
    /// because they have the version that they had before.
    fn note_contested(&self, before: &AppliedVersions, seen: &AppliedVersions, warnings: &[ObjectError]) {
        let memory = &self.controller.parts.states;
        let mut contested = memory.contested(self.key);
        contested.retain(|id| before.version(id).is_some() && before.version(id) == seen.version(id));
        contested.extend(contested_objects(warnings));
        memory.note_contested(self.key, contested);
    }

    /// Replaces the images of deployed objects that are not those that the project requests.
    async fn compare_images(&self, orphans: bool) -> Result<Deployed, Fault> {
        let result = self.apply(self.options()).await?;
        self.controller
            .parts
            .states
            .compared(self.key, AppliedVersions::default());
        let is_news = !result.is_unchanged() || !result.errors.is_empty();
        Ok(Deployed {
            done: is_news.then(|| command_done(&result)),
            orphans: orphans.then(|| at_least(result.counts().orphans, &result.completeness)),
            ..Deployed::default()
        })
    }

    async fn apply(&self, options: DeployOptions) -> Result<CommandResult, Fault> {
        let started = Instant::now();
        let metrics = &self.controller.metrics;
        metrics.deploy_starts(self.key, seconds_since_epoch());
        let (cluster, rendered) = (&self.built.cluster, &self.built.rendered);
        let result = if spec::pokes_images(&self.object.spec) {
            let images = PokedImage::requested(rendered);
            engine::poke_images(cluster, rendered, &images, &options).await
        } else {
            engine::deploy(cluster, rendered, &options).await
        };
        let result = match result {
            Ok(result) => result,
            Err(Error::Interrupted) => return Err(self.superseded().await),
            Err(error) => return Err(self.fault(&error)),
        };
        let command = Command::deploying(spec::pokes_images(&self.object.spec));
        metrics.done(self.key, command, started.elapsed(), result.counts());
        for warning in &result.warnings {
            tracing::info!(%warning, "deploying");
        }
        Ok(result)
    }

    fn options(&self) -> DeployOptions {
        let spec = &self.object.spec;
        DeployOptions {
            dry_run: self.dry_run,
            no_wait: spec.no_wait,
            force_apply: spec.force_apply,
            replace_on_error: spec.replace_on_error,
            force_replace_on_error: spec.force_replace_on_error,
            abort_on_error: spec.abort_on_error,
            inclusion: spec::inclusion(spec),
            previous: self.previous(),
            ..DeployOptions::default()
        }
    }

    fn previous(&self) -> Option<Vec<ObjectRef>> {
        inventory::deployed_objects(self.object)
    }

    async fn superseded(&self) -> Fault {
        self.controller
            .superseded_by(self.object, Some(self.artifact))
            .await
    }

    /// Checks that all objects exist and are ready, except for those that just were.
    async fn validate(&self, ready: &HashSet<ObjectId>) -> Result<CommandDone, Fault> {
        let started = Instant::now();
        let (cluster, rendered) = (&self.built.cluster, &self.built.rendered);
        let done = match engine::validate_besides(cluster, rendered, ready).await {
            Ok(result) => validate_done(&result),
            Err(error @ Error::Cancelled) => return Err(self.fault(&error)),
            Err(error) => refused(error.to_string()),
        };
        let counted = Counts {
            errors: done.errors.len(),
            ..Counts::default()
        };
        self.controller
            .metrics
            .done(self.key, Command::Validate, started.elapsed(), counted);
        self.controller.parts.states.validated(self.key);
        Ok(done)
    }

    fn fault(&self, error: &Error) -> Fault {
        retried_after(
            error.fault(Reason::DeployFailed),
            spec::retry_interval(&self.object.spec),
        )
    }
}

/// Returns the number of orphans that a search found. An incomplete one counts as one orphan, so that pruning reports it.
fn at_least(orphans: usize, completeness: &Completeness) -> usize {
    orphans.max(usize::from(!completeness.is_complete()))
}

/// Returns the ready objects, if that was read a moment ago.
fn just_now(read: Instant, ready: HashSet<ObjectId>) -> HashSet<ObjectId> {
    if read.elapsed() < JUST_NOW {
        ready
    } else {
        HashSet::new()
    }
}

fn seconds_since_epoch() -> f64 {
    Timestamp::now().as_duration().as_secs_f64()
}
