//! Finding, without changing anything, which objects are not as rendered.

use std::{collections::HashSet, sync::Arc};

use cluster::{ApplyOptions, Cluster};
use futures::{StreamExt as _, stream};
use kluctl::Rendered;
use objects::{Ignore, ObjectId, ObjectRef, annotations, hooks, meta, normalize, rules::Rules};
use yaml::Value;

use crate::{
    Error, ObjectError, PARALLEL, Seen,
    deploy::{Attempt, apply},
    live::{self, Live, Query},
};

/// How to compare.
#[derive(Debug, Clone, Copy, Default)]
pub struct CompareOptions<'a> {
    /// What is remembered of earlier passes: objects that were not changed since need no comparison.
    pub seen: Option<&'a Seen>,
    /// Also find what is no longer rendered, which needs a list of every kind of the cluster.
    pub orphans: bool,
}

/// What a comparison found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Comparison {
    /// Objects that are not there.
    pub missing: HashSet<ObjectId>,
    /// Objects that an apply would change.
    pub changed: HashSet<ObjectId>,
    /// Objects that carry the discriminator but are not rendered, if they were looked for.
    pub orphans: Vec<ObjectRef>,
    /// Objects that could not be compared.
    pub errors: Vec<ObjectError>,
    /// Warnings.
    pub warnings: Vec<ObjectError>,
    /// What to remember.
    pub seen: Seen,
}

impl Comparison {
    /// What is to be applied: missing, changed, and what could not be compared (applying says why).
    #[must_use]
    pub fn to_apply(&self) -> HashSet<ObjectId> {
        let failed = self
            .errors
            .iter()
            .filter_map(|error| Some(error.reference.as_ref()?.id()));
        self.missing
            .iter()
            .chain(&self.changed)
            .cloned()
            .chain(failed)
            .collect()
    }

    /// Whether everything is as rendered.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.missing.is_empty()
            && self.changed.is_empty()
            && self.errors.is_empty()
            && self.orphans.is_empty()
    }
}

/// What was found about one object.
enum Verdict {
    Same(Arc<Value>),
    /// It is not there, and should not be.
    Gone,
    Missing,
    Changed,
}

/// Compares what was rendered with what is live. Nothing is written: the API server is asked what an apply would give.
///
/// # Errors
/// When nothing was rendered, the cluster can't be asked for its state, or the work is cancelled.
pub async fn compare(
    cluster: &Cluster,
    rendered: &Rendered,
    options: CompareOptions<'_>,
) -> Result<Comparison, Error> {
    let refs = live::references(rendered)?;
    if refs.is_empty() {
        return Err(Error::EmptyRender);
    }
    let discriminator = rendered.target.discriminator.as_deref();
    let query = Query {
        refs: &refs,
        all: &refs,
        discriminator,
        orphans: None,
        renamed: &HashSet::new(),
    };
    let live = &live::fetch(cluster, query).await?;
    let mut comparison = Comparison::default();
    let objects = rendered
        .items
        .iter()
        .flat_map(|item| item.objects.iter().map(move |object| (item, object)));
    let looks = objects
        .zip(&refs)
        // Hooks come and go; how they are now says nothing.
        .filter(|((_, manifest), _)| hooks::read(manifest).hook.is_none())
        .map(|((item, manifest), reference)| async move {
            let looking = Looking {
                cluster,
                live,
                seen: options.seen,
                rules: &item.rules,
            };
            let mut warnings = Vec::new();
            let verdict = looking.look(manifest, reference, &mut warnings).await;
            (manifest, reference, verdict, warnings)
        });
    // Collected, because a stream that holds the closure can't be proven to be Send.
    let mut comparisons = stream::iter(looks.collect::<Vec<_>>()).buffer_unordered(PARALLEL);
    while let Some((manifest, reference, verdict, warnings)) = comparisons.next().await {
        comparison
            .warnings
            .extend(warnings.into_iter().map(|text| ObjectError::of(reference, text)));
        match verdict {
            Ok(Verdict::Same(object)) => comparison.seen.remember(reference.id(), manifest, &object),
            Ok(Verdict::Gone) => {}
            Ok(Verdict::Missing) => {
                comparison.missing.insert(reference.id());
            }
            Ok(Verdict::Changed) => {
                comparison.changed.insert(reference.id());
            }
            Err(message) => comparison.errors.push(ObjectError::of(reference, message)),
        }
    }
    drop(comparisons);
    if cluster.cancellation().is_cancelled() {
        return Err(Error::Cancelled);
    }
    if options.orphans {
        comparison.orphans = live::orphans(cluster, &refs, discriminator, &mut comparison.warnings).await?;
    }
    comparison.errors.sort();
    comparison.warnings.sort();
    comparison.warnings.dedup();
    Ok(comparison)
}

/// What one object is looked at with.
struct Looking<'a> {
    cluster: &'a Cluster,
    live: &'a Live,
    seen: Option<&'a Seen>,
    rules: &'a Rules,
}

impl Looking<'_> {
    async fn look(
        &self,
        manifest: &Value,
        reference: &ObjectRef,
        warnings: &mut Vec<String>,
    ) -> Result<Verdict, String> {
        let (cluster, live, seen) = (self.cluster, self.live, self.seen);
        if let Some(error) = live.unreadable.get(reference) {
            return Err(error.clone());
        }
        let doomed = meta::flag(manifest, annotations::DELETE);
        let Some(object) = live.rendered.get(reference) else {
            return Ok(if doomed { Verdict::Gone } else { Verdict::Missing });
        };
        if doomed {
            return Ok(Verdict::Changed);
        }
        if meta::is_terminating(object) {
            // It will be missing in a moment, and must come back then.
            return Ok(Verdict::Missing);
        }
        if seen.is_some_and(|seen| seen.is_same(&reference.id(), manifest, object)) {
            return Ok(Verdict::Same(Arc::clone(object)));
        }
        let attempt = Attempt {
            manifest,
            reference,
            rules: &self.rules.conflict_resolution,
            live: Some(Arc::clone(object)),
        };
        let options = ApplyOptions {
            dry_run: true,
            ..ApplyOptions::default()
        };
        let applied = apply(cluster, attempt, options)
            .await
            .map_err(|failure| failure.to_string())?;
        warnings.extend(applied.warnings);
        let ignore = Ignore::of(manifest, &self.rules.ignore_for_diff).map_err(|error| error.to_string())?;
        let normalized = |value: &Value| normalize(value, &ignore).map_err(|error| error.to_string());
        // Equal to the letter, not as sets: the order of a container's arguments matters.
        let wanted = normalized(&applied.object)?;
        if normalized(object)? == wanted {
            return Ok(Verdict::Same(Arc::clone(object)));
        }
        // A controller may have changed the object between the list and the trial: then it is equal by now.
        let current = cluster.get(reference).await.map_err(|error| error.to_string())?;
        match current {
            Some(current) if normalized(&current)? == wanted => Ok(Verdict::Same(Arc::new(current))),
            Some(_) => Ok(Verdict::Changed),
            None => Ok(Verdict::Missing),
        }
    }
}
