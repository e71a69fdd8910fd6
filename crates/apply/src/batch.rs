//! Applying a list of manifests in stages.

mod ignored;
mod trial;

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use cluster::Cluster;
use futures::StreamExt as _;
use objects::{IgnoreTexts, ObjectRef, meta, normalize, order};
use yaml::Value;

pub use ignored::IgnoredFields;

use crate::{
    AppliedObject, AppliedVersions, Definitions, Error, FailedObject, Failure, Owner, PARALLEL, Query,
    Request, Session, SessionOptions, SetWait, SetWaited, Stage, Treatment, WaitTarget, Warning, assumed,
    concurrent, evaluate, fetch, stages, wait_all,
};

const STAGE_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy)]
pub struct BatchOptions<'a> {
    pub session: SessionOptions,
    /// Groups and kinds with a stage of their own, before all others but definitions and classes.
    pub custom_stage: &'a [(Cow<'a, str>, Cow<'a, str>)],
    /// If set, the objects of a stage that differ are tried in a dry run, and written only if the API server accepts all of them.
    pub trial: bool,
    /// Timeout of the wait for the objects of a stage; default 60 s.
    pub stage_timeout: Duration,
    /// The versions of objects that equalled their manifests in earlier passes: they are not applied, and are read from the cache of the
    /// API server.
    pub seen: Option<&'a AppliedVersions>,
    /// The objects that may exist. If set, the others are not read before they are applied, and neither are those whose state is remembered
    /// in `seen` ([`Query::assumes`]).
    pub assumes: Option<&'a [ObjectRef]>,
    /// Fields of existing objects that are left to others. If set, all objects are read before.
    pub ignored: Option<&'a Arc<dyn IgnoredFields>>,
}

impl Default for BatchOptions<'_> {
    fn default() -> Self {
        Self {
            session: SessionOptions::default(),
            custom_stage: &[],
            trial: false,
            stage_timeout: STAGE_TIMEOUT,
            seen: None,
            assumes: None,
            ignored: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Created,
    Configured,
    /// It already equalled its manifest.
    Unchanged,
    Deleted,
    /// It was left as it is, because an annotation or a label asks for that.
    Skipped,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Created => "created",
            Self::Configured => "configured",
            Self::Unchanged => "unchanged",
            Self::Deleted => "deleted",
            Self::Skipped => "skipped",
        })
    }
}

/// The outcome for one manifest.
#[derive(Debug)]
pub struct ObjectOutcome {
    pub reference: ObjectRef,
    pub result: Result<Action, FailedObject>,
    /// The object as it is on the cluster now, if it is known to exist.
    pub object: Option<Arc<Value>>,
    pub warnings: Vec<Warning>,
}

impl fmt::Display for ObjectOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.result {
            Ok(action) => write!(f, "{}: {action}", self.reference),
            Err(failed) => write!(f, "{}: {failed}", self.reference),
        }
    }
}

/// The reason why later stages were not begun.
#[derive(Debug)]
pub enum Halt {
    /// The API server refused objects in a dry run: nothing of this stage was written.
    Refused(Stage),
    NotReady(Stage, SetWaited),
}

#[derive(Debug)]
pub struct AppliedSet {
    /// One outcome for each manifest of the stages that were begun, in the order of application.
    pub outcomes: Vec<ObjectOutcome>,
    pub halt: Option<Halt>,
    /// The versions of the objects that equal their manifests now.
    pub versions: AppliedVersions,
}

impl AppliedSet {
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.halt.is_none() && self.outcomes.iter().all(|outcome| outcome.result.is_ok())
    }

    /// Returns the objects that the owner keeps in its inventory: applied, unchanged and, as in the original, skipped ones, also if they are not
    /// on the cluster.
    #[must_use]
    pub fn inventory(&self) -> Vec<ObjectRef> {
        let is_listed = |outcome: &&ObjectOutcome| match outcome.result {
            Ok(Action::Created | Action::Configured | Action::Unchanged | Action::Skipped) => true,
            Ok(Action::Deleted) | Err(_) => false,
        };
        let found = self.outcomes.iter().filter(is_listed);
        found.map(|outcome| outcome.reference.clone()).collect()
    }

    /// Returns the objects to wait for: all applied ones, but no skipped ones.
    #[must_use]
    pub fn targets(&self) -> Vec<WaitTarget> {
        targets(&self.outcomes)
    }
}

/// Applies a list of manifests, stage by stage ([`Stage`]). Within a stage, the objects of equal rank ([`order::rank`]) are applied
/// eight at a time. An object that fails does not stop the others, except in a trial.
///
/// # Errors
/// If the owner or a manifest is invalid, a manifest lacks the owner's labels, the live state can't be read, or the work is
/// cancelled.
pub async fn apply_all(
    cluster: &Cluster,
    owner: &Owner,
    manifests: &[Value],
    options: BatchOptions<'_>,
) -> Result<AppliedSet, Error> {
    owner.check()?;
    let refs: Vec<ObjectRef> = manifests.iter().map(ObjectRef::of).collect::<Result<_, _>>()?;
    for (manifest, reference) in manifests.iter().zip(&refs) {
        owner.check_marked(manifest, reference)?;
    }
    let query = Query {
        refs: &refs,
        all: &refs,
        orphans: None,
        renamed: &HashSet::new(),
        // Ignored fields are adopted, so that only their newest values will do.
        seen: options.seen.filter(|_| options.ignored.is_none()),
        // A dry run has to know which namespaces are missing, since it creates none.
        assumes: options
            .assumes
            .filter(|_| options.ignored.is_none() && !options.session.dry_run),
    };
    let start = Session::start();
    let live = fetch(cluster, owner, query).await?;
    let adapted = ignored::adapt((cluster, owner), (manifests, &refs), &live, options.ignored).await?;
    let plan = stages::plan(&refs, options.custom_stage);
    let items: Vec<(Stage, Vec<Item<'_>>)> = plan
        .into_iter()
        .enumerate()
        .map(|(group, (stage, indexes))| (stage, items((manifests, &adapted), &refs, group, &indexes)))
        .collect();
    let all = items.iter().flat_map(|(_, items)| items);
    let definitions = Definitions::of(all.map(|item| (item.position, item.manifest)));
    let session = Session::new(start, cluster, owner, &live, definitions, options.session);
    let batch = Batch {
        session: &session,
        options,
    };
    let mut set = AppliedSet {
        outcomes: Vec::with_capacity(manifests.len()),
        halt: None,
        versions: AppliedVersions::default(),
    };
    for (stage, items) in items {
        set.halt = batch.stage(stage, &items, &mut set).await;
        if cluster.cancellation().is_cancelled() {
            return Err(cluster::Error::Cancelled.into());
        }
        if set.halt.is_some() {
            break;
        }
    }
    Ok(set)
}

#[derive(Debug, Clone, Copy)]
struct Item<'a> {
    manifest: &'a Value,
    reference: &'a ObjectRef,
    position: (usize, usize),
    /// True if ignored fields of the live object differ.
    adapted: bool,
}

fn items<'a>(
    (manifests, adapted): (&'a [Value], &'a HashMap<usize, Value>),
    refs: &'a [ObjectRef],
    group: usize,
    indexes: &[usize],
) -> Vec<Item<'a>> {
    let found = indexes.iter().enumerate().filter_map(|(at, index)| {
        let adapted = adapted.get(index);
        Some(Item {
            manifest: adapted.or_else(|| manifests.get(*index))?,
            reference: refs.get(*index)?,
            position: (group, at),
            adapted: adapted.is_some(),
        })
    });
    found.collect()
}

fn targets(outcomes: &[ObjectOutcome]) -> Vec<WaitTarget> {
    let applied = outcomes.iter().filter(|outcome| {
        matches!(
            outcome.result,
            Ok(Action::Created | Action::Configured | Action::Unchanged)
        )
    });
    let target = |outcome: &ObjectOutcome| WaitTarget {
        reference: outcome.reference.clone(),
        known: outcome.object.clone(),
    };
    applied.map(target).collect()
}

struct Batch<'a> {
    session: &'a Session<'a>,
    options: BatchOptions<'a>,
}

impl Batch<'_> {
    /// Applies the objects of a stage, and waits for them if others need them.
    async fn stage(&self, stage: Stage, items: &[Item<'_>], set: &mut AppliedSet) -> Option<Halt> {
        let seen = items
            .iter()
            .filter_map(|item| Some((item.position.1, self.seen(*item)?)));
        let mut done: HashMap<usize, ObjectOutcome> = seen.collect();
        if self.options.trial && !self.session.options.dry_run {
            let open = items.iter().filter(|item| !done.contains_key(&item.position.1));
            let open: Vec<Item<'_>> = open.copied().collect();
            // An apply of one object is its own trial, unless it could give up fields without need.
            if open.len() > 1 || open.iter().any(|item| item.adapted) {
                done.extend(trial::run(self.session, open).await);
            }
            let is_refused = done.values().any(|outcome| outcome.result.is_err());
            if is_refused {
                set.outcomes.extend(in_order(items, done));
                return Some(Halt::Refused(stage));
            }
        }
        let mut groups: Vec<Vec<Item<'_>>> = Vec::new();
        for item in items.iter().filter(|item| !done.contains_key(&item.position.1)) {
            match groups.last_mut() {
                Some(group)
                    if group.first().is_some_and(|first| {
                        order::rank(&first.reference.kind) == order::rank(&item.reference.kind)
                    }) =>
                {
                    group.push(*item);
                }
                _ => groups.push(vec![*item]),
            }
        }
        for group in groups {
            let work = group.into_iter().map(|item| async move {
                let outcome = self.one(item).await;
                (item.position.1, outcome)
            });
            done.extend(concurrent(work, PARALLEL).collect::<Vec<_>>().await);
        }
        let done = in_order(items, done);
        let targets = targets(&done);
        if !self.session.options.dry_run {
            note_versions(&mut set.versions, items, &done);
        }
        set.outcomes.extend(done);
        if !stage.waits() || self.session.options.dry_run || self.session.is_aborted() {
            return None;
        }
        let wait = SetWait {
            fail_fast: true,
            ..SetWait::new(self.options.stage_timeout)
        };
        let waited = wait_all(self.session.cluster, self.session.owner, targets, wait).await;
        (!waited.is_ready()).then_some(Halt::NotReady(stage, waited))
    }

    /// Returns the outcome of an object in a version that equalled the manifest before.
    fn seen(&self, item: Item<'_>) -> Option<ObjectOutcome> {
        let (session, reference) = (self.session, item.reference);
        if session.live.is_assumed(reference) {
            return None;
        }
        let live = session.live.get(reference)?;
        let is_same = self.options.seen?.is_same(&reference.id(), item.manifest, &live);
        let is_applied = session.owner.treatment(item.manifest, Some(&live)) == Treatment::Apply;
        let is_left = is_applied && !session.options.apply_unchanged && !meta::is_terminating(&live);
        (is_same && is_left).then(|| outcome(reference, Ok(Action::Unchanged), Some(live)))
    }

    /// Applies an object that was not read onto its assumed state. If that can't be done, it is read, and `None` returned: it may say itself
    /// that it is not to be applied.
    async fn assumed(&self, item: Item<'_>) -> Option<ObjectOutcome> {
        let (session, reference) = (self.session, item.reference);
        if !session.live.is_assumed(reference) {
            return None;
        }
        if matches!(treat(session, item), Ok(Treatment::Apply)) {
            let request = request(item);
            if let Some(applied) = assumed::apply(session, request).await {
                session.definitions.note(item.manifest, true);
                return Some(applied_outcome(session, item, applied).await);
            }
        }
        let read = assumed::read(session, reference).await;
        read.err().map(|failed| outcome(reference, Err(failed), None))
    }

    async fn one(&self, item: Item<'_>) -> ObjectOutcome {
        let (session, reference) = (self.session, item.reference);
        if let Some(done) = self.assumed(item).await {
            return done;
        }
        match treat(session, item) {
            Err(failed) => return outcome(reference, Err(failed), None),
            Ok(Treatment::Apply) => {}
            Ok(Treatment::Skip) => {
                let live = session.live.get(reference);
                return outcome(reference, Ok(Action::Skipped), live);
            }
            Ok(Treatment::Delete) => {
                let result = match session.delete(reference).await {
                    Ok(true) => Ok(Action::Deleted),
                    Ok(false) => Ok(Action::Unchanged),
                    Err(error) => Err(FailedObject::new(Failure::Delete(error))),
                };
                return outcome(reference, result, None);
            }
        }
        match session.apply(request(item)).await {
            Ok(applied) => applied_outcome(session, item, applied).await,
            Err(mut failed) => ObjectOutcome {
                warnings: std::mem::take(&mut failed.warnings),
                ..outcome(reference, Err(failed), None)
            },
        }
    }
}

fn request<'a>(item: Item<'a>) -> Request<'a> {
    Request {
        manifest: item.manifest,
        reference: item.reference,
        rules: &[],
        position: item.position,
        always: false,
    }
}

async fn applied_outcome(session: &Session<'_>, item: Item<'_>, applied: AppliedObject) -> ObjectOutcome {
    let action = action(session, item, &applied).await;
    ObjectOutcome {
        warnings: applied.warnings,
        ..outcome(item.reference, Ok(action), Some(applied.object))
    }
}

fn outcome(
    reference: &ObjectRef,
    result: Result<Action, FailedObject>,
    object: Option<Arc<Value>>,
) -> ObjectOutcome {
    ObjectOutcome {
        reference: reference.clone(),
        result,
        object,
        warnings: Vec::new(),
    }
}

fn in_order(items: &[Item<'_>], mut done: HashMap<usize, ObjectOutcome>) -> Vec<ObjectOutcome> {
    let order = items.iter().filter_map(|item| done.remove(&item.position.1));
    order.collect()
}

/// Remembers the versions of applied objects that have their manifest's values in all fields.
fn note_versions(versions: &mut AppliedVersions, items: &[Item<'_>], outcomes: &[ObjectOutcome]) {
    let manifests: HashMap<&ObjectRef, &Value> =
        items.iter().map(|item| (item.reference, item.manifest)).collect();
    for outcome in outcomes {
        let is_applied = matches!(
            outcome.result,
            Ok(Action::Created | Action::Configured | Action::Unchanged)
        );
        let is_whole = !outcome
            .warnings
            .iter()
            .any(|warning| matches!(warning, Warning::FieldLeft(_)));
        let known = outcome.object.as_deref().filter(|_| is_applied && is_whole);
        if let (Some(object), Some(manifest)) = (known, manifests.get(&outcome.reference)) {
            versions.remember(outcome.reference.id(), manifest, object);
        }
    }
}

/// Returns the treatment of an object, or a failure if it depends on a live object that can't be read.
fn treat(session: &Session<'_>, item: Item<'_>) -> Result<Treatment, FailedObject> {
    let unreadable = session.live.unreadable.get(item.reference);
    if let Some(error) = unreadable.filter(|_| session.owner.needs_live(item.manifest)) {
        return Err(FailedObject::new(Failure::Read(Arc::clone(error))));
    }
    let live = session.live.get(item.reference);
    Ok(session.owner.treatment(item.manifest, live.as_deref()))
}

/// Returns the change of an object. An invalid rule about differences hides none.
async fn action(session: &Session<'_>, item: Item<'_>, applied: &AppliedObject) -> Action {
    let Some(before) = session.live.get(item.reference) else {
        return Action::Created;
    };
    if applied.recreated {
        return Action::Created;
    }
    if !applied.taken_over && is_same(session, item.manifest, before, &applied.object).await {
        Action::Unchanged
    } else {
        Action::Configured
    }
}

async fn is_same(session: &Session<'_>, manifest: &Value, before: Arc<Value>, after: &Arc<Value>) -> bool {
    if Arc::ptr_eq(&before, after) {
        return true;
    }
    let ignored = IgnoreTexts::of(manifest, &session.owner.vocabulary, []);
    let after = Arc::clone(after);
    let compared = evaluate(session.cluster, ignored.is_trivial(), move || {
        let mut ignore = ignored.compile().unwrap_or_default();
        Ok(normalize(&before, &mut ignore)? == normalize(&after, &mut ignore)?)
    });
    compared.await.unwrap_or(false)
}
