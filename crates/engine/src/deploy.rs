//! Applying what was rendered.

mod definitions;
mod item;
mod object;
mod outcome;

use std::{
    collections::HashSet,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use cluster::Cluster;
use definitions::Definitions;
use futures::{StreamExt as _, stream::FuturesUnordered};
use kluctl::Rendered;
use objects::{ObjectId, ObjectRef};

pub(crate) use object::{Attempt, apply};

use crate::{
    Command, CommandResult, Error, ObjectError, PARALLEL, ResultObject,
    live::{self, Live},
};

/// How to deploy.
#[derive(Debug, Clone)]
pub struct DeployOptions {
    /// The API server does everything but store the results; nothing is waited for.
    pub dry_run: bool,
    /// Win all conflicts with other managers.
    pub force_apply: bool,
    /// Don't wait until objects are ready.
    pub no_wait: bool,
    /// Begin nothing new after the first error.
    pub abort_on_error: bool,
    /// How long to wait for one object.
    pub readiness_timeout: Duration,
    /// Apply only these objects; all when absent.
    pub only: Option<HashSet<ObjectId>>,
    /// Report what is no longer rendered, which needs a list of every kind of the cluster. To be left out when pruning
    /// comes next; never done when only some objects are applied.
    pub orphans: bool,
}

impl DeployOptions {
    /// The references that are to be applied.
    fn chosen(&self, refs: &[ObjectRef]) -> Vec<ObjectRef> {
        let is_chosen = |id: &ObjectRef| self.only.as_ref().is_none_or(|only| only.contains(&id.id()));
        refs.iter()
            .filter(|reference| is_chosen(reference))
            .cloned()
            .collect()
    }
}

impl Default for DeployOptions {
    fn default() -> Self {
        Self {
            dry_run: false,
            force_apply: false,
            no_wait: false,
            abort_on_error: false,
            readiness_timeout: Duration::from_secs(600),
            only: None,
            orphans: true,
        }
    }
}

/// What all items of a deployment share.
pub(crate) struct Run<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) options: &'a DeployOptions,
    pub(crate) live: &'a Live,
    /// Kinds that the deployment brings itself.
    pub(crate) definitions: Definitions,
    /// Namespaces that don't exist but would, were this no dry run.
    pub(crate) pretended_namespaces: Mutex<HashSet<String>>,
    abort: AtomicBool,
}

impl Run<'_> {
    /// Whether nothing new may begin.
    pub(crate) fn is_aborted(&self) -> bool {
        self.abort.load(Ordering::Relaxed) || self.cluster.cancellation().is_cancelled()
    }

    pub(crate) fn note_error(&self) {
        if self.options.abort_on_error {
            self.abort.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn pretend_namespace(&self, name: &str) {
        self.pretended_namespaces
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name.to_owned());
    }

    pub(crate) fn is_pretended(&self, namespace: Option<&String>) -> bool {
        let namespaces = self
            .pretended_namespaces
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        namespace.is_some_and(|namespace| namespaces.contains(namespace))
    }
}

/// Applies what was rendered, item by item, in order.
///
/// Up to eight items are worked on at once, the objects of one item one after the other; a barrier waits for everything
/// before it. What is refused is reported in the result, and the rest goes on.
///
/// # Errors
/// When nothing was rendered, the cluster can't be asked for its state, or the work is cancelled.
pub async fn deploy(
    cluster: &Cluster,
    rendered: &Rendered,
    options: &DeployOptions,
) -> Result<CommandResult, Error> {
    let refs = live::references(rendered)?;
    if refs.is_empty() {
        return Err(Error::EmptyRender);
    }
    let discriminator = rendered.target.discriminator.as_deref();
    let mut result = CommandResult::begin(Command::Deploy, options.dry_run, discriminator);
    let live = live::fetch(cluster, &options.chosen(&refs), discriminator).await?;
    result.warnings.extend(live.warning());
    if discriminator.is_none_or(str::is_empty) {
        let message = "no discriminator configured. Orphan object detection will not work";
        result.warnings.push(ObjectError::general(message));
    }
    let run = Run {
        cluster,
        options,
        live: &live,
        definitions: Definitions::of(rendered),
        pretended_namespaces: Mutex::default(),
        abort: AtomicBool::new(false),
    };
    run_items(&run, rendered, &mut result).await;
    if cluster.cancellation().is_cancelled() {
        return Err(Error::Cancelled);
    }
    if options.orphans && options.only.is_none() {
        let orphans = live::orphans(cluster, &refs, discriminator, &mut result.warnings).await?;
        let entry = |reference| ResultObject {
            orphan: true,
            ..ResultObject::new(reference)
        };
        result.objects.extend(orphans.into_iter().map(entry));
    }
    Ok(result.finish())
}

async fn run_items(run: &Run<'_>, rendered: &Rendered, result: &mut CommandResult) {
    let mut running = FuturesUnordered::new();
    for (index, item) in rendered.items.iter().enumerate() {
        while running.len() >= PARALLEL
            && let Some(outcome) = running.next().await
        {
            outcome::collect(result, outcome);
        }
        if run.is_aborted() {
            break;
        }
        running.push(item::run(run, index, item));
        if item.barrier {
            if let Some(message) = &item.message {
                tracing::debug!(message, "waiting on barrier");
            }
            while let Some(outcome) = running.next().await {
                outcome::collect(result, outcome);
            }
        }
    }
    while let Some(outcome) = running.next().await {
        outcome::collect(result, outcome);
    }
}
