//! Passes over new commits or artifacts whose changes are elsewhere: the last render would have read the same from them.
//!
//! In a repository of many projects, a commit is new for them all. A pass that left nothing to do has a record of what its render read. If
//! the new files answer the same, the render would be the same, and the pass ends with the new commit in the status, without an event.

use api::kluctl::gitops::{KluctlDeployment, KluctlDeploymentStatus};
use engine::SshConnections;
use kluctl::FetchedSource;
use runtime::{Outcome, Pass, Requeue};

use super::{Controller, key, requests, settled::SettledRead};
use crate::common::settled::{are_unchanged, holds, wishes};

impl Controller {
    /// Returns the outcome of a pass that is due because of a new commit or artifact alone, and whose render would be the last one. `None`
    /// in all other cases, also if the source can't be read: a complete pass says why.
    pub(super) async fn unaffected(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        ssh: &SshConnections,
    ) -> Option<Outcome<KluctlDeploymentStatus>> {
        let (object, key) = (pass.object, key(pass.object));
        let read = self.settled.unchanged(&key, self.known_objects())?;
        if read.wishes != wishes(object) || requests::is_pending(object) {
            return None;
        }
        let requeue = Requeue::Interval(read.until_due()?);
        let mut status = object.status.clone()?;
        if status.observed_commit != read.commit {
            return None;
        }
        if !are_unchanged(&read.objects, &pass.slot, read.timeout).await {
            return None;
        }
        let fetched = tokio::select! {
            fetched = self.same_for_render(pass, &read, ssh) => fetched?,
            () = pass.superseded.cancelled() => return None,
        };
        let revision = fetched.revision?;
        tracing::info!(
            revision,
            "the changes of the new commit are elsewhere: nothing is rendered"
        );
        status.observed_commit.clone_from(&fetched.commit);
        let now = SettledRead {
            revision,
            head: None,
            commit: fetched.commit,
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

    /// Fetches the source, and returns it if it has another revision from which the last render would have read the same.
    async fn same_for_render(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        read: &SettledRead,
        ssh: &SshConnections,
    ) -> Option<FetchedSource> {
        let record = read.record.clone()?;
        let fetching = engine::fetch_project(
            read.address.clone(),
            &read.external,
            &self.rendering,
            ssh,
            &pass.cancel,
        );
        let fetching = tokio::time::timeout(read.timeout, fetching);
        let fetched = pass.slot.waiting(fetching).await.ok()?.ok()?;
        if fetched
            .revision
            .as_ref()
            .is_none_or(|revision| *revision == read.revision)
        {
            return None;
        }
        let same = holds(record, fetched.tree.clone(), &pass.cancel).await;
        same.then_some(fetched)
    }
}
