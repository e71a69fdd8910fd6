//! Deletion of single objects within a run.

use std::time::Duration;

use cluster::{Cluster, DeleteOptions, Deleted, ResourceKind};
use objects::{ObjectRef, meta};

use crate::Session;

const GONE_TIMEOUT: Duration = Duration::from_secs(600);
/// Attempts at an object that is created again each time.
const ATTEMPTS: u32 = 5;

impl Session<'_> {
    /// Deletes an object and waits until it is gone; returns false if it did not exist.
    ///
    /// # Errors
    /// If the API server refuses or can't be reached, or the object is still there after ten minutes.
    pub async fn delete(&self, reference: &ObjectRef) -> Result<bool, cluster::Error> {
        let dry_run = self.options.dry_run;
        if dry_run && self.is_pretended_gone(reference) {
            return Ok(false);
        }
        self.note_change();
        for _ in 0..ATTEMPTS {
            let Some(object) = self.cluster.get(reference).await? else {
                return Ok(false);
            };
            let uid = meta::uid(&object);
            let options = DeleteOptions {
                dry_run,
                uid,
                resource_version: None,
                ..DeleteOptions::default()
            };
            match self.cluster.delete(reference, options).await? {
                Deleted::Changed => {}
                _ if dry_run => {
                    self.pretend_gone(reference);
                    return Ok(true);
                }
                _ => {
                    self.cluster.wait_gone(reference, uid, GONE_TIMEOUT).await?;
                    return Ok(true);
                }
            }
        }
        Err(cluster::Error::Malformed {
            what: format!("delete {reference}"),
            reason: "the object is created anew all the time".to_owned(),
        })
    }
}

/// Returns the references of the object with a name in each kind of a group, with a name, or both; none if no such kind is
/// served. The namespace is left out for kinds without one.
pub async fn resolve_kinds(
    cluster: &Cluster,
    group: Option<&str>,
    kind: Option<&str>,
    namespace: Option<&str>,
    name: &str,
) -> Result<Vec<ObjectRef>, cluster::Error> {
    let kinds = cluster.kinds(group, kind).await?;
    let reference = |kind: &ResourceKind| ObjectRef {
        group: kind.group.clone(),
        version: kind.version.clone(),
        kind: kind.kind.clone(),
        namespace: namespace.filter(|_| kind.namespaced).map(str::to_owned),
        name: name.to_owned(),
    };
    Ok(kinds.iter().map(reference).collect())
}
