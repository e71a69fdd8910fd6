//! Carrying out the plan for a new artifact.

use api::{Artifact, Fault};
use artifact::{Key, storage::Stored};

use super::{Input, SourceReconciler, source::Source};
use crate::{
    builder::BuildRequest,
    plan::Plan,
    source_kind::{BuildError, Details, SourceKind},
    status::Report,
    stored,
};

/// The current artifact of a source, without its URL.
pub(super) struct CurrentArtifact<K: SourceKind> {
    pub(super) artifact: Artifact,
    pub(super) resolved: K::Resolved,
    pub(super) details: Details,
}

impl<K: SourceKind> CurrentArtifact<K> {
    pub(super) fn unchanged(artifact: Artifact, source: Source<K>) -> Self {
        Self {
            artifact,
            resolved: source.resolved,
            details: Details::default(),
        }
    }
}

impl<K: SourceKind> SourceReconciler<K> {
    pub(super) async fn build(
        &self,
        pass: &Input<'_, K>,
        report: &Report<'_, K>,
        key: &Key,
        plan: Plan,
        source: Source<K>,
    ) -> Result<CurrentArtifact<K>, Fault> {
        if let Plan::Build(cause) = plan {
            let revision = K::revision(&source.resolved, self.shared.style);
            tracing::info!(revision, why = cause.message(), "building an artifact");
        }
        let named = K::past(pass.object).artifact;
        let build = BuildRequest {
            key: key.clone(),
            request: source.request,
            resolved: source.resolved,
            ignore: K::spec(pass.object).ignore.map(str::to_owned),
            current: named.and_then(|artifact| stored::current(key, &artifact)),
        };
        let built = self
            .shared
            .builder
            .build(&self.kind, &pass.scope(), build)
            .await?;
        self.publish(pass, key, &built.stored).await?;
        let revision = K::revision(&built.resolved, self.shared.style);
        let mut details = built.details;
        if let Some(warning) = &details.left_out {
            tracing::warn!(revision, "{warning}");
        }
        let mut metadata = std::mem::take(&mut details.metadata);
        metadata.extend(artifact::hashes::metadata(&built.stored.packed.hashes));
        let artifact = Artifact {
            metadata,
            ..report.artifact(built.stored, &revision)
        };
        Ok(CurrentArtifact {
            artifact,
            resolved: built.resolved,
            details,
        })
    }

    /// Lets consumers find an artifact that was stored, before a status names it: it goes to the shared store, if there is one, and then it
    /// is served and the alias leads to it.
    async fn publish(&self, pass: &Input<'_, K>, key: &Key, stored: &Stored) -> Result<(), Fault> {
        let file = stored.path.rsplit('/').next().unwrap_or_default().to_owned();
        let shared = self.shared.shared_store.as_ref();
        if let Some(shared) = shared {
            let published = shared.publish(&self.shared.storage, key, stored);
            pass.slot.waiting(published).await?;
        }
        let pointed = self.with_storage(key, file.clone(), |storage, key, file| {
            let pointed = storage.renew_alias(key, file);
            Ok(pointed.map_err(BuildError::from)?)
        });
        pointed.await?;
        if let Some(shared) = shared {
            shared.serve(key, &file);
        }
        Ok(())
    }
}
