//! Everything that the passes of one kind need to follow references.

use std::{collections::HashMap, path::Path, sync::Arc, time::Duration};

use api::{Fault, Reason, annotation};
use artifact::{ArtifactCache, FetchLimits, Unpacked, is_small};
use kube::Resource as _;
use parking_lot::Mutex;
use runtime::{Context, ObjectKey, Pass, requests};
use tokio_util::sync::CancellationToken;
use tree::Record;

use crate::{
    Clusters, Consumer, NewRevision, ReferenceFlags, ReferenceRules, SourceArtifact, TargetCluster,
    dependencies::Dependencies,
    idle::fingerprint,
    sources::{self, Reading, SeenArtifacts, hosts::ArtifactHosts, seen::SeenSources},
};

/// Maximum delay before a failed download is tried again, where waiting may help.
const DOWNLOAD_RETRY: Duration = Duration::from_secs(15);

#[derive(Debug, thiserror::Error)]
#[error("cannot prepare the directory for artifacts: {0}")]
pub struct Error(#[from] artifact::Error);

/// The reason why there are no files of an artifact.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The URL does not lead to a file of the source.
    #[error(transparent)]
    Refused(Fault),
    #[error("failed download of artifact: {0}")]
    Download(#[from] artifact::Error),
}

impl FilesError {
    /// Returns true if the server doesn't have the file.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Download(artifact::Error::NotFound { .. }))
    }

    /// Returns true if the file has another digest than the status of its source says.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        matches!(self, Self::Download(artifact::Error::DigestMismatch { .. }))
    }

    /// Returns the fault of the pass, which is retried after `retry`, or sooner if that may help.
    #[must_use]
    pub fn fault(self, retry: Duration) -> Fault {
        match self {
            Self::Refused(fault) => fault,
            Self::Download(error) => download_fault(&error, retry),
        }
    }
}

/// The locations of the artifacts that objects used last, as fingerprints of their revisions and digests, and of their URLs.
#[derive(Debug, Default)]
struct ArtifactLocations(Mutex<HashMap<ObjectKey, (u64, u64)>>);

impl ArtifactLocations {
    /// Returns true if the same artifact was at another URL before: it is not known to be at this one.
    fn has_moved(&self, object: &ObjectKey, artifact: &SourceArtifact) -> bool {
        let (content, url) = Self::location(artifact);
        let known = self.0.lock().get(object).copied();
        known.is_some_and(|(known, location)| known == content && location != url)
    }

    fn note(&self, object: ObjectKey, artifact: &SourceArtifact) {
        self.0.lock().insert(object, Self::location(artifact));
    }

    fn location(artifact: &SourceArtifact) -> (u64, u64) {
        let artifact = &artifact.artifact;
        let content = (&artifact.revision, &artifact.digest);
        (fingerprint(content), fingerprint(&artifact.url))
    }
}

/// Follows the references of one kind of objects. Everything is read live, and each call reads once.
#[derive(Debug)]
pub struct References<C> {
    ctx: Context,
    rules: ReferenceRules,
    artifacts: ArtifactCache,
    hosts: ArtifactHosts,
    clusters: Arc<Clusters>,
    seen: SeenSources,
    offered: SeenArtifacts,
    locations: ArtifactLocations,
    additive: bool,
    kind: std::marker::PhantomData<fn() -> C>,
}

impl<C: Consumer> References<C> {
    /// Unpacks artifacts below `dir`, whose old contents it removes.
    ///
    /// # Errors
    /// If the directory cannot be created.
    pub fn new(
        ctx: &Context,
        flags: &ReferenceFlags,
        dir: &Path,
        limits: FetchLimits,
        clusters: Arc<Clusters>,
    ) -> Result<Self, Error> {
        let own = &ctx.flags().runtime_namespace;
        let host = Some(flags.source_controller_localhost.clone());
        let watcher_host = Some(flags.source_watcher_localhost.clone());
        // The source-controller serves the artifacts from the own namespace.
        let addresses = ctx.addresses().clone().allowing_own_services();
        Ok(Self {
            ctx: ctx.clone(),
            rules: ReferenceRules::new(ctx.flags()),
            artifacts: ArtifactCache::new(dir, host, limits, addresses)?
                .with_watcher_host(watcher_host)
                .with_token(flags.token(own)),
            hosts: flags.hosts(own),
            clusters,
            seen: SeenSources::default(),
            offered: SeenArtifacts::default(),
            locations: ArtifactLocations::default(),
            additive: false,
            kind: std::marker::PhantomData,
        })
    }

    /// Sets if a dependency with a `readyExpr` has to be ready by its status, too; default false.
    #[must_use]
    pub fn with_additive_expressions(mut self, additive: bool) -> Self {
        self.additive = additive;
        self
    }

    /// Reads the artifact that the source of an object offers now.
    ///
    /// # Errors
    /// If the source is missing, in a blocked namespace, unreadable, has no artifact yet, or is older than it was before.
    pub async fn artifact(&self, object: &C::Object) -> Result<SourceArtifact, Fault> {
        self.read(object, None).await
    }

    /// Returns the offers of sources, for [`crate::triggers`] to note it.
    #[must_use]
    pub const fn offered(&self) -> &SeenArtifacts {
        &self.offered
    }

    /// Returns the artifact that the source of an object offered last, if any is known. No request is made.
    pub fn known_artifact(&self, object: &C::Object) -> Option<SourceArtifact> {
        self.offered.last(&C::source(object)?)
    }

    /// Returns true if a source offers this artifact, as far as a watch shows. No request is made.
    pub fn still_offers(&self, artifact: &SourceArtifact) -> bool {
        self.offered.still_has(artifact)
    }

    /// Returns the artifact that the source of an object offers. News that a watch saw need no request: another revision than the
    /// `attempted` one. Otherwise the source is read, in case a watch missed something; also if a user requests the pass, who has seen
    /// the source in a state that the watch may not have seen yet.
    ///
    /// # Errors
    /// As [`References::artifact`].
    pub async fn newest_artifact(
        &self,
        object: &C::Object,
        attempted: Option<&str>,
    ) -> Result<SourceArtifact, Fault> {
        let handled = C::handled_request(object);
        let is_requested = requests::is_unhandled(object.meta(), annotation::RECONCILE_REQUESTED_AT, handled);
        self.read(object, (!is_requested).then_some(attempted)).await
    }

    async fn read(
        &self,
        object: &C::Object,
        attempted: Option<Option<&str>>,
    ) -> Result<SourceArtifact, Fault> {
        let reading = Reading {
            seen: &self.seen,
            offered: &self.offered,
            attempted,
        };
        sources::artifact::<C>(self.ctx.client(), self.rules, reading, object).await
    }

    /// Drops the state of an object that is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.seen.forget(key);
        self.locations.0.lock().remove(key);
    }

    /// Checks that all dependencies are ready, and have seen the revision that the object is about to deploy.
    ///
    /// # Errors
    /// If one is missing, in a blocked namespace, not ready, or behind.
    pub async fn check_dependencies(
        &self,
        object: &C::Object,
        artifact: Option<&SourceArtifact>,
    ) -> Result<(), Fault> {
        let dependencies = Dependencies {
            client: self.ctx.client(),
            clusters: &self.clusters,
            rules: self.rules,
            additive: self.additive,
        };
        dependencies.check::<C>(object, artifact).await
    }

    /// Returns the unpacked files of an artifact, from the cache or by a download of at most `timeout`.
    ///
    /// # Errors
    /// If the URL does not lead to a file of the source, or the file cannot be downloaded, verified or unpacked.
    pub async fn files(
        &self,
        object: &C::Object,
        artifact: &SourceArtifact,
        timeout: Duration,
        cancel: &CancellationToken,
    ) -> Result<Arc<Unpacked>, Fault> {
        let files = self.find_files(object, artifact, timeout, cancel).await;
        files.map_err(|error| error.fault(C::retry_interval(object)))
    }

    /// Returns the same as [`References::files`], with an error that has a type. An artifact whose URL alone changed is downloaded again.
    ///
    /// # Errors
    /// As [`References::files`].
    pub async fn find_files(
        &self,
        object: &C::Object,
        artifact: &SourceArtifact,
        timeout: Duration,
        cancel: &CancellationToken,
    ) -> Result<Arc<Unpacked>, FilesError> {
        let checked = artifact.check_url(&self.hosts, C::retry_interval(object));
        checked.map_err(FilesError::Refused)?;
        let key = C::key(object);
        let files = match self.locations.has_moved(&key, artifact) {
            true => {
                self.artifacts
                    .fetch_again(&artifact.artifact, timeout, cancel)
                    .await?
            }
            false => self.artifacts.fetch(&artifact.artifact, timeout, cancel).await?,
        };
        self.locations.note(key, artifact);
        Ok(files)
    }

    /// Returns true if an artifact answers the calls of a record for sure as the artifact before did, by the hashes of their directories: then
    /// it need not be downloaded. False if that isn't known, or if the artifact is so small that its hashes would take as long.
    async fn is_same_for(
        &self,
        object: &C::Object,
        (before, now): (&SourceArtifact, &SourceArtifact),
        record: &Record,
    ) -> bool {
        let retry = C::retry_interval(object);
        let is_own = |artifact: &SourceArtifact| artifact.check_url(&self.hosts, retry).is_ok();
        if !is_own(before) || !is_own(now) || is_small(&now.artifact) {
            return false;
        }
        let hashes = |artifact| self.artifacts.directories(artifact);
        let (before, now) = tokio::join!(hashes(&before.artifact), hashes(&now.artifact));
        let both = before.zip(now);
        both.is_some_and(|(before, now)| before.are_same_for(&now, record))
    }

    /// Returns the artifact with another revision that the source of an object offers since the pass that used `last`. It is downloaded within
    /// `timeout`, unless it is known without that the build of the record would read the same. `None` if there is none, if the last attempt
    /// had another one, or if the source is another one now: then a pass has to build.
    pub async fn newer_artifact(
        &self,
        pass: &Pass<'_, C::Object>,
        last: &SourceArtifact,
        (record, attempted): (&Record, Option<&str>),
        timeout: Duration,
    ) -> Option<NewRevision<SourceArtifact>> {
        if attempted != Some(last.revision()) {
            return None;
        }
        let newest = self.newest_artifact(pass.object, attempted);
        let artifact = pass.slot.waiting(newest).await.ok()?;
        let is_same_source = artifact.source == last.source && artifact.git == last.git;
        if !is_same_source || artifact.revision() == last.revision() {
            return None;
        }
        let is_same = self.is_same_for(pass.object, (last, &artifact), record);
        let files = match pass.slot.waiting(is_same).await {
            true => None,
            false => {
                let files = self.files(pass.object, &artifact, timeout, &pass.cancel);
                Some(pass.slot.waiting(files).await.ok()? as _)
            }
        };
        Some(NewRevision { files, own: artifact })
    }

    /// Connects to the cluster of an object, with the identity that it deploys with.
    ///
    /// # Errors
    /// If its kubeconfig is missing, invalid or refused.
    pub async fn cluster(&self, object: &C::Object) -> Result<TargetCluster, Fault> {
        self.clusters.target::<C>(object).await
    }
}

/// Returns the fault of a failed download. Failures that another attempt may heal are tried again soon, anything else after the
/// retry interval.
pub(crate) fn download_fault(error: &artifact::Error, retry: Duration) -> Fault {
    use artifact::Error as E;
    let soon = matches!(
        error,
        E::NotFound { .. } | E::Download { .. } | E::Interrupted { .. } | E::Io { .. }
    );
    let delay = if soon { retry.min(DOWNLOAD_RETRY) } else { retry };
    let message = format!("failed download of artifact: {error}");
    Fault::wait(delay, Reason::PrepareFailed, message)
}

#[cfg(test)]
mod tests {
    use api::Artifact;

    use super::*;
    use crate::{SourceId, SourceKind};

    #[test]
    fn artifact_has_moved_if_its_url_alone_changed() {
        let artifact = |revision: &str, url: &str| SourceArtifact {
            source: SourceId {
                kind: SourceKind::GitRepository,
                key: ObjectKey::new("apps", "shop"),
            },
            artifact: Artifact {
                revision: revision.to_owned(),
                url: url.to_owned(),
                ..Artifact::default()
            },
            git: None,
        };
        let (locations, key) = (ArtifactLocations::default(), ObjectKey::new("apps", "shop"));
        assert!(
            !locations.has_moved(&key, &artifact("v1", "a")),
            "nothing is known"
        );
        locations.note(key.clone(), &artifact("v1", "a"));
        for (revision, url, moved) in [("v1", "a", false), ("v1", "b", true), ("v2", "b", false)] {
            assert_eq!(
                locations.has_moved(&key, &artifact(revision, url)),
                moved,
                "{revision} {url}"
            );
        }
    }
}
