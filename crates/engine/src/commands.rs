//! Commands of users, and requests to controllers.
//!
//! Each makes one result with its origin, its options and its outcome. An error of the request itself (no discriminator) is part of the
//! result, so that it is visible wherever results are listed.

use std::{collections::HashSet, time::Duration};

use cluster::Cluster;
use futures::FutureExt as _;
use kluctl::Rendered;
use objects::{ObjectId, ObjectRef};

use crate::{
    Confirm, DeployOptions, Error, PokedImage, RemoveOptions, ValidationPolling,
    deploy::{ABORTED, deploy_as_far_as_possible, does_something},
    discriminator::Claim,
    render::images,
};
use results::{Command, CommandOptions, CommandResult, ObjectError, Origin, ResultObject, ValidateResult};

/// Timeout for the deletion of an object, for commands that wait.
const GONE: Duration = Duration::from_secs(600);

pub struct Project<'a> {
    pub cluster: &'a Cluster,
    pub rendered: &'a Rendered,
    /// Origin of the results. A random id is added if it has none.
    pub origin: Origin,
    pub confirm: Option<&'a dyn Confirm>,
    /// Asked before objects are deleted, also by the prune of a deployment; ignored if [`Self::confirm`] is set.
    pub guard: Option<&'a dyn Confirm>,
    pub claim: Option<&'a Claim>,
    pub others: &'a [Claim],
    /// All objects that may have been deployed before, if they are known ([`apply::OrphanSearch::previous`]).
    pub previous: Option<&'a [ObjectRef]>,
}

impl<'a> Project<'a> {
    #[must_use]
    pub fn new(cluster: &'a Cluster, rendered: &'a Rendered) -> Self {
        Self {
            cluster,
            rendered,
            origin: Origin::default(),
            confirm: None,
            guard: None,
            claim: None,
            others: &[],
            previous: None,
        }
    }

    fn completed(
        &self,
        mut result: CommandResult,
        command: Command,
        options: &DeployOptions,
    ) -> CommandResult {
        result.command = command;
        result.origin = self.origin(&result.objects);
        result.options = CommandOptions {
            no_wait: options.no_wait,
            force_apply: options.force_apply,
            replace_on_error: options.replace_on_error,
            force_replace_on_error: options.force_replace_on_error,
            abort_on_error: options.abort_on_error,
            include_dirs: options.inclusion.include_dirs.clone(),
            exclude_dirs: options.inclusion.exclude_dirs.clone(),
        };
        if !options.show_secrets {
            result.mask_secrets();
        }
        result.finish()
    }

    fn origin(&self, objects: &[ResultObject]) -> Origin {
        let mut origin = self.origin.clone();
        if origin.id.is_empty() {
            origin.id = uuid::Uuid::new_v4().to_string();
        }
        origin.target = self.rendered.target.to_map();
        origin.tree = Some(self.rendered.deployment());
        origin.requested_images = images::listed(self.rendered, objects);
        origin.objects_hash = kluctl::objects_hash(self.rendered.objects());
        origin
    }

    fn removal<'o>(&self, options: &'o DeployOptions) -> RemoveOptions<'o>
    where
        'a: 'o,
    {
        RemoveOptions {
            dry_run: options.dry_run,
            // Controllers, which have a guard, don't hold a pass until everything is gone.
            wait: (!options.no_wait && self.guard.is_none()).then_some(GONE),
            inclusion: options.inclusion.clone(),
            prunes_empty_part: self.guard.is_none(),
            confirm: self.confirm.or(self.guard),
            claim: self.claim,
            others: self.others,
            previous: self.previous,
            kinds: options.kinds.as_ref(),
        }
    }

    fn new_result(&self, command: Command, options: &DeployOptions) -> CommandResult {
        CommandResult::new(
            command,
            options.dry_run,
            self.rendered.target.discriminator.as_deref(),
        )
    }
}

/// Deploys: asks for confirmation of a trial run if [`Project::confirm`] is set, applies, and prunes orphans
/// if `prune` says so.
///
/// # Errors
/// Fails when the state of the cluster can't be read. The result of a cancelled or interrupted deployment lists the completed steps, and
/// nothing is pruned then.
pub async fn deploy(
    project: &Project<'_>,
    options: &DeployOptions,
    prune: bool,
) -> Result<CommandResult, Error> {
    let (cluster, rendered) = (project.cluster, project.rendered);
    if let (Some(confirm), false) = (project.confirm, options.dry_run) {
        let trial = DeployOptions {
            dry_run: true,
            contents: false,
            ..options.clone()
        };
        let trial = deploy_as_far_as_possible(cluster, rendered, &trial).await?;
        let trial = project.completed(trial, Command::Deploy, options);
        if !confirm.changes(&trial).await {
            let mut refused = project.new_result(Command::Deploy, options);
            refused.errors.push(ObjectError::general(ABORTED));
            return Ok(project.completed(refused, Command::Deploy, options));
        }
    }
    let mut result = deploy_as_far_as_possible(cluster, rendered, options).await?;
    if prune && !cluster.cancellation().is_cancelled() {
        prune_after(project, options, &mut result).await?;
    }
    Ok(project.completed(result, Command::Deploy, options))
}

/// Prunes orphans after a deployment without errors: after errors, their replacements may be missing.
async fn prune_after(
    project: &Project<'_>,
    options: &DeployOptions,
    result: &mut CommandResult,
) -> Result<(), Error> {
    if !result.errors.is_empty() {
        let message = "nothing was pruned, because the deployment had errors";
        result.warnings.push(ObjectError::general(message));
        return Ok(());
    }
    if has_no_orphans(project, options, result) {
        return Ok(());
    }
    // The user who was asked about the deployment knows of it.
    let prune_options = RemoveOptions {
        confirm: project.guard,
        ..project.removal(options)
    };
    match crate::prune(project.cluster, project.rendered, &prune_options).await {
        Ok(pruned) => {
            // Objects that were deleted with their namespace are not orphans any more.
            let namespaces: Vec<String> = pruned
                .objects
                .iter()
                .filter(|object| object.deleted && objects::order::is_namespace(&object.reference))
                .map(|object| object.reference.name.clone())
                .collect();
            for object in &mut result.objects {
                object.orphan &= !objects::order::goes_with(&object.reference, &namespaces);
            }
            result.objects.retain(ResultObject::is_telling);
            result.add(pruned);
        }
        Err(error) => note_request_error(result, error)?,
    }
    Ok(())
}

/// Returns true if the search of the deployment itself saw that there is nothing to prune.
fn has_no_orphans(project: &Project<'_>, options: &DeployOptions, result: &CommandResult) -> bool {
    let discriminator = project.rendered.target.discriminator.as_deref();
    options.orphans
        && options.only.is_none()
        && discriminator.is_some_and(|text| !text.is_empty())
        && result.completeness.is_complete()
        && !result.objects.iter().any(|object| object.orphan)
}

pub async fn diff(project: &Project<'_>, options: &DeployOptions) -> Result<CommandResult, Error> {
    let options = DeployOptions {
        dry_run: true,
        ..options.clone()
    };
    let result = deploy_as_far_as_possible(project.cluster, project.rendered, &options).await?;
    if project.cluster.cancellation().is_cancelled() {
        return Err(Error::Cancelled);
    }
    Ok(project.completed(result, Command::Diff, &options))
}

pub async fn prune(project: &Project<'_>, options: &DeployOptions) -> Result<CommandResult, Error> {
    let pruned = crate::prune(project.cluster, project.rendered, &project.removal(options)).await;
    removed(project, Command::Prune, pruned, options)
}

/// Removes everything that carries the discriminator; default: the target's.
pub async fn delete(
    project: &Project<'_>,
    discriminator: Option<&str>,
    options: &DeployOptions,
) -> Result<CommandResult, Error> {
    let discriminator = discriminator.or(project.rendered.target.discriminator.as_deref());
    let deleted = crate::delete(
        project.cluster,
        discriminator.unwrap_or_default(),
        &project.removal(options),
    )
    .await;
    removed(project, Command::Delete, deleted, options)
}

fn removed(
    project: &Project<'_>,
    command: Command,
    removed: Result<CommandResult, Error>,
    options: &DeployOptions,
) -> Result<CommandResult, Error> {
    // Results of removals don't say whether the command waited.
    let options = &DeployOptions {
        no_wait: false,
        ..options.clone()
    };
    let mut result = match removed {
        Ok(result) => result,
        Err(error) => {
            let mut result = project.new_result(command, options);
            note_request_error(&mut result, error)?;
            return Ok(project.completed(result, command, options));
        }
    };
    // The project's target, whatever was removed.
    result
        .discriminator
        .clone_from(&project.rendered.target.discriminator);
    crate::listing::list_rendered(
        &mut result,
        project.rendered,
        &apply::LiveObjects::default(),
        options,
    );
    Ok(project.completed(result, command, options))
}

fn note_request_error(result: &mut CommandResult, error: Error) -> Result<(), Error> {
    match error {
        Error::PruneWithoutDiscriminator
        | Error::DeleteWithoutDiscriminator
        | Error::EmptyRender
        | Error::Object(_)
        | Error::Discriminator(_) => {
            result.is_empty_render |= matches!(error, Error::EmptyRender);
            result.errors.push(ObjectError::general(error.to_string()));
            Ok(())
        }
        other => Err(other),
    }
}

/// Replaces the requested images in running objects.
pub async fn poke_images(project: &Project<'_>, options: &DeployOptions) -> Result<CommandResult, Error> {
    let images = &PokedImage::requested(project.rendered);
    if let (Some(confirm), false) = (project.confirm, options.dry_run) {
        let trial = DeployOptions {
            dry_run: true,
            contents: false,
            ..options.clone()
        };
        let trial = crate::poke_images(project.cluster, project.rendered, images, &trial)
            .boxed()
            .await?;
        if !confirm
            .changes(&project.completed(trial, Command::PokeImages, options))
            .await
        {
            let mut refused = project.new_result(Command::PokeImages, options);
            refused.errors.push(ObjectError::general(ABORTED));
            return Ok(project.completed(refused, Command::PokeImages, options));
        }
    }
    let result = crate::poke_images(project.cluster, project.rendered, images, options)
        .boxed()
        .await?;
    Ok(project.completed(result, Command::PokeImages, options))
}

/// Checks that all objects exist and are ready, repeatedly until they are or the timeout ends.
pub async fn validate(
    project: &Project<'_>,
    polling: Option<ValidationPolling>,
    attempt: impl FnMut(&ValidateResult),
) -> Result<ValidateResult, Error> {
    let once = ValidationPolling {
        limit: Duration::ZERO,
        pause: Duration::from_secs(1),
    };
    let polling = polling.unwrap_or(once);
    let mut result = crate::validate_until(project.cluster, project.rendered, polling, attempt).await?;
    result.origin = project.origin(&[]);
    Ok(result)
}

/// Checks once that all objects exist and are ready, but those that are known to be ready because they were applied a moment ago.
pub async fn validate_besides(
    project: &Project<'_>,
    ready: &HashSet<ObjectId>,
) -> Result<ValidateResult, Error> {
    let mut result = crate::validate_besides(project.cluster, project.rendered, ready).await?;
    result.origin = project.origin(&[]);
    Ok(result)
}

/// Returns true if a deployment of this project has nothing to do.
#[must_use]
pub fn is_empty(rendered: &Rendered) -> bool {
    !does_something(rendered)
}
