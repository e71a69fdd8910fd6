//! Removal of objects that are no longer rendered, or of all.

use std::{collections::BTreeMap, fmt, time::Duration};

use apply::{Confirmation, DeletionOptions, OrphanSearch, Owner, SearchedKinds};
use cluster::Cluster;
use kluctl::{Inclusion, Rendered};
use objects::ObjectRef;
use yaml::Value;

use super::{
    confirm::{ABORTED, Confirm},
    discriminator::{self, Claim},
    live,
    owner::{labelled, owner},
    words,
};
use crate::Error;
use results::{Command, CommandResult, ObjectError, ResultObject};

#[derive(Clone, Default)]
pub struct RemoveOptions<'a> {
    pub dry_run: bool,
    /// Timeout for the end of each deleted object; if absent, nothing is waited for.
    pub wait: Option<Duration>,
    pub inclusion: Inclusion,
    /// If set, [`prune`] removes all objects of a part that renders none, as kluctl does. A person who names the part wants that; for a
    /// controller it may be a mistake.
    pub prunes_empty_part: bool,
    pub confirm: Option<&'a dyn Confirm>,
    pub claim: Option<&'a Claim>,
    /// All other deployments. Nothing is removed if one of them uses the same discriminator.
    pub others: &'a [Claim],
    /// All objects that may have been deployed before, if they are known ([`apply::OrphanSearch::previous`]).
    pub previous: Option<&'a [ObjectRef]>,
    /// The only kinds that may have orphans, if they are known ([`apply::OrphanSearch::kinds`]).
    pub kinds: Option<&'a SearchedKinds>,
}

impl fmt::Debug for RemoveOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoveOptions")
            .field("dry_run", &self.dry_run)
            .finish_non_exhaustive()
    }
}

/// Removes objects that carry the discriminator, were applied by `kluctl`, are owned by no other object, and are not
/// rendered. The result says if the search for them was complete.
///
/// # Errors
/// Fails when nothing was rendered and there are objects to remove; the discriminator is empty, not a label value, or used by another deployment
/// (the error names it); discovery fails; or the work is cancelled.
pub async fn prune(
    cluster: &Cluster,
    rendered: &Rendered,
    options: &RemoveOptions<'_>,
) -> Result<CommandResult, Error> {
    let discriminator = rendered.target.discriminator.as_deref().unwrap_or_default();
    prune_discriminator(cluster, rendered, discriminator, options).await
}

/// Removes objects that carry another discriminator than the rendered ones, as [`prune`] does, after the discriminator of a
/// deployment changed.
pub async fn prune_discriminator(
    cluster: &Cluster,
    rendered: &Rendered,
    discriminator: &str,
    options: &RemoveOptions<'_>,
) -> Result<CommandResult, Error> {
    let refs = live::references(rendered)?;
    if discriminator.is_empty() {
        return Err(Error::PruneWithoutDiscriminator);
    }
    check(discriminator, options.claim, options.others)?;
    let removal = Removal {
        command: Command::Prune,
        refs: &refs,
        discriminator: Some(discriminator),
        owner: owner(Some(discriminator)),
        refuses_orphans: refs.is_empty() && (options.inclusion.is_empty() || !options.prunes_empty_part),
    };
    remove(cluster, &removal, options).await
}

/// Removes all objects that carry the discriminator, were applied by `kluctl`, and are owned by no other object. The result
/// says if the search for them was complete.
///
/// # Errors
/// Fails when the discriminator is empty, not a label value, or used by another deployment (the error names it);
/// discovery fails; or the work is cancelled.
pub async fn delete(
    cluster: &Cluster,
    discriminator: &str,
    options: &RemoveOptions<'_>,
) -> Result<CommandResult, Error> {
    if discriminator.is_empty() {
        return Err(Error::DeleteWithoutDiscriminator);
    }
    check(discriminator, options.claim, options.others)?;
    let removal = Removal {
        command: Command::Delete,
        refs: &[],
        discriminator: Some(discriminator),
        owner: owner(Some(discriminator)),
        refuses_orphans: false,
    };
    remove(cluster, &removal, options).await
}

/// Removes all objects that carry all of these labels and no discriminator, were applied by `kluctl`, and are owned by no other
/// object, as releases without discriminators deployed them. The result says if the search for them was complete.
///
/// # Errors
/// Fails when there are no labels, or one is invalid; discovery fails; or the work is cancelled.
pub async fn delete_labelled(
    cluster: &Cluster,
    labels: &BTreeMap<String, String>,
    options: &RemoveOptions<'_>,
) -> Result<CommandResult, Error> {
    let removal = Removal {
        command: Command::Delete,
        refs: &[],
        discriminator: None,
        owner: labelled(labels),
        refuses_orphans: false,
    };
    remove(cluster, &removal, options).await
}

struct Removal<'a> {
    command: Command,
    refs: &'a [ObjectRef],
    discriminator: Option<&'a str>,
    owner: Owner,
    /// True if it fails when there is anything to remove.
    refuses_orphans: bool,
}

fn check(discriminator: &str, claim: Option<&Claim>, others: &[Claim]) -> Result<(), Error> {
    discriminator::check(discriminator)?;
    if let Some(claim) = claim {
        discriminator::check_unique(claim, others)?;
    }
    Ok(())
}

async fn remove(
    cluster: &Cluster,
    removal: &Removal<'_>,
    options: &RemoveOptions<'_>,
) -> Result<CommandResult, Error> {
    let (owner, refs) = (&removal.owner, removal.refs);
    let mut result = CommandResult::new(removal.command, options.dry_run, removal.discriminator);
    let is_included = |object: &Value| live::includes(&options.inclusion, object);
    let search = OrphanSearch {
        filter: Some(&is_included),
        previous: options.previous,
        kinds: options.kinds,
    };
    let found = apply::find_orphans(cluster, owner, refs, search).await?;
    if removal.refuses_orphans && !found.orphans.is_empty() {
        return Err(Error::EmptyRender);
    }
    result
        .warnings
        .extend(live::listing_warnings(&found.gaps, found.restriction));
    result.completeness = found.completeness;
    result.warnings.extend(found.used_namespaces.iter().map(|namespace| {
        let message = "the namespace is no longer part of the deployment, but objects of the deployment are in it: it \
                       is kept";
        ObjectError::of(namespace, message)
    }));
    if let (Some(confirm), false) = (options.confirm, found.orphans.is_empty()) {
        let refs: Vec<ObjectRef> = found.orphans.iter().map(|one| one.reference.clone()).collect();
        if !confirm.deletions(&refs).await {
            result.errors.push(ObjectError::general(ABORTED));
            return Ok(result.finish());
        }
    }
    let deletion = DeletionOptions {
        dry_run: options.dry_run,
        confirmation: options.wait.map_or(Confirmation::None, Confirmation::Each),
        ..DeletionOptions::default()
    };
    for outcome in apply::delete_orphans(cluster, owner, found.orphans, deletion).await {
        match outcome.result {
            Ok(true) => result.objects.push(ResultObject {
                deleted: true,
                ..ResultObject::new(outcome.reference)
            }),
            Ok(false) => {}
            Err(error) => {
                result.errors.push(words::deletion(&outcome.reference, &error));
            }
        }
    }
    if cluster.cancellation().is_cancelled() {
        return Err(Error::Cancelled);
    }
    Ok(result.finish())
}
