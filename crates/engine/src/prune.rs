//! Removing what is no longer rendered, or everything.

use std::{collections::HashSet, fmt, time::Duration};

use cluster::Cluster;
use kluctl::{Inclusion, Rendered};
use objects::{
    ObjectId, ObjectRef,
    discriminator::{self, Claim},
    order,
    orphans::{self, Doomed},
};

use crate::{
    Command, CommandResult, Confirm, Error, ObjectError,
    confirm::ABORTED,
    live,
    remove::{self, Removal},
};

/// How to remove.
#[derive(Clone, Default)]
pub struct RemoveOptions<'a> {
    /// The API server does everything but delete.
    pub dry_run: bool,
    /// How long to wait until an object is gone; without it nothing is waited for.
    pub wait: Option<Duration>,
    /// The part of the deployment that is meant.
    pub inclusion: Inclusion,
    /// Who is asked before anything is deleted.
    pub confirm: Option<&'a dyn Confirm>,
    /// Who removes.
    pub claim: Option<&'a Claim>,
    /// Everybody else who deploys. Nothing is removed when one of them uses the same discriminator.
    pub others: &'a [Claim],
}

impl fmt::Debug for RemoveOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoveOptions")
            .field("dry_run", &self.dry_run)
            .finish_non_exhaustive()
    }
}

/// Removes what carries the discriminator, was applied by `kluctl`, is owned by no other object, and is not rendered.
///
/// # Errors
/// When nothing was rendered; when the discriminator is empty, no label value, or used by somebody else (the error names
/// who); when the cluster can't be asked for its state; when the work is cancelled.
pub async fn prune(
    cluster: &Cluster,
    rendered: &Rendered,
    options: &RemoveOptions<'_>,
) -> Result<CommandResult, Error> {
    let refs = live::references(rendered)?;
    // Who prunes a part of a deployment rendered that part, of which nothing may be left.
    if refs.is_empty() && options.inclusion.is_empty() {
        return Err(Error::EmptyRender);
    }
    let discriminator = rendered.target.discriminator.as_deref().unwrap_or_default();
    if discriminator.is_empty() {
        return Err(Error::PruneWithoutDiscriminator);
    }
    check(discriminator, options.claim, options.others)?;
    let removal = Removal {
        discriminator,
        options,
    };
    run(cluster, Command::Prune, &refs, removal).await
}

/// Removes everything that carries the discriminator, was applied by `kluctl`, and is owned by no other object.
///
/// # Errors
/// When the discriminator is empty, no label value, or used by somebody else (the error names who); when the cluster
/// can't be asked for its state; when the work is cancelled.
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
        discriminator,
        options,
    };
    run(cluster, Command::Delete, &[], removal).await
}

fn check(discriminator: &str, claim: Option<&Claim>, others: &[Claim]) -> Result<(), Error> {
    discriminator::check(discriminator)?;
    if let Some(claim) = claim {
        discriminator::check_unique(claim, others)?;
    }
    Ok(())
}

async fn run(
    cluster: &Cluster,
    command: Command,
    refs: &[ObjectRef],
    removal: Removal<'_>,
) -> Result<CommandResult, Error> {
    let mut result = CommandResult::begin(command, removal.options.dry_run, Some(removal.discriminator));
    let snapshot = live::fresh_snapshot(cluster).await?;
    let keep = if refs.is_empty() {
        HashSet::new()
    } else {
        live::identities(refs, &snapshot)
    };
    let candidates =
        live::candidates(cluster, refs, removal.discriminator, &removal.options.inclusion).await?;
    result.warnings.extend(candidates.warnings);
    let mut doomed = orphans::select(&candidates.objects, &keep)?.doomed;
    spare_used_namespaces(&mut doomed, &keep, &mut result);
    if let (Some(confirm), false) = (removal.options.confirm, doomed.is_empty()) {
        let refs: Vec<ObjectRef> = doomed.iter().map(|one| one.reference.clone()).collect();
        if !confirm.deletions(&refs).await {
            result.errors.push(ObjectError::general(ABORTED));
            return Ok(result.finish());
        }
    }
    remove::remove(cluster, doomed, removal, &mut result).await;
    if cluster.cancellation().is_cancelled() {
        return Err(Error::Cancelled);
    }
    Ok(result.finish())
}

/// A namespace that is no longer rendered stays as long as something rendered lives in it: it would go too.
fn spare_used_namespaces(doomed: &mut Vec<Doomed>, keep: &HashSet<ObjectId>, result: &mut CommandResult) {
    let used: HashSet<&str> = keep.iter().filter_map(|id| id.namespace.as_deref()).collect();
    doomed.retain(|one| {
        let spared = order::is_namespace(&one.reference) && used.contains(one.reference.name.as_str());
        if spared {
            let message = "the namespace is no longer part of the deployment, but objects of the deployment are in it: it \
                           is kept";
            result.warnings.push(ObjectError::of(&one.reference, message));
        }
        !spared
    });
}
