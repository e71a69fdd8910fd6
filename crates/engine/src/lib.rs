//! Operations on a kluctl project and a cluster: render, compare, deploy, prune, validate, delete.
//!
//! The only crate that joins rendering (pure) with clusters (I/O). Each operation takes a [`cluster::Cluster`], which
//! carries identity and cancellation, and a rendered project. Controllers decide about the time of operations. Values of
//! Secrets show in no result and no error.

pub mod commands;
mod deploy;
mod error;
#[cfg(test)]
mod fuzz;
mod listing;
mod progress;
mod render;
pub mod specs;

pub use apply::{AppliedVersions, Completeness, SearchedKinds};
pub use deploy::{
    CompareOptions, Comparison, Confirm, DeployOptions, HiddenDifferences, MANAGER, PokedImage,
    RemoveOptions, ValidationPolling, compare, delete, delete_labelled, deploy, discriminator, poke_images,
    prune, prune_discriminator, validate, validate_besides, validate_until,
};
pub use error::Error;
pub use progress::{Event, ItemCounts, Listener, Progress};
pub use render::{
    EnvironmentVariables, ExternalAccess, ExternalReads, FetchPermits, FetchStatus, PinnedSource,
    PinnedSources, ProjectError, ProjectHead, ReadObjects, RemoteFiles, RemoteOverride, RenderOptions,
    RenderSlots, SourceOverride, choose_target, deployed_images, fetch_project, list_targets, moment,
    project_head, render, render_offline,
};

pub use secrets::{Error as DecryptionError, Keys as DecryptionKeys};

/// Number of items, and of requests, that are in flight at the same time.
const PARALLEL: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::Cluster;
    use kluctl::{Rendered, Request};
    use std::sync::Arc;

    /// Compiles only while all operations can run on a multi-threaded runtime.
    #[test]
    fn operations_can_move_between_threads() {
        fn check<T: Send>(_: T) {}
        let _ = |cluster: &Cluster, rendered: &Rendered| {
            check(render(
                cluster,
                Arc::new(tree::Mem::new()),
                Request::default(),
                &RenderOptions::default(),
            ));
            check(deploy(cluster, rendered, &DeployOptions::default()));
            check(compare(cluster, rendered, CompareOptions::default()));
            check(prune(cluster, rendered, &RemoveOptions::default()));
            check(delete(cluster, "", &RemoveOptions::default()));
            check(validate(cluster, rendered));
            let project = commands::Project::new(cluster, rendered);
            let options = DeployOptions::default();
            check(async move {
                let _ = commands::deploy(&project, &options, true).await;
                let _ = commands::diff(&project, &options).await;
                let _ = commands::prune(&project, &options).await;
                let _ = commands::delete(&project, None, &options).await;
                let _ = commands::poke_images(&project, &options).await;
                let _ = commands::validate(&project, None, |_| {}).await;
            });
        };
    }
}
