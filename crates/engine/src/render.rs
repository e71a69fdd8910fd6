//! Rendering a project for a cluster.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use cluster::{Cluster, Scope};
use kluctl::Rendered;
use objects::ObjectRef;
use tree::{Budget, Limits, Tree};

use crate::Error;

/// The namespace of objects that name none.
const DEFAULT_NAMESPACE: &str = "default";

/// The bounds of a render.
#[derive(Debug, Clone, Default)]
pub struct Rendering {
    /// How much it may use.
    pub limits: Limits,
    /// How long it may take.
    pub timeout: Option<Duration>,
}

/// Sets a flag when dropped: a render whose caller is gone must not go on.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Renders a project and puts its objects into the namespaces that the cluster's kinds need.
///
/// # Errors
/// When the project is wrong (the error names file and line), a limit is reached, or the cluster can't be asked which
/// kinds it serves.
pub async fn render(
    cluster: &Cluster,
    tree: Arc<dyn Tree>,
    request: kluctl::Request,
    rendering: &Rendering,
) -> Result<Rendered, Error> {
    let flag = Arc::new(AtomicBool::new(false));
    let _cancel = CancelOnDrop(Arc::clone(&flag));
    let mut budget = Budget::new(rendering.limits.clone()).with_cancellation(flag);
    if let Some(timeout) = rendering.timeout {
        budget = budget.with_timeout(timeout);
    }
    let work = tokio::task::spawn_blocking(move || kluctl::render(tree, &request, &budget));
    let rendered = cluster
        .cancellation()
        .run_until_cancelled(work)
        .await
        .ok_or(Error::Cancelled)?;
    let mut rendered = rendered.map_err(|_| Error::Panicked)??;
    fix_namespaces(cluster, &mut rendered).await?;
    Ok(rendered)
}

async fn fix_namespaces(cluster: &Cluster, rendered: &mut Rendered) -> Result<(), Error> {
    let mut kinds = HashSet::new();
    for object in rendered.objects() {
        let reference = ObjectRef::of(object)?;
        kinds.insert((reference.group, reference.kind));
    }
    let mut scopes = HashMap::new();
    for (group, kind) in kinds {
        let scope = cluster.scope(&group, &kind).await?;
        scopes.insert((group, kind), scope);
    }
    let scope = |group: &str, kind: &str| {
        let scope = scopes
            .get(&(group.to_owned(), kind.to_owned()))
            .copied()
            .flatten()?;
        Some(match scope {
            Scope::Cluster => kluctl::Scope::Cluster,
            Scope::Namespaced => kluctl::Scope::Namespaced,
        })
    };
    kluctl::fix_namespaces(rendered, &scope, DEFAULT_NAMESPACE);
    Ok(())
}
