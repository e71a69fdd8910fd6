//! Deployment of rendered objects: items in their order, with barriers and hooks, on top of crate `apply`.

mod compare;
mod confirm;
pub mod discriminator;
mod hidden;
mod hooks;
mod item;
mod item_pass;
pub(crate) mod live;
mod outcome;
mod owner;
mod poke;
mod prune;
mod selector;
mod validate;
mod words;

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use apply::{AppliedVersions, Definitions, OrphanSearch, Query, SearchedKinds, Session, SessionOptions};
use cluster::Cluster;
use futures::{StreamExt as _, stream::FuturesUnordered};
use kluctl::{Inclusion, Rendered, annotations};
use objects::{ObjectId, ObjectRef, meta, rules::IgnoreRule};
use yaml::Value;

pub use compare::{CompareOptions, Comparison, compare};
pub(crate) use confirm::ABORTED;
pub use confirm::Confirm;
pub use hidden::HiddenDifferences;
pub use owner::MANAGER;
pub use poke::{PokedImage, poke_images};
pub use prune::{RemoveOptions, delete, delete_labelled, prune, prune_discriminator};
pub(crate) use selector::existing;
pub use validate::{ValidationPolling, validate, validate_besides, validate_until};

use crate::{Error, Event, Listener, PARALLEL, progress::tell};
use results::{Command, CommandResult, ObjectError};

#[derive(Debug, Clone)]
pub struct DeployOptions {
    /// If set, the API server does everything but store the results, and nothing is waited for.
    pub dry_run: bool,
    /// If set, all conflicting fields are taken over, and unchanged objects are applied too.
    pub force_apply: bool,
    /// If set, an object that can't be applied is replaced as a whole.
    pub replace_on_error: bool,
    /// If set, an object that can't be replaced either is deleted and created again.
    pub force_replace_on_error: bool,
    /// If set, nothing waits until objects are ready.
    pub no_wait: bool,
    /// If set, nothing new begins after the first error.
    pub abort_on_error: bool,
    /// Timeout of the wait for one object; default 10 min.
    pub readiness_timeout: Duration,
    /// The objects to apply, without hooks; all objects and hooks if absent.
    pub only: Option<HashSet<ObjectId>>,
    /// If set, objects that are no longer rendered are reported, which needs a list of every kind that may have any. Ignored
    /// if only some objects are applied.
    pub orphans: bool,
    /// All objects that may have been deployed before, if they are known ([`apply::OrphanSearch::previous`]).
    pub previous: Option<Vec<ObjectRef>>,
    /// The only kinds that may have orphans, if they are known ([`apply::OrphanSearch::kinds`]).
    pub kinds: Option<SearchedKinds>,
    /// The versions in which the last deployment left the objects, if they are known: they save reads of etcd ([`apply::Query::seen`]).
    pub seen: Option<Arc<AppliedVersions>>,
    pub inclusion: Inclusion,
    /// Differences that are left out of the result, besides those that the project names.
    pub hidden: Vec<IgnoreRule>,
    /// If set, the result holds the objects themselves: as rendered, before, and after.
    pub contents: bool,
    pub show_secrets: bool,
    pub progress: Listener,
}

impl DeployOptions {
    fn chosen(&self, refs: &[ObjectRef]) -> Vec<ObjectRef> {
        refs.iter()
            .filter(|reference| self.chooses(reference))
            .cloned()
            .collect()
    }

    /// Returns the objects that may have been deployed before, if the live objects are not needed before the apply ([`Query::assumes`]): hooks and
    /// deletions depend on them.
    fn assumed(&self, rendered: &Rendered) -> Option<&[ObjectRef]> {
        let is_plain = |object: &Value| {
            !meta::flag(object, annotations::DELETE) && kluctl::hooks::parse(object).hook.is_none()
        };
        let is_simple = !self.dry_run && !self.force_apply && self.only.is_none();
        let previous = self.previous.as_deref().filter(|_| is_simple)?;
        rendered.objects().all(is_plain).then_some(previous)
    }

    fn chooses(&self, reference: &ObjectRef) -> bool {
        self.only
            .as_ref()
            .is_none_or(|only| only.contains(&reference.id()))
    }
}

impl DeployOptions {
    /// Returns the options of applying single objects. Objects that are named are known to differ.
    fn session(&self) -> SessionOptions {
        SessionOptions {
            dry_run: self.dry_run,
            force: self.force_apply,
            apply_unchanged: self.force_apply || self.only.is_some(),
            replace_on_error: self.replace_on_error,
            recreate_on_error: self.force_replace_on_error,
            recreate_immutable: false,
        }
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
            previous: None,
            kinds: None,
            seen: None,
            inclusion: Inclusion::default(),
            hidden: Vec::new(),
            contents: false,
            show_secrets: false,
            progress: None,
        }
    }
}

/// The state that all items of a deployment share.
pub(crate) struct Run<'a> {
    pub(crate) session: Session<'a>,
    pub(crate) options: &'a DeployOptions,
    /// True if a wait was cut off, or items were left out for something newer.
    interrupted: AtomicBool,
}

impl Run<'_> {
    /// Notes that the rest is left to the next deployment, if the waits are interrupted; returns true if so. A dry run has no waits, and
    /// goes on.
    pub(crate) fn stops(&self) -> bool {
        let stops = !self.options.dry_run && self.session.cluster.is_interrupted();
        self.interrupted.fetch_or(stops, Ordering::Relaxed);
        stops
    }

    pub(crate) fn note_error(&self) {
        if self.options.abort_on_error {
            self.session.abort();
        }
    }

    pub(crate) fn tell(&self, event: &Event<'_>) {
        tell(&self.options.progress, event);
    }
}

/// Applies rendered objects, item by item, in order.
///
/// Up to eight items are worked on at once, the objects of one item one after the other; a barrier waits for everything
/// before it. Failures of objects are in the result, and do not stop the others. If the waits of the cluster are interrupted
/// ([`Cluster::waits_until`]), the items up to the next barrier are applied, and the others are not begun.
///
/// # Errors
/// Fails when nothing was rendered, the live state can't be read, or the work is cancelled or interrupted.
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
    if result.interrupted {
        return Err(Error::Interrupted);
    }
    Ok(result)
}

/// Returns true if a render has anything to apply, to delete or to wait for.
pub(crate) fn does_something(rendered: &Rendered) -> bool {
    rendered.items.iter().any(|item| {
        !item.objects.is_empty() || !item.delete_objects.is_empty() || !item.wait_readiness_objects.is_empty()
    })
}

/// Applies rendered objects. The result of a cancelled or interrupted deployment holds the changes before, and an error that says so.
pub(crate) async fn deploy_as_far_as_possible(
    cluster: &Cluster,
    rendered: &Rendered,
    options: &DeployOptions,
) -> Result<CommandResult, Error> {
    let refs = live::references(rendered)?;
    let discriminator = rendered.target.discriminator.as_deref();
    let mut result = CommandResult::new(Command::Deploy, options.dry_run, discriminator);
    let searches_orphans = options.orphans && options.only.is_none();
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
    let is_included = |object: &Value| live::includes(&options.inclusion, object);
    let search = OrphanSearch {
        filter: Some(&is_included),
        previous: options.previous.as_deref(),
        kinds: options.kinds.as_ref(),
    };
    let query = Query {
        refs: &chosen,
        all: &refs,
        orphans: searches_orphans.then_some(search),
        renamed: &renamed,
        seen: options.seen.as_deref(),
        assumes: options.assumed(rendered),
    };
    let owner = owner::owner(discriminator);
    let session_options = options.session();
    let start = Session::start();
    let live = apply::fetch(cluster, &owner, query).await?;
    result.warnings.extend(live::unreadable_warning(&live));
    result
        .warnings
        .extend(live::listing_warnings(&live.gaps, live.restriction));
    result.completeness = live.completeness.clone();
    let definitions = Definitions::of(positions(rendered));
    let run = Run {
        session: Session::new(start, cluster, &owner, &live, definitions, session_options),
        options,
        interrupted: AtomicBool::new(false),
    };
    run_items(&run, rendered, &mut result).await;
    result.interrupted = run.interrupted.into_inner();
    crate::listing::list_rendered(&mut result, rendered, &live, options);
    if cluster.cancellation().is_cancelled() {
        result.note_cancellation();
    } else if result.interrupted {
        result.note_interruption();
    }
    crate::listing::list_orphans(&mut result, &live);
    Ok(result.finish())
}

/// Returns all rendered objects with their positions.
fn positions(rendered: &Rendered) -> impl Iterator<Item = (apply::Position, &Value)> {
    rendered.items.iter().enumerate().flat_map(|(i, item)| {
        let objects = item.objects.iter().enumerate();
        objects.map(move |(j, object)| ((i, j), object))
    })
}

async fn run_items(run: &Run<'_>, rendered: &Rendered, result: &mut CommandResult) {
    let cluster = run.session.cluster;
    let mut running = FuturesUnordered::new();
    for (index, item) in rendered.items.iter().enumerate() {
        while running.len() >= PARALLEL
            && let Some(outcome) = cluster.waiting(running.next()).await
        {
            outcome::collect(result, outcome);
        }
        if run.session.is_aborted() {
            break;
        }
        let branch = cluster.branch();
        running.push(async move {
            let _working = branch;
            item::run(run, index, item).await
        });
        if item.barrier {
            let message = item.message.as_deref();
            run.tell(&Event::Barrier { message });
            while let Some(outcome) = cluster.waiting(running.next()).await {
                outcome::collect(result, outcome);
            }
            run.tell(&Event::BarrierPassed);
            if index + 1 < rendered.items.len() && run.stops() {
                break;
            }
        }
    }
    while let Some(outcome) = cluster.waiting(running.next()).await {
        outcome::collect(result, outcome);
    }
}
