//! Checks that all rendered objects exist and are ready.

use std::{collections::HashSet, time::Duration};

use apply::LiveObjects;
use cluster::Cluster;
use jiff::Timestamp;
use kluctl::{Rendered, annotations, hooks};
use objects::{ObjectId, ObjectRef, meta};
use yaml::Value;

use super::{live, owner::VOCABULARY};
use results::{ObjectError, Origin, ValidateResult};

use crate::Error;

/// The timeout and the pauses of repeated validations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValidationPolling {
    pub limit: Duration,
    pub pause: Duration,
}

/// Checks that all rendered objects exist and are ready.
pub async fn validate(cluster: &Cluster, rendered: &Rendered) -> Result<ValidateResult, Error> {
    validate_besides(cluster, rendered, &HashSet::new()).await
}

/// Checks all rendered objects but those that are known to be ready, because they were applied a moment ago
/// ([`results::CommandResult::ready`]).
pub async fn validate_besides(
    cluster: &Cluster,
    rendered: &Rendered,
    ready: &HashSet<ObjectId>,
) -> Result<ValidateResult, Error> {
    let refs = live::references(rendered)?;
    check(cluster, rendered, &refs, ready).await
}

/// Validates until everything is ready or the timeout ends; `attempt` is called with every result but the last one.
pub async fn validate_until(
    cluster: &Cluster,
    rendered: &Rendered,
    polling: ValidationPolling,
    mut attempt: impl FnMut(&ValidateResult),
) -> Result<ValidateResult, Error> {
    let deadline = tokio::time::Instant::now() + polling.limit;
    let mut result = validate(cluster, rendered).await?;
    while !(result.errors.is_empty() && result.ready)
        && tokio::time::Instant::now() + polling.pause <= deadline
    {
        attempt(&result);
        cluster.pause(polling.pause).await?;
        let start = result.start;
        result = validate(cluster, rendered).await?;
        result.start = start;
    }
    Ok(result)
}

async fn check(
    cluster: &Cluster,
    rendered: &Rendered,
    refs: &[ObjectRef],
    ready: &HashSet<ObjectId>,
) -> Result<ValidateResult, Error> {
    let start = Timestamp::now();
    let discriminator = rendered.target.discriminator.as_deref();
    let is_open = |reference: &&ObjectRef| !ready.contains(&reference.id());
    let open: Vec<ObjectRef> = refs.iter().filter(is_open).cloned().collect();
    let live = live::fetch_all(cluster, &open, discriminator).await?;
    let mut result = ValidateResult {
        ready: true,
        discriminator: discriminator.map(str::to_owned),
        start,
        end: start,
        origin: Origin::default(),
        errors: Vec::new(),
        warnings: Vec::new(),
        results: Vec::new(),
    };
    for (manifest, reference) in rendered.objects().zip(refs) {
        let is_ready = ready.contains(&reference.id());
        object(cluster, &live, (manifest, reference, is_ready), &mut result).await?;
    }
    for list in [&mut result.errors, &mut result.warnings] {
        list.sort();
        list.dedup();
    }
    result.end = Timestamp::now();
    Ok(result)
}

async fn object(
    cluster: &Cluster,
    live: &LiveObjects,
    (manifest, reference, is_ready): (&Value, &ObjectRef, bool),
    result: &mut ValidateResult,
) -> Result<(), Error> {
    let about = |texts: Vec<String>| texts.into_iter().map(|text| ObjectError::of(reference, text));
    let found = live.get(reference);
    if meta::flag(manifest, annotations::DELETE) {
        if found.is_some() {
            let message = "object is marked for deletion but still exists on the target cluster";
            result.errors.push(ObjectError::of(reference, message));
        }
        return Ok(());
    }
    let parsed = hooks::parse(manifest);
    result.errors.extend(about(parsed.errors));
    result.warnings.extend(about(parsed.warnings));
    let is_hook = parsed.hook.is_some();
    if is_ready || parsed.hook.is_some_and(|hook| !hook.stays()) {
        return Ok(());
    }
    let Some(found) = found else {
        if is_hook && apply::ends_by_deletion(manifest) {
            return Ok(());
        }
        let unreadable = live.unreadable.get(reference);
        let message = unreadable.map_or_else(|| "object not found".to_owned(), ToString::to_string);
        result.errors.push(ObjectError::of(reference, message));
        return Ok(());
    };
    let readiness = apply::readiness(cluster, &VOCABULARY, &found, true).await?;
    result.ready &= readiness.ready && readiness.errors.is_empty();
    result.errors.extend(about(readiness.errors));
    result.warnings.extend(about(readiness.warnings));
    result.results.extend(
        readiness
            .results
            .into_iter()
            .map(|found| (reference.clone(), found)),
    );
    Ok(())
}
