//! The stored artifact of an object: observing it, and carrying out the plan for it.

use std::sync::Arc;

use api::{Artifact, Fault};
use artifact::Key;

use super::{Input, SourceReconciler};
use crate::{
    plan::{self, SharedCopy, StoragePlan, StoredArtifact, Tidying},
    shared_store::SharedStore,
    source_kind::SourceKind,
    status::FailedPass,
    stored,
};

struct Observed {
    stored: StoredArtifact,
    /// Knowledge about the copy in the shared store, if there is one.
    copy: Option<SharedCopy>,
}

impl<K: SourceKind> SourceReconciler<K> {
    /// Repairs and tidies the stored artifact of an object; returns it as found, or as restored.
    pub(super) async fn repair(&self, pass: &Input<'_, K>, key: &Key) -> Result<StoredArtifact, FailedPass> {
        let artifact = K::past(pass.object).artifact;
        let repaired = self.repair_artifact(pass, key, artifact.as_ref()).await;
        repaired.map_err(|fault| FailedPass::keeping(artifact, fault))
    }

    async fn repair_artifact(
        &self,
        pass: &Input<'_, K>,
        key: &Key,
        artifact: Option<&Artifact>,
    ) -> Result<StoredArtifact, Fault> {
        // An artifact that was never read by this process is compared with its digest.
        let mut observed = pass.slot.lending(self.observe(key, artifact)).await?;
        let mut plan = plan::storage(&observed.stored, observed.copy);
        if plan == StoragePlan::Restore {
            if self.restore(pass, key, artifact).await? {
                observed = pass.slot.lending(self.observe(key, artifact)).await?;
            }
            // It is tried once.
            let copy = observed.copy.filter(|_| observed.stored.artifact().is_some());
            plan = plan::storage(&observed.stored, copy);
        }
        let stored = observed.stored;
        match (plan, &stored) {
            (StoragePlan::Tidy(tidying), StoredArtifact::Good { artifact, file }) => {
                self.tidy(pass, key, tidying, (artifact, file)).await?;
            }
            (StoragePlan::RemoveCorrupt, _) => {
                let removed = self.with_storage(key, stored.clone(), |storage, key, stored| {
                    stored::remove_corrupt(storage, key, stored);
                    Ok(())
                });
                removed.await?;
            }
            _ => {}
        }
        Ok(stored)
    }

    /// Compares the storage with the artifact of the status. Changes nothing.
    async fn observe(&self, key: &Key, artifact: Option<&Artifact>) -> Result<Observed, Fault> {
        let checked = self.with_storage(key, artifact.cloned(), |storage, key, artifact| {
            stored::check(storage, key, artifact.clone())
        });
        let stored = checked.await?;
        let copy = self.shared.shared_store.as_ref();
        let copy = copy.map(|shared| shared.copy(key, &stored));
        Ok(Observed { stored, copy })
    }

    async fn restore(
        &self,
        pass: &Input<'_, K>,
        key: &Key,
        artifact: Option<&Artifact>,
    ) -> Result<bool, Fault> {
        let (Some(shared), Some(wanted)) = (&self.shared.shared_store, artifact) else {
            return Ok(false);
        };
        let scope = pass.scope();
        let restored = shared.restore(&self.shared.storage, key, wanted, &scope);
        pass.slot.waiting(restored).await
    }

    async fn tidy(
        &self,
        pass: &Input<'_, K>,
        key: &Key,
        tidying: Tidying,
        (artifact, file): (&Artifact, &str),
    ) -> Result<(), Fault> {
        let shared = self.shared.shared_store.as_ref();
        if let Some(shared) = shared.filter(|_| tidying.serve || tidying.upload) {
            let published = self.publish_stored(shared, key, tidying, (artifact, file));
            pass.slot.waiting(published).await?;
        }
        let tidied = self.with_storage(key, file.to_owned(), |storage, key, file| {
            stored::tidy(storage, key, file)
        });
        tidied.await?;
        if let Some(shared) = shared.filter(|_| tidying.tidy_shared) {
            let tidied = shared.tidy(&self.shared.storage, key, file);
            pass.slot.waiting(tidied).await;
        }
        Ok(())
    }

    async fn publish_stored(
        &self,
        shared: &Arc<SharedStore>,
        key: &Key,
        tidying: Tidying,
        (artifact, file): (&Artifact, &str),
    ) -> Result<(), Fault> {
        if tidying.serve {
            shared.serve_verified(&self.shared.storage, key, file).await?;
        }
        if tidying.upload {
            shared
                .upload_verified(&self.shared.storage, key, artifact, file)
                .await;
        }
        Ok(())
    }
}
