//! The annotations, finalizers, groups and condition types that clients and peers know by name.

/// API groups.
pub mod group {
    /// Sources: GitRepository and its like.
    pub const SOURCE: &str = "source.toolkit.fluxcd.io";
    /// The KluctlDeployment that follows a source.
    pub const FLUX_KLUCTL: &str = "flux.kluctl.io";
    /// The KluctlDeployment that brings its own source; an object of this group takes over from `flux.kluctl.io`.
    pub const GITOPS_KLUCTL: &str = "gitops.kluctl.io";
}

/// Annotations.
pub mod annotation {
    /// Asks for a pass now; the value, when it changes, is the request.
    pub const RECONCILE_REQUESTED_AT: &str = "reconcile.fluxcd.io/requestedAt";
    /// Asks for a deployment now, even if nothing changed.
    pub const DEPLOY_REQUESTED_AT: &str = "deploy.flux.kluctl.io/requestedAt";
    /// Prefix of annotations that users add to the events of an object.
    pub const EVENT_PREFIX: &str = "event.toolkit.fluxcd.io/";
    /// Keeps a GitOps engine from substituting variables inside of a manifest.
    pub const SUBSTITUTE: &str = "kustomize.toolkit.fluxcd.io/substitute";
}

/// Finalizers.
pub mod finalizer {
    /// On sources (and left behind by early releases on Alerts and Providers).
    pub const FLUX: &str = "finalizers.fluxcd.io";
    /// On the KluctlDeployments of `flux.kluctl.io`.
    pub const FLUX_KLUCTL: &str = "finalizers.flux.kluctl.io";
}

/// Condition types.
pub mod condition_type {
    /// The summary of an object.
    pub const READY: &str = "Ready";
    /// Work is going on (or goes on after a failure).
    pub const RECONCILING: &str = "Reconciling";
    /// Only a change of the object helps.
    pub const STALLED: &str = "Stalled";
    /// The storage could not be written or read.
    pub const STORAGE_OPERATION_FAILED: &str = "StorageOperationFailed";
    /// The source could not be fetched.
    pub const FETCH_FAILED: &str = "FetchFailed";
    /// An included source is missing or without an artifact.
    pub const INCLUDE_UNAVAILABLE: &str = "IncludeUnavailable";
    /// A newer revision was seen than is stored.
    pub const ARTIFACT_OUTDATED: &str = "ArtifactOutdated";
    /// The artifact that the status names is stored.
    pub const ARTIFACT_IN_STORAGE: &str = "ArtifactInStorage";
}
