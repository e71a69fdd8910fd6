//! A dry run of all objects of a stage before any of them is written.

use std::{collections::HashMap, sync::Arc};

use futures::StreamExt as _;

use super::{Action, Item, ObjectOutcome, is_same, outcome, treat};
use crate::{
    ApplyError, FailedObject, Failure, PARALLEL, Session, Treatment, assumed, concurrent, immutable,
    object::{Attempt, Flags, apply},
    unchanged,
};

/// Tries the objects of a stage, eight at a time. Returns the outcomes of those that are finished by that: unchanged ones, and those
/// that the API server refuses. Objects without an outcome are to be applied.
pub(super) async fn run(session: &Session<'_>, items: Vec<Item<'_>>) -> HashMap<usize, ObjectOutcome> {
    let trials = items
        .into_iter()
        .map(|item| async move { (item.position.1, one(session, item).await) });
    let found = concurrent(trials, PARALLEL).filter_map(|(at, outcome)| async move { Some((at, outcome?)) });
    found.collect().await
}

async fn one(session: &Session<'_>, item: Item<'_>) -> Option<ObjectOutcome> {
    let (manifest, reference, owner) = (item.manifest, item.reference, session.owner);
    // Only a state that was read tells an unchanged object, or one that is to be left alone.
    if session.live.is_assumed(reference)
        && let Err(failed) = assumed::read(session, reference).await
    {
        return Some(outcome(reference, Err(failed), None));
    }
    match treat(session, item) {
        Err(failed) => return Some(outcome(reference, Err(failed), None)),
        Ok(Treatment::Skip | Treatment::Delete) => return None,
        Ok(Treatment::Apply) => {}
    }
    let live = session.live.get(reference);
    let takes_over = live
        .as_ref()
        .is_some_and(|live| owner.takeover_patch(manifest, live).is_some());
    if !takes_over && let Some(object) = unchanged::find(session, manifest, reference).await {
        return Some(outcome(reference, Ok(Action::Unchanged), Some(object)));
    }
    let attempt = Attempt {
        manifest,
        reference,
        rules: &[],
        live: live.clone(),
    };
    let flags = Flags {
        dry_run: true,
        force: session.options.force,
    };
    let refused = match apply(session.cluster, owner, attempt, flags).await {
        Ok(applied) => {
            let live = live.filter(|_| !takes_over)?;
            let applied = Arc::new(applied.object);
            let is_same = is_same(session, manifest, Arc::clone(&live), &applied).await;
            return is_same.then(|| outcome(reference, Ok(Action::Unchanged), Some(live)));
        }
        Err(error) => error,
    };
    if may_succeed(session, item, &refused).await {
        return None;
    }
    Some(outcome(
        reference,
        Err(FailedObject::new(Failure::Apply(refused))),
        None,
    ))
}

/// Returns true if the apply may succeed though the dry run was refused: the object is deleted and created again, or its definition
/// was applied a moment ago.
async fn may_succeed(session: &Session<'_>, item: Item<'_>, error: &ApplyError) -> bool {
    if matches!(error, ApplyError::Cluster(cluster::Error::NoMatch { .. })) {
        return session.awaits_definition(item.reference, item.position);
    }
    let Some(live) = session.live.get(item.reference) else {
        return false;
    };
    session.recreates(item.manifest, Some(&live))
        && immutable::needs_recreation(
            session.cluster,
            session.owner,
            (item.manifest, item.reference),
            error,
        )
        .await
}
