//! Names of annotations, finalizers, API groups and condition types that clients and other controllers rely on.

pub mod group {
    pub const SOURCE: &str = "source.toolkit.fluxcd.io";
    pub const NOTIFICATION: &str = "notification.toolkit.fluxcd.io";
    pub const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io";
    /// The group of the KluctlDeployment that deploys from a source.
    pub const FLUX_KLUCTL: &str = "flux.kluctl.io";
    /// The group of the KluctlDeployment that has its own source; an object of this group takes over from `flux.kluctl.io`.
    pub const GITOPS_KLUCTL: &str = "gitops.kluctl.io";
}

/// Annotations that controllers and clients read.
pub mod annotation {
    /// Requests a reconciliation now. Each new value is a request.
    pub const RECONCILE_REQUESTED_AT: &str = "reconcile.fluxcd.io/requestedAt";
    /// Requests a deployment now, even if nothing changed. Each new value is a request.
    pub const DEPLOY_REQUESTED_AT: &str = "deploy.flux.kluctl.io/requestedAt";
    /// Requests a reconciliation of a KluctlDeployment of `gitops.kluctl.io`, also of a suspended one.
    pub const REQUEST_RECONCILE: &str = "kluctl.io/request-reconcile";
    /// Requests a diff of a KluctlDeployment of `gitops.kluctl.io`.
    pub const REQUEST_DIFF: &str = "kluctl.io/request-diff";
    /// Requests a deployment of a KluctlDeployment of `gitops.kluctl.io`.
    pub const REQUEST_DEPLOY: &str = "kluctl.io/request-deploy";
    /// Requests that orphans of a KluctlDeployment of `gitops.kluctl.io` are deleted.
    pub const REQUEST_PRUNE: &str = "kluctl.io/request-prune";
    /// Requests a validation of a KluctlDeployment of `gitops.kluctl.io`.
    pub const REQUEST_VALIDATE: &str = "kluctl.io/request-validate";
    /// Prefix of annotations that are added to the events of an object.
    pub const EVENT_PREFIX: &str = "event.toolkit.fluxcd.io/";
    /// Set by a controller while the notification-controller has not acknowledged the object's last event.
    pub const EVENT_PENDING: &str = "event.weir.io/pending";
    /// Set to `disabled`, keeps Flux from substituting variables in a manifest.
    pub const SUBSTITUTE: &str = "kustomize.toolkit.fluxcd.io/substitute";
}

/// Metadata of commits in the events of sources. The keys begin with the group of no kind, so that the original drops them.
pub mod commit_metadata {
    pub const AUTHOR: &str = "commit.weir.io/author";
    /// First line of the message.
    pub const SUBJECT: &str = "commit.weir.io/subject";
    pub const MESSAGE: &str = "commit.weir.io/message";
}

/// Finalizers that the controllers set.
pub mod finalizer {
    /// The finalizer of sources and Kustomizations (which early releases left on Alerts and Providers, too).
    pub const FLUX: &str = "finalizers.fluxcd.io";
    /// The finalizer of KluctlDeployments of `flux.kluctl.io`.
    pub const FLUX_KLUCTL: &str = "finalizers.flux.kluctl.io";
    /// The finalizer of KluctlDeployments of `gitops.kluctl.io`.
    pub const GITOPS_KLUCTL: &str = "finalizers.gitops.kluctl.io";
}

/// Condition types that clients know.
pub mod condition_type {
    /// The conditions that report a problem when True, by priority: Ready has reason and message of the first.
    pub const PROBLEMS: &[&str] = &[
        STORAGE_OPERATION_FAILED,
        FETCH_FAILED,
        BUILD_FAILED,
        INCLUDE_UNAVAILABLE,
        ARTIFACT_OUTDATED,
        STALLED,
        RECONCILING,
    ];
    pub const READY: &str = "Ready";
    /// The applied objects are ready. Present only if they are checked.
    pub const HEALTHY: &str = "Healthy";
    /// The controller works on the object (or retries after a failure).
    pub const RECONCILING: &str = "Reconciling";
    /// The controller stopped: only a change of the object helps.
    pub const STALLED: &str = "Stalled";
    /// The last notification was delivered. Present after the first one.
    pub const DELIVERED: &str = "Delivered";
    /// Annotations of an Alert have no effect. Present only if some have none.
    pub const ANNOTATIONS_VALID: &str = "AnnotationsValid";
    /// The storage of artifacts cannot be written or read.
    pub const STORAGE_OPERATION_FAILED: &str = "StorageOperationFailed";
    /// The source cannot be fetched.
    pub const FETCH_FAILED: &str = "FetchFailed";
    /// A chart cannot be packaged.
    pub const BUILD_FAILED: &str = "BuildFailed";
    /// An included source is missing or without an artifact.
    pub const INCLUDE_UNAVAILABLE: &str = "IncludeUnavailable";
    /// A newer revision was seen than is stored.
    pub const ARTIFACT_OUTDATED: &str = "ArtifactOutdated";
    /// The artifact that the status names is stored.
    pub const ARTIFACT_IN_STORAGE: &str = "ArtifactInStorage";
    /// The signatures of the source are verified. Present only if that is configured.
    pub const SOURCE_VERIFIED: &str = "SourceVerified";
}
