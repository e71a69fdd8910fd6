//! Looking whether everything that was rendered is there and ready.

use std::{collections::HashSet, time::Duration};

use cluster::Cluster;
use jiff::Timestamp;
use kluctl::Rendered;
use objects::{ObjectRef, annotations, hooks, meta, readiness::ValidateResult as AnnotationResult};
use yaml::Value;

use crate::{
    Error, ObjectError, Origin,
    live::{self, Live, Query},
    result,
};

/// What a validation found.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidateResult {
    /// Whether everything is there and ready.
    pub ready: bool,
    /// The discriminator.
    pub discriminator: Option<String>,
    /// Start time.
    pub start: Timestamp,
    /// End time.
    pub end: Timestamp,
    /// The origin.
    pub origin: Origin,
    /// What is missing or not ready.
    pub errors: Vec<ObjectError>,
    /// Warnings.
    pub warnings: Vec<ObjectError>,
    /// Results that annotations of objects carry.
    pub results: Vec<(ObjectRef, AnnotationResult)>,
}

impl ValidateResult {
    /// Why the validation failed, if it did: how many errors, and the first of them.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        result::failure("validate", &self.errors)
    }
}

/// How long to look again while something is not ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// How long.
    pub limit: Duration,
    /// How long between two looks.
    pub pause: Duration,
}

/// Looks at the live state of everything that was rendered.
///
/// # Errors
/// Fails when the state of the cluster can't be read, or the work is cancelled.
pub async fn validate(cluster: &Cluster, rendered: &Rendered) -> Result<ValidateResult, Error> {
    let refs = live::references(rendered)?;
    look(cluster, rendered, &refs).await
}

/// The same, until everything is ready or the patience ends; `attempt` is told what each look but the last one found.
///
/// # Errors
/// Fails when the state of the cluster can't be read, or the work is cancelled.
pub async fn validate_until(
    cluster: &Cluster,
    rendered: &Rendered,
    patience: Patience,
    mut attempt: impl FnMut(&ValidateResult),
) -> Result<ValidateResult, Error> {
    let deadline = tokio::time::Instant::now() + patience.limit;
    let mut result = validate(cluster, rendered).await?;
    while !(result.errors.is_empty() && result.ready)
        && tokio::time::Instant::now() + patience.pause <= deadline
    {
        attempt(&result);
        cluster.pause(patience.pause).await?;
        let start = result.start;
        result = validate(cluster, rendered).await?;
        result.start = start;
    }
    Ok(result)
}

async fn look(cluster: &Cluster, rendered: &Rendered, refs: &[ObjectRef]) -> Result<ValidateResult, Error> {
    let start = Timestamp::now();
    let discriminator = rendered.target.discriminator.as_deref();
    let query = Query {
        refs,
        all: refs,
        discriminator,
        orphans: None,
        renamed: &HashSet::new(),
    };
    let live = live::fetch(cluster, query).await?;
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
        object(cluster, &live, manifest, reference, &mut result).await?;
    }
    for list in [&mut result.errors, &mut result.warnings] {
        list.sort();
        list.dedup();
    }
    result.end = Timestamp::now();
    Ok(result)
}

/// Looks at one object.
async fn object(
    cluster: &Cluster,
    live: &Live,
    manifest: &Value,
    reference: &ObjectRef,
    result: &mut ValidateResult,
) -> Result<(), Error> {
    let about = |texts: Vec<String>| texts.into_iter().map(|text| ObjectError::of(reference, text));
    let found = live.rendered.get(reference);
    if meta::flag(manifest, annotations::DELETE) {
        if found.is_some() {
            let message = "object is marked for deletion but still exists on the target cluster";
            result.errors.push(ObjectError::of(reference, message));
            result.ready = false;
        }
        return Ok(());
    }
    let reading = hooks::read(manifest);
    result.errors.extend(about(reading.errors));
    result.warnings.extend(about(reading.warnings));
    if reading.hook.is_some_and(|hook| !hook.stays()) {
        return Ok(());
    }
    let Some(found) = found else {
        let unreadable = live.unreadable.get(reference).map(String::as_str);
        let message = unreadable.unwrap_or("object not found");
        result.errors.push(ObjectError::of(reference, message));
        result.ready = false;
        return Ok(());
    };
    let readiness = cluster.readiness(found, true).await?;
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
