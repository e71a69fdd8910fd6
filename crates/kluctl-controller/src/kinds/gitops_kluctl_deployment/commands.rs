//! The commands of a pass: deploy, prune, diff and validate.

use std::{collections::HashSet, sync::Arc, time::Instant};

use api::{
    Reason,
    kluctl::gitops::{KluctlDeployment, KluctlDeploymentStatus},
};
use cluster::Gap;
use deployer::{
    LabelledObject,
    idle::{
        LastDeployment,
        search::{self, Occasion, SearchFacts},
    },
};
use engine::{
    DeployOptions, Error, SearchedKinds,
    commands::{self, Project},
};
use jiff::Timestamp;
use objects::{ObjectId, ObjectRef};
use results::{CommandResult, Counts, Inventory, ObjectError, deployed::gitops as inventory, status_json};
use runtime::{ObjectKey, Pass, Severity};
use serde_json::Value;

use super::{build::Built, command_event::CommandEvent, controller::Controller, guard::Guard, spec};
use crate::metrics::Command;

pub(super) struct Done {
    pub(super) id: String,
    pub(super) stored: bool,
    /// The error of the command, as requests have it.
    pub(super) error: Option<String>,
}

/// The state of the cluster after a deployment of everything without errors: it need not be read again in the same pass.
pub(super) struct AfterDeployment {
    ready: HashSet<ObjectId>,
    /// Objects that are no longer rendered, and still there.
    pub(super) orphans: Vec<ObjectRef>,
}

pub(super) struct Commands<'a, 'p> {
    pub(super) controller: &'a Controller,
    pub(super) pass: &'a Pass<'p, KluctlDeployment>,
    /// The object with the overrides of a request.
    pub(super) object: &'a KluctlDeployment,
    pub(super) built: &'a Built,
    pub(super) key: ObjectKey,
    pub(super) status: KluctlDeploymentStatus,
    pub(super) events: Vec<CommandEvent>,
    /// The error that ended a command as a whole.
    pub(super) failure: Option<(Reason, String)>,
    pub(super) after_deployment: Option<AfterDeployment>,
    /// True if orphans may be left because a kind could not be listed, other than for missing rights.
    pub(super) unpruned: bool,
    /// True if the deployment ended with an error as a whole.
    pub(super) deploy_failed: bool,
    pub(super) validated: bool,
}

impl<'a> Commands<'a, '_> {
    pub(super) fn options(&self) -> DeployOptions {
        let spec = &self.object.spec;
        DeployOptions {
            dry_run: self.controller.is_dry_run(self.object),
            force_apply: spec.force_apply,
            replace_on_error: spec.replace_on_error,
            force_replace_on_error: spec.force_replace_on_error,
            no_wait: spec.no_wait,
            abort_on_error: spec.abort_on_error,
            inclusion: spec::inclusion(spec),
            contents: true,
            previous: self.past().objects(),
            ..DeployOptions::default()
        }
    }

    pub(super) fn guard(&self) -> Guard<'a> {
        let discriminator = self.built.rendered.target.discriminator.as_deref();
        let guard = Guard::new(
            self.controller,
            self.object,
            &self.built.cluster,
            &self.built.identity,
            discriminator.unwrap_or_default(),
        );
        guard.at(&self.built.read)
    }

    pub(super) fn project<'g>(&self, guard: &'g Guard<'g>, previous: Option<&'g [ObjectRef]>) -> Project<'g>
    where
        'a: 'g,
    {
        let mut project = Project::new(&self.built.cluster, &self.built.rendered);
        project.origin = self.built.origin.clone();
        project.guard = Some(guard);
        project.previous = previous;
        project
    }

    /// Deploys, and prunes if the spec says so. The result of a request is stored in any case.
    pub(super) async fn deploy(&mut self, is_request: bool) -> Result<Done, Error> {
        let (memory, started) = (&self.controller.parts.states, Instant::now());
        let dry_run = self.controller.is_dry_run(self.object);
        let last = match dry_run {
            true => memory.last_deployment(&self.key),
            false => memory.begin_deployment(&self.key),
        };
        let occasion = match is_request {
            true => Occasion::Request,
            false => self.occasion(),
        };
        let indexed = self.indexed().await;
        let kinds = self.searched(occasion, &last, indexed.as_deref());
        let options = DeployOptions {
            kinds: kinds.clone(),
            seen: last.known().map(|known| Arc::clone(&known.objects)),
            ..self.options()
        };
        let metrics = &self.controller.metrics;
        metrics.deploy_starts(&self.key, Timestamp::now().as_duration().as_secs_f64());
        let mut result = {
            let (guard, previous) = (self.guard(), self.past().objects());
            let project = self.project(&guard, previous.as_deref());
            let mut result = if spec::pokes_images(&self.object.spec) {
                commands::poke_images(&project, &options).await?
            } else {
                commands::deploy(&project, &options, self.object.spec.prune).await?
            };
            // A new pass starts with the present revision of the source. Somebody who asked for this deployment gets its result.
            if guard.is_outdated() && !is_request {
                return Err(Error::Interrupted);
            }
            guard.explain(&mut result);
            result
        };
        let command = Command::deploying(spec::pokes_images(&self.object.spec));
        metrics.done(&self.key, command, started.elapsed(), result.counts());
        let versions = std::mem::take(&mut result.versions);
        match dry_run {
            true => drop(memory.take_seen(&self.key)),
            false => memory.compared(&self.key, versions),
        }
        if !dry_run && result.errors.is_empty() && result.completeness.is_complete() {
            memory.end_deployment(&self.key, last.known().filter(|_| kinds.is_some()));
            memory.searched_orphans(&self.key);
            self.after_deployment = self.after_deployment(&mut result);
        }
        let stored = self.controller.store_command(&result, is_request).await;
        let prunes = self.object.spec.prune && !spec::pokes_images(&self.object.spec);
        let is_failure = |gap: &Gap| !gap.forbidden;
        self.unpruned = prunes && !dry_run && result.completeness.gaps().iter().any(is_failure);
        let replaces = prunes && self.sees_all(&result);
        self.note(&result, options.dry_run, replaces);
        // A new pass begins with the newest spec. Somebody who asked for this deployment gets its result.
        if result.interrupted && !is_request {
            return Err(Error::Interrupted);
        }
        Ok(self.done(&result, stored))
    }

    /// Returns the state after a deployment that had no errors and saw everything.
    fn after_deployment(&self, result: &mut CommandResult) -> Option<AfterDeployment> {
        let ready = std::mem::take(&mut result.ready);
        let left = result.objects.iter().filter(|object| object.orphan);
        let orphans = left.map(|object| object.reference.clone()).collect();
        (!spec::pokes_images(&self.object.spec)).then_some(AfterDeployment { ready, orphans })
    }

    /// Returns the occasion of a search that nobody asked for.
    pub(super) fn occasion(&self) -> Occasion {
        let object = self.pass.object;
        let status = object.status.as_ref();
        let is_observed =
            status.is_some_and(|status| status.observed_generation == object.metadata.generation);
        match is_observed && self.was_deployed() {
            true => Occasion::Revision,
            false => Occasion::Other,
        }
    }

    /// Returns true if there was a deployment, and the last one had no errors.
    fn was_deployed(&self) -> bool {
        let status = self.pass.object.status.as_ref();
        let result = status.and_then(|status| status.last_deploy_result.as_ref());
        let errors = |result: &Value| result.get("errors").and_then(Value::as_array).map_or(0, Vec::len);
        result.is_some_and(|result| errors(result) == 0)
    }

    /// Returns the objects with the discriminator that the index knows; `None` without an index of the cluster.
    pub(super) async fn indexed(&self) -> Option<Vec<LabelledObject>> {
        let value = self.built.rendered.target.discriminator.as_deref()?;
        // The index covers the controller's own cluster.
        if value.is_empty() || self.object.spec.kube_config.is_some() {
            return None;
        }
        self.controller.parts.index.objects(value).await
    }

    /// Returns the kinds that may have orphans; `None` if every kind may.
    pub(super) fn searched(
        &self,
        occasion: Occasion,
        last: &LastDeployment,
        indexed: Option<&[LabelledObject]>,
    ) -> Option<SearchedKinds> {
        let rendered = self.built.references();
        let spec = &self.object.spec;
        // The status names kinds and namespaces only; the memory of the last deployment has its objects.
        let previous = match last.known() {
            Some(_) => Some(Vec::new()),
            None => self.past().objects(),
        };
        search::kinds(&SearchFacts {
            occasion,
            pruned: spec.prune
                && !spec::pokes_images(spec)
                && spec::inclusion(spec).is_empty()
                && self.was_deployed(),
            last,
            indexed,
            previous: previous.as_deref(),
            rendered: &rendered,
        })
    }

    /// Deletes orphans. Its result replaces the result of the last deployment, too, as tools expect it.
    pub(super) async fn prune(&mut self) -> Result<Done, Error> {
        let (options, started) = (self.options(), Instant::now());
        let mut result = {
            let (guard, previous) = (self.guard(), self.past().objects());
            let project = self.project(&guard, previous.as_deref());
            let options = DeployOptions {
                no_wait: true,
                ..options
            };
            let mut result = commands::prune(&project, &options).await?;
            guard.explain(&mut result);
            result
        };
        result
            .errors
            .extend(result.completeness.message().map(ObjectError::general));
        let metrics = &self.controller.metrics;
        metrics.done(&self.key, Command::Prune, started.elapsed(), result.counts());
        if !result.errors.is_empty() {
            self.controller.parts.states.request_sweep(&self.key);
        }
        let stored = self.controller.store_command(&result, true).await;
        let replaces = self.sees_all(&result);
        self.note(&result, result.dry_run, replaces);
        Ok(self.done(&result, stored))
    }

    /// Returns the objects that may have been deployed before.
    pub(super) fn past(&self) -> Inventory {
        inventory::of(self.pass.object.status.as_ref())
    }

    /// Returns true if a prune deleted all orphans.
    fn sees_all(&self, result: &CommandResult) -> bool {
        result.errors.is_empty()
            && result.completeness.is_complete()
            && spec::inclusion(&self.object.spec).is_empty()
    }

    /// Notes the result of a deployment, or a prune, with the objects that may be deployed now.
    fn note(&mut self, result: &CommandResult, dry_run: bool, replaces: bool) {
        let rendered = self.built.references();
        let deployed = if dry_run { &[][..] } else { &rendered };
        let inventory = inventory::after(self.past(), deployed, replaces && !dry_run);
        let summary = status_json::bounded(result.summary().to_json());
        inventory::note(&mut self.status, summary, &inventory);
        if result.is_empty_render {
            self.failure = Some((Reason::EmptyRender, Error::EmptyRender.to_string()));
        }
        if !dry_run {
            inventory::end(&mut self.status);
        }
    }

    pub(super) async fn diff(&mut self) -> Result<Done, Error> {
        let result = {
            let (guard, previous) = (self.guard(), self.past().objects());
            commands::diff(&self.project(&guard, previous.as_deref()), &self.options()).await?
        };
        let stored = self.controller.store_command(&result, true).await;
        self.status.last_diff_result = Some(status_json::bounded(result.summary().to_json()));
        Ok(self.done(&result, stored))
    }

    fn done(&mut self, result: &CommandResult, stored: bool) -> Done {
        for warning in &result.warnings {
            tracing::info!(%warning, "{}", result.command.as_str());
        }
        for error in &result.errors {
            tracing::info!(%error, "{}", result.command.as_str());
        }
        let failed = !result.errors.is_empty();
        let severity = if failed { Severity::Error } else { Severity::Info };
        let text = match result.failure() {
            Some(failure) => format!("{} failed. {failure}", result.command.as_str()),
            None => result.message(),
        };
        self.events.push(CommandEvent {
            severity,
            message: text,
        });
        let count = result.errors.len();
        Done {
            id: result.origin.id.clone(),
            stored,
            error: failed.then(|| format!("{} failed with {count} errors.", result.command.as_str())),
        }
    }

    pub(super) async fn validate(&mut self, is_request: bool) -> Result<Done, Error> {
        let started = Instant::now();
        let result = {
            let (guard, previous) = (self.guard(), self.past().objects());
            let ready = self.after_deployment.as_ref().map(|fresh| fresh.ready.clone());
            let project = self.project(&guard, previous.as_deref());
            commands::validate_besides(&project, &ready.unwrap_or_default()).await?
        };
        let counted = Counts {
            errors: result.errors.len(),
            warnings: result.warnings.len(),
            ..Counts::default()
        };
        let controller = self.controller;
        controller
            .metrics
            .done(&self.key, Command::Validate, started.elapsed(), counted);
        controller.parts.states.validated(&self.key);
        let value = status_json::bounded(result.to_value().to_json());
        let is_same = status_json::is_same(self.status.last_validate_result.as_ref(), &value);
        let stored = match is_request || !is_same {
            true => self.controller.store_validation(&result).await,
            false => false,
        };
        // Results that say the same keep their time, so that nothing is written.
        if !is_same || is_request {
            self.status.last_validate_result = Some(value);
        }
        let count = result.errors.len();
        Ok(Done {
            id: result.origin.id.clone(),
            stored,
            error: (count > 0).then(|| format!("validate failed with {count} errors.")),
        })
    }
}
