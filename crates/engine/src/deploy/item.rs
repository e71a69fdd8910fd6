//! One item: its deletions, its hooks, its objects one after the other, then the waits for objects that must be ready.

use std::collections::BTreeSet;

use apply::WaitOptions;
use kluctl::{
    Item, ObjectSelector, annotations,
    hooks::{Phase, Rollout},
};
use objects::{ObjectRef, meta};
use yaml::Value;

use super::{
    Run,
    hooks::{self, ItemHook},
    item_pass::ItemPass,
    outcome::ItemOutcome,
    selector::{self, SelectError},
};
use results::ObjectError;

pub(super) async fn run(run: &Run<'_>, index: usize, item: &Item) -> ItemOutcome {
    let mut pass = ItemPass::start(run, index, item);
    all(&mut pass).await;
    pass.finish()
}

async fn all(pass: &mut ItemPass<'_, '_>) {
    // The references of all objects were read before the first item began.
    let item = pass.item;
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
        .filter(|(_, _, reference)| pass.run.options.chooses(reference))
        .collect();
    let whole = pass.run.options.only.is_none();
    let to_wait_for = if whole {
        let named = resolve(pass, &item.wait_readiness_objects).await;
        named.into_iter().map(|reference| (reference, false)).collect()
    } else {
        Vec::new()
    };
    for reference in resolve(pass, &item.delete_objects).await {
        if pass.run.options.chooses(&reference) {
            pass.delete(&reference).await;
        }
    }
    let (deletions, mut rest): (Vec<_>, Vec<_>) = chosen
        .into_iter()
        .partition(|(_, object, _)| meta::flag(object, annotations::DELETE));
    for (_, _, reference) in deletions {
        pass.delete(reference).await;
    }
    let mut hooks: Vec<ItemHook<'_>> = Vec::new();
    rest.retain(|(position, manifest, reference)| {
        let hook = hooks::parse(pass, manifest, reference, *position);
        let is_hook = hook.is_some();
        hooks.extend(hook.filter(|_| whole));
        !is_hook
    });
    let is_there = |reference: &ObjectRef| pass.run.session.live.get(reference).is_some();
    let rollout = if refs.iter().flatten().any(is_there) {
        Rollout::Upgrade
    } else {
        Rollout::Initial
    };
    hooks::run(pass, &hooks, Phase::Before, rollout).await;
    if pass.stopped {
        return;
    }
    apply_all(pass, rest, to_wait_for).await;
    if !pass.run.session.is_aborted() && !pass.stopped {
        hooks::run(pass, &hooks, Phase::After, rollout).await;
    }
}

async fn apply_all(
    pass: &mut ItemPass<'_, '_>,
    rest: Vec<(usize, &Value, &ObjectRef)>,
    mut to_wait_for: Vec<(ObjectRef, bool)>,
) {
    for (position, manifest, reference) in rest {
        if pass.run.session.is_aborted() {
            return;
        }
        let applied = pass.apply(manifest, reference, position, false).await;
        let waits = pass.item.wait_readiness || meta::flag(manifest, annotations::WAIT_READINESS);
        if applied && waits && !to_wait_for.iter().any(|(other, _)| other == reference) {
            to_wait_for.push((reference.clone(), apply::ends_by_deletion(manifest)));
        }
    }
    if pass.run.options.no_wait || pass.run.options.dry_run {
        return;
    }
    let limit = pass.run.options.readiness_timeout;
    for (reference, ends_by_deletion) in to_wait_for {
        if pass.run.session.is_aborted() || pass.stopped {
            return;
        }
        let options = WaitOptions {
            limit,
            existed: ends_by_deletion,
            ends_by_deletion,
        };
        pass.wait_for(&reference, options).await;
    }
}

/// Resolves selectors; each object is returned once.
async fn resolve(pass: &mut ItemPass<'_, '_>, selectors: &[ObjectSelector]) -> Vec<ObjectRef> {
    let mut found = BTreeSet::new();
    for selector in selectors {
        match selector::select(pass.run, selector).await {
            Ok(refs) => found.extend(refs),
            Err(SelectError::UnknownKind(message)) => pass.error(ObjectError::general(message)),
            Err(SelectError::Cluster(error)) => {
                pass.error(ObjectError::general(error.to_string()).denied(error.is_denied()));
            }
        }
    }
    found.into_iter().collect()
}
