//! Taking over the fields of other managers, and removing the metadata that they left, before an apply.

use std::{sync::Arc, time::Duration};

use cluster::Patch;
use objects::{ObjectRef, takeover, vocabulary::is_marked};
use yaml::Value;

use crate::{Owner, Session};

const ATTEMPTS: u32 = 8;

impl Owner {
    /// Returns the patch that takes a live object over; `None` if there is nothing to take over, or the manifest forbids it.
    pub(crate) fn takeover_patch(&self, manifest: &Value, live: &Value) -> Option<Value> {
        if is_marked(manifest, self.vocabulary.merge) {
            return None;
        }
        takeover::plan(live, &self.manager, &self.takeover)
    }
}

/// Takes an object over, and returns it as it is then; `None` if there was nothing to do. A dry run changes nothing.
pub(crate) async fn take_over(
    session: &Session<'_>,
    manifest: &Value,
    reference: &ObjectRef,
    live: &Arc<Value>,
) -> Result<Option<Arc<Value>>, cluster::Error> {
    if session.options.dry_run {
        return Ok(None);
    }
    let (cluster, owner) = (session.cluster, session.owner);
    let mut current = Arc::clone(live);
    for round in 0..ATTEMPTS {
        let Some(patch) = owner.takeover_patch(manifest, &current) else {
            // Somebody else did it meanwhile.
            return Ok((round > 0).then_some(current));
        };
        session.note_change();
        match cluster
            .patch(reference, &Patch::Json(patch), &owner.manager)
            .await
        {
            Ok(patched) => return Ok(Some(Arc::new(patched))),
            Err(error) if error.is_stale() && round + 1 < ATTEMPTS => {}
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        }
        cluster.pause(Duration::from_millis(20 << round)).await?;
        match cluster.get(reference).await? {
            Some(object) => current = Arc::new(object),
            None => return Ok(None),
        }
    }
    Ok(None)
}
