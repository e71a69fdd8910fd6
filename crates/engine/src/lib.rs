//! What is done with a kluctl project on a cluster: render, compare, deploy, prune, validate, delete.
//!
//! The only crate that joins rendering (pure) with clusters (I/O). Each operation takes a [`cluster::Cluster`], which
//! carries identity and cancellation, and what was rendered. Nothing here decides when to do what: that is the
//! controllers' part. Values of Secrets show in no result and no error.

mod charts;
mod compare;
mod deploy;
mod error;
mod live;
mod prune;
mod pull;
mod raw;
mod remove;
mod render;
mod renders;
mod result;
mod seen;
mod stand_in;
mod unobeyed;
mod validate;

pub use compare::{CompareOptions, Comparison, compare};
pub use deploy::{DeployOptions, deploy};
pub use error::Error;
pub use prune::{DeleteOptions, PruneOptions, delete, prune};
pub use pull::Pulling;
pub use render::{Rendering, render};
pub use renders::Renders;
pub use result::{Command, CommandResult, Counts, ObjectError, ResultObject};
pub use seen::Seen;
pub use validate::{ValidateResult, validate};

/// Items, and deletions, that are worked on at once.
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
                &Rendering::default(),
            ));
            check(deploy(cluster, rendered, &DeployOptions::default()));
            check(compare(cluster, rendered, CompareOptions::default()));
            check(prune(cluster, rendered, &PruneOptions::default()));
            check(delete(cluster, "", &DeleteOptions::default()));
            check(validate(cluster, rendered));
        };
    }
}
