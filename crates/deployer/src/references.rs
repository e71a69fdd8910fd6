//! Everything that the passes of one kind need to follow references.

use std::{path::Path, sync::Arc, time::Duration};

use api::{Fault, Reason};
use artifact::{ArtifactCache, FetchLimits, Unpacked, is_small};
use runtime::{Context, ObjectKey};
use tokio_util::sync::CancellationToken;
use tree::Record;

use crate::{
    Clusters, Consumer, ReferenceFlags, ReferenceRules, SourceArtifact, TargetCluster,
    dependencies::Dependencies,
    sources::{self, Reading, SeenArtifacts, hosts::ArtifactHosts, seen::SeenSources},
};

/// Maximum delay before a failed download is tried again, where waiting may help.
const DOWNLOAD_RETRY: Duration = Duration::from_secs(15);

#[derive(Debug, thiserror::Error)]
#[error("cannot prepare the directory for artifacts: {0}")]
pub struct Error(#[from] artifact::Error);

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
        // The source-controller serves the artifacts from the own namespace.
        let addresses = ctx.addresses().clone().allowing_own_services();
        Ok(Self {
            ctx: ctx.clone(),
            rules: ReferenceRules::new(ctx.flags()),
            artifacts: ArtifactCache::new(dir, host, limits, addresses)?.with_token(flags.token(own)),
            hosts: flags.hosts(own),
            clusters,
            seen: SeenSources::default(),
            offered: SeenArtifacts::default(),
            kind: std::marker::PhantomData,
        })
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

    /// Returns true if a source offers this artifact, as far as a watch shows. No request is made.
    pub fn still_offers(&self, artifact: &SourceArtifact) -> bool {
        self.offered.still_has(artifact)
    }

    /// Returns the artifact that the source of an object offers. News that a watch saw need no request: another revision than the
    /// `attempted` one. Otherwise the source is read, in case a watch missed something.
    ///
    /// # Errors
    /// As [`References::artifact`].
    pub async fn newest_artifact(
        &self,
        object: &C::Object,
        attempted: Option<&str>,
    ) -> Result<SourceArtifact, Fault> {
        self.read(object, Some(attempted)).await
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
        let retry = C::retry_interval(object);
        artifact.check_url(&self.hosts, retry)?;
        self.artifacts
            .fetch(&artifact.artifact, timeout, cancel)
            .await
            .map_err(|error| download_fault(&error, retry))
    }

    /// Returns true if an artifact answers the calls of a record for sure as the artifact before did, by the hashes of their directories: then
    /// it need not be downloaded. False if that isn't known, or if the artifact is so small that its hashes would take as long.
    pub async fn is_same_for(
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
