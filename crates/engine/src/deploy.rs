//! Applying what was rendered.

mod definitions;
mod delete;
mod hooks;
mod item;
mod object;
mod outcome;
mod replace;
mod settled;

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
use kluctl::{Inclusion, Rendered};
use objects::{ObjectId, ObjectRef, rules::IgnoreRule};
use settled::Settled;

pub(crate) use object::{Attempt, apply};
pub(crate) use outcome::changed;

use crate::{
    Command, CommandResult, Error, Event, Listener, ObjectError, PARALLEL,
    live::{self, Live, Query},
    progress::tell,
};

/// How to deploy.
#[derive(Debug, Clone)]
pub struct DeployOptions {
    /// The API server does everything but store the results; nothing is waited for.
    pub dry_run: bool,
    /// Win all conflicts with other managers, and apply also what is as rendered already.
    pub force_apply: bool,
    /// Replace an object as a whole when it can't be applied.
    pub replace_on_error: bool,
    /// Delete an object and apply it anew when it can neither be applied nor replaced.
    pub force_replace_on_error: bool,
    /// Don't wait until objects are ready.
    pub no_wait: bool,
    /// Begin nothing new after the first error.
    pub abort_on_error: bool,
    /// How long to wait for one object.
    pub readiness_timeout: Duration,
    /// Apply only these objects, and no hooks; all when absent.
    pub only: Option<HashSet<ObjectId>>,
    /// Report what is no longer rendered, which needs a list of every kind of the cluster. To be left out when pruning
    /// comes next; never done when only some objects are applied.
    pub orphans: bool,
    /// The part of the project that was rendered.
    pub inclusion: Inclusion,
    /// Differences that don't matter, besides those that the project names.
    pub unseen: Vec<IgnoreRule>,
    /// Keep the objects themselves in the result: as rendered, as they were, and as they are.
    pub contents: bool,
    /// Show the values of Secrets.
    pub show_secrets: bool,
    /// Who is told what happens.
    pub progress: Listener,
}

impl DeployOptions {
    /// The references that are to be applied.
    fn chosen(&self, refs: &[ObjectRef]) -> Vec<ObjectRef> {
        refs.iter()
            .filter(|reference| self.chooses(reference))
            .cloned()
            .collect()
    }

    fn chooses(&self, reference: &ObjectRef) -> bool {
        self.only
            .as_ref()
            .is_none_or(|only| only.contains(&reference.id()))
    }
}

impl Default for DeployOptions {
    fn default() -> Self {
        Self {
            dry_run: false,
            force_apply: false,
            replace_on_error: false,
            force_replace_on_error: false,
            no_wait: false,
            abort_on_error: false,
            readiness_timeout: Duration::from_secs(600),
            only: None,
            orphans: true,
            inclusion: Inclusion::default(),
            unseen: Vec::new(),
            contents: false,
            show_secrets: false,
            progress: None,
        }
    }
}

/// What all items of a deployment share.
pub(crate) struct Run<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) options: &'a DeployOptions,
    pub(crate) live: &'a Live,
    /// What may be left as it is.
    settled: Settled,
    /// Kinds that the deployment brings itself.
    pub(crate) definitions: Definitions,
    /// Namespaces that don't exist but would, were this no dry run.
    pretended_namespaces: Mutex<HashSet<String>>,
    /// Objects that would be gone, were this no dry run.
    pretended_gone: Mutex<HashSet<ObjectRef>>,
    abort: AtomicBool,
}

impl<'a> Run<'a> {
    fn new(
        cluster: &'a Cluster,
        rendered: &Rendered,
        options: &'a DeployOptions,
        live: &'a Live,
        settled: Settled,
    ) -> Self {
        Self {
            cluster,
            options,
            live,
            settled,
            definitions: Definitions::of(rendered),
            pretended_namespaces: Mutex::default(),
            pretended_gone: Mutex::default(),
            abort: AtomicBool::new(false),
        }
    }

    /// Whether nothing new may begin.
    pub(crate) fn is_aborted(&self) -> bool {
        self.abort.load(Ordering::Relaxed) || self.cluster.cancellation().is_cancelled()
    }

    pub(crate) fn note_error(&self) {
        if self.options.abort_on_error {
            self.abort.store(true, Ordering::Relaxed);
        }
    }

    /// Notes that the cluster may not be as it was read any more. A dry run leaves it as it is.
    pub(crate) fn note_change(&self) {
        if !self.options.dry_run {
            self.settled.note_change();
        }
    }

    pub(crate) fn pretend_namespace(&self, name: &str) {
        locked(&self.pretended_namespaces).insert(name.to_owned());
    }

    pub(crate) fn is_pretended(&self, namespace: Option<&String>) -> bool {
        namespace.is_some_and(|namespace| locked(&self.pretended_namespaces).contains(namespace))
    }

    pub(crate) fn pretend_gone(&self, reference: &ObjectRef) {
        locked(&self.pretended_gone).insert(reference.clone());
    }

    pub(crate) fn is_pretended_gone(&self, reference: &ObjectRef) -> bool {
        locked(&self.pretended_gone).contains(reference)
    }

    pub(crate) fn tell(&self, event: &Event<'_>) {
        tell(&self.options.progress, event);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
    if !does_something(rendered) {
        return Err(Error::EmptyRender);
    }
    let result = deploy_as_far_as_possible(cluster, rendered, options).await?;
    if cluster.cancellation().is_cancelled() {
        return Err(Error::Cancelled);
    }
    Ok(result)
}

/// Whether a render has anything to apply, to delete or to wait for.
pub(crate) fn does_something(rendered: &Rendered) -> bool {
    rendered.items.iter().any(|item| {
        !item.objects.is_empty() || !item.delete_objects.is_empty() || !item.wait_readiness_objects.is_empty()
    })
}

/// The same, where a cancelled deployment says in its result what was done before.
pub(crate) async fn deploy_as_far_as_possible(
    cluster: &Cluster,
    rendered: &Rendered,
    options: &DeployOptions,
) -> Result<CommandResult, Error> {
    let refs = live::references(rendered)?;
    let discriminator = rendered.target.discriminator.as_deref();
    let mut result = CommandResult::begin(Command::Deploy, options.dry_run, discriminator);
    let looks_for_orphans = options.orphans && options.only.is_none();
    if discriminator.is_none_or(str::is_empty) {
        let message = "no discriminator configured. Orphan object detection will not work";
        result.warnings.push(ObjectError::general(message));
    } else {
        tell(
            &options.progress,
            &Event::Step("Getting remote objects by discriminator"),
        );
    }
    let renamed = live::renamed_kinds(rendered);
    let chosen = options.chosen(&refs);
    let query = Query {
        refs: &chosen,
        all: &refs,
        discriminator,
        orphans: looks_for_orphans.then_some(&options.inclusion),
        renamed: &renamed,
    };
    let (settled, live) = futures::join!(Settled::begin(cluster, options), live::fetch(cluster, query));
    let (settled, mut live) = (settled?, live?);
    result.warnings.extend(live.warning());
    result.warnings.append(&mut live.warnings);
    let run = Run::new(cluster, rendered, options, &live, settled);
    run_items(&run, rendered, &mut result).await;
    if options.only.is_none() {
        result.list_rendered(rendered, &live, options);
    }
    if cluster.cancellation().is_cancelled() {
        result.note_interruption();
    }
    result.list_orphans(&live);
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
            let message = item.message.as_deref();
            run.tell(&Event::Barrier { message });
            while let Some(outcome) = running.next().await {
                outcome::collect(result, outcome);
            }
            run.tell(&Event::BarrierPassed);
        }
    }
    while let Some(outcome) = running.next().await {
        outcome::collect(result, outcome);
    }
}
