//! Passes over new artifacts whose changes are elsewhere: the last render would have read the same from them.
//!
//! In a repository of many projects, a commit changes the artifact of them all. A pass that left nothing to do has a record of what its
//! render read. If the new artifact answers the same, the render would be the same, and the pass ends with the new revision in the
//! status, without an event. If the source publishes hashes of its directories, and they say so, the artifact isn't even downloaded.

use api::kluctl::{KluctlDeployment, KluctlDeploymentStatus};
use references::SourceArtifact;
use runtime::{Outcome, Pass, Requeue};

use super::{Controller, consumer::key, settled::SettledRead, spec};
use crate::common::settled::{are_unchanged, holds, wishes};

impl Controller {
    /// Returns the outcome of a pass that is due because of a new artifact alone, and whose render would be the last one, or because a
    /// deployment has to be noted. `None` in all other cases, also if the artifact can't be read: a complete pass says why.
    pub(super) async fn unaffected(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
    ) -> Option<Outcome<KluctlDeploymentStatus>> {
        let key = key(pass.object);
        let read = self.settled.unchanged(&key, self.known_objects())?;
        if read.wishes != wishes(pass.object) || self.successors.contains(&key) != Some(false) {
            return None;
        }
        if !are_unchanged(&read.objects, &pass.slot, read.timeout).await {
            return None;
        }
        if let Some(noted) = self.noted(pass.object, &read) {
            return Some(noted);
        }
        let artifact = tokio::select! {
            artifact = self.same_for_render(pass, &read) => artifact?,
            () = pass.superseded.cancelled() => return None,
        };
        let mut status = pass.object.status.clone()?;
        tracing::info!(
            revision = artifact.revision(),
            "the changes of the new artifact are elsewhere: nothing is rendered"
        );
        status.last_attempted_revision = Some(artifact.revision().to_owned());
        let requeue = Requeue::Interval(read.interval);
        let now = SettledRead {
            artifact,
            ..SettledRead::clone(&read)
        };
        self.settled.replace(&key, &read, now);
        Some(Outcome {
            status,
            requeue,
            events: Vec::new(),
            fault: None,
        })
    }

    /// Returns the new artifact of a source, if the last render would have read the same from it.
    async fn same_for_render(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        read: &SettledRead,
    ) -> Option<SourceArtifact> {
        let object = pass.object;
        let record = read.record.clone()?;
        let attempted = object.status.as_ref()?.last_attempted_revision.as_deref();
        if attempted != Some(read.artifact.revision()) {
            return None;
        }
        let newest = self.references.newest_artifact(object, attempted);
        let artifact = pass.slot.waiting(newest).await.ok()?;
        let is_same_source = artifact.source == read.artifact.source && artifact.git == read.artifact.git;
        if !is_same_source || artifact.revision() == read.artifact.revision() {
            return None;
        }
        let both = (&read.artifact, &artifact);
        let is_same = self.references.is_same_for(object, both, &record);
        if pass.slot.waiting(is_same).await {
            return Some(artifact);
        }
        let limit = spec::timeout(&object.spec) / 3;
        let files = self.references.files(object, &artifact, limit, &pass.cancel);
        let files = pass.slot.waiting(files).await.ok()?;
        holds(record, files, &pass.cancel).await.then_some(artifact)
    }
}
