//! One item: its deletions, its hooks, its objects one after the other, then waiting for those that must be ready.

use std::collections::BTreeSet;

use kluctl::{
    Item, ObjectSelector, annotations,
    hooks::{Phase, Rollout},
};
use objects::{ObjectRef, meta};
use yaml::Value;

use super::{
    Run,
    hooks::{self, ItemHook},
    outcome::ItemOutcome,
    selector::{self, SelectError},
    work::Work,
};
use crate::ObjectError;

/// Does all the work of an item.
pub(super) async fn run(run: &Run<'_>, index: usize, item: &Item) -> ItemOutcome {
    let mut work = Work::begin(run, index, item);
    all(&mut work).await;
    work.end()
}

/// Deletes, runs hooks, applies and waits, in this order.
async fn all(work: &mut Work<'_, '_>) {
    // The references of all objects were read before the first item began.
    let item = work.item;
    let refs: Vec<Option<ObjectRef>> = item
        .objects
        .iter()
        .map(|object| ObjectRef::of(object).ok())
        .collect();
    let chosen: Vec<(usize, &Value, &ObjectRef)> = item
        .objects
        .iter()
        .zip(&refs)
        .enumerate()
        .filter_map(|(position, (object, reference))| Some((position, object, reference.as_ref()?)))
        .filter(|(_, _, reference)| work.run.options.chooses(reference))
        .collect();
    let whole = work.run.options.only.is_none();
    let to_wait_for = if whole {
        resolve(work, &item.wait_readiness_objects).await
    } else {
        Vec::new()
    };
    if whole {
        for reference in resolve(work, &item.delete_objects).await {
            work.delete(&reference).await;
        }
    }
    let (deletions, mut rest): (Vec<_>, Vec<_>) = chosen
        .into_iter()
        .partition(|(_, object, _)| meta::flag(object, annotations::DELETE));
    for (_, _, reference) in deletions {
        work.delete(reference).await;
    }
    let mut hooks: Vec<ItemHook<'_>> = Vec::new();
    rest.retain(|(position, manifest, reference)| {
        let hook = hooks::parse(work, manifest, reference, *position);
        let is_hook = hook.is_some();
        hooks.extend(hook.filter(|_| whole));
        !is_hook
    });
    let is_there = |reference: &ObjectRef| work.run.session.live.objects.contains_key(reference);
    let rollout = if refs.iter().flatten().any(is_there) {
        Rollout::Upgrade
    } else {
        Rollout::Initial
    };
    hooks::run(work, &hooks, Phase::Before, rollout).await;
    if work.stopped {
        return;
    }
    apply_all(work, rest, to_wait_for).await;
    if !work.run.session.is_aborted() && !work.stopped {
        hooks::run(work, &hooks, Phase::After, rollout).await;
    }
}

async fn apply_all(
    work: &mut Work<'_, '_>,
    rest: Vec<(usize, &Value, &ObjectRef)>,
    mut to_wait_for: Vec<ObjectRef>,
) {
    for (position, manifest, reference) in rest {
        if work.run.session.is_aborted() {
            return;
        }
        let applied = work.apply(manifest, reference, position, false).await;
        let waits = work.item.wait_readiness || meta::flag(manifest, annotations::WAIT_READINESS);
        if applied && waits && !to_wait_for.contains(reference) {
            to_wait_for.push(reference.clone());
        }
    }
    if work.run.options.no_wait || work.run.options.dry_run {
        return;
    }
    for reference in to_wait_for {
        if work.run.session.is_aborted() || work.stopped {
            return;
        }
        work.wait_for(&reference, work.run.options.readiness_timeout)
            .await;
    }
}

/// Returns the objects that selectors name, each once.
async fn resolve(work: &mut Work<'_, '_>, selectors: &[ObjectSelector]) -> Vec<ObjectRef> {
    let mut found = BTreeSet::new();
    for selector in selectors {
        match selector::select(work.run, selector).await {
            Ok(refs) => found.extend(refs),
            Err(SelectError::UnknownKind(message)) => work.error(ObjectError::general(message)),
            Err(SelectError::Cluster(error)) => {
                work.error(ObjectError::general(error.to_string()).denied(error.is_denied()));
            }
        }
    }
    found.into_iter().collect()
}
