//! Removing objects that were selected for it.

use std::time::Duration;

use cluster::{Cluster, DeleteOptions, Deleted};
use futures::{StreamExt as _, stream};
use objects::{
    ObjectRef, annotations, meta, order,
    orphans::{self, Doomed},
};

use crate::{CommandResult, ObjectError, PARALLEL, RemoveOptions, ResultObject};

/// How often an object that others keep changing is decided about anew.
const ATTEMPTS: u32 = 8;

/// How to remove.
#[derive(Clone, Copy)]
pub(crate) struct Removal<'a> {
    /// What every object must still carry when its turn comes.
    pub(crate) discriminator: &'a str,
    /// The options.
    pub(crate) options: &'a RemoveOptions<'a>,
}

/// What became of one object.
enum Fate {
    Removed,
    /// It is gone, another one, or no longer to be removed.
    Left,
}

/// Removes objects: namespaces first, then the rest, apart from what goes with a namespace.
pub(crate) async fn remove(
    cluster: &Cluster,
    doomed: Vec<Doomed>,
    removal: Removal<'_>,
    result: &mut CommandResult,
) {
    let (namespaces, rest): (Vec<_>, Vec<_>) = doomed
        .into_iter()
        .partition(|one| order::is_namespace(&one.reference));
    let removed = remove_all(cluster, namespaces, removal, result).await;
    let names: Vec<String> = removed.into_iter().map(|reference| reference.name).collect();
    // What goes with a namespace is neither deleted nor reported one by one.
    let rest = rest
        .into_iter()
        .filter(|one| !order::goes_with(&one.reference, &names))
        .collect();
    remove_all(cluster, rest, removal, result).await;
}

/// Removes objects, several at once; returns those that were removed.
async fn remove_all(
    cluster: &Cluster,
    doomed: Vec<Doomed>,
    removal: Removal<'_>,
    result: &mut CommandResult,
) -> Vec<ObjectRef> {
    let mut removed = Vec::new();
    let mut work = stream::iter(doomed)
        .map(|one| async move {
            let fate = remove_one(cluster, &one, removal).await;
            (one.reference, fate)
        })
        .buffer_unordered(PARALLEL);
    while let Some((reference, fate)) = work.next().await {
        match fate {
            Ok(Fate::Removed) => {
                result.objects.push(ResultObject {
                    deleted: true,
                    ..ResultObject::new(reference.clone())
                });
                removed.push(reference);
            }
            Ok(Fate::Left) => {}
            Err(error) => {
                result.errors.push(ObjectError::of(
                    &reference,
                    format!("failed to delete {reference}: {error}"),
                ));
            }
        }
    }
    removed
}

/// Removes exactly the object that was decided about. When it was changed since, it is read and decided about again.
async fn remove_one(
    cluster: &Cluster,
    doomed: &Doomed,
    removal: Removal<'_>,
) -> Result<Fate, cluster::Error> {
    let mut version = doomed.resource_version.clone();
    for round in 0..ATTEMPTS {
        let options = DeleteOptions {
            dry_run: removal.options.dry_run,
            uid: Some(&doomed.uid),
            resource_version: Some(&version),
        };
        match cluster.delete(&doomed.reference, options).await? {
            Deleted::Yes => {
                if let (Some(limit), false) = (removal.options.wait, removal.options.dry_run) {
                    cluster
                        .wait_gone(&doomed.reference, Some(&doomed.uid), limit)
                        .await?;
                }
                return Ok(Fate::Removed);
            }
            Deleted::AlreadyGone => return Ok(Fate::Removed),
            Deleted::Changed => {}
        }
        let Some(object) = cluster.get(&doomed.reference).await? else {
            return Ok(Fate::Removed);
        };
        let still_ours = meta::uid(&object) == Some(&doomed.uid)
            && meta::label(&object, annotations::DISCRIMINATOR) == Some(removal.discriminator)
            && orphans::spared(&object).is_none();
        let Some(current) = meta::resource_version(&object).filter(|_| still_ours) else {
            return Ok(Fate::Left);
        };
        current.clone_into(&mut version);
        cluster.pause(Duration::from_millis(10 << round)).await?;
    }
    Err(cluster::Error::Malformed {
        what: format!("delete {}", doomed.reference),
        reason: "the object is changed by others all the time: try again later".to_owned(),
    })
}
