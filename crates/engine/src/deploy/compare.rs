//! Comparison of rendered with live objects, without changing anything.

use std::collections::HashSet;

use apply::{AppliedVersions, Completeness, Desired, Drift, OrphanSearch, SearchedKinds};
use cluster::Cluster;
use kluctl::{Inclusion, Rendered, hooks};
use objects::{ObjectId, ObjectRef};

use super::{
    live,
    owner::{VOCABULARY, owner},
    selector::existing,
    words,
};
use crate::Error;
use results::ObjectError;

#[derive(Debug, Clone, Copy, Default)]
pub struct CompareOptions<'a> {
    /// The versions of objects that equalled their manifests in earlier passes: these need no comparison.
    pub versions: Option<&'a AppliedVersions>,
    /// If set, objects that are no longer rendered are searched too, which needs a list of every kind that may have any.
    pub orphans: bool,
    /// All objects that may have been deployed before, if they are known ([`apply::OrphanSearch::previous`]).
    pub previous: Option<&'a [ObjectRef]>,
    /// If set, fields that other managers hold are differences: a deployment takes them over ([`crate::DeployOptions::force_apply`]).
    pub force_apply: bool,
    /// The part of the project that was rendered; all of it if absent. Other objects are no orphans.
    pub inclusion: Option<&'a Inclusion>,
    /// The only kinds that may have orphans, if they are known ([`apply::OrphanSearch::kinds`]).
    pub kinds: Option<&'a SearchedKinds>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Comparison {
    pub missing: HashSet<ObjectId>,
    /// Objects that an apply would change, or that are to be deleted and exist.
    pub changed: HashSet<ObjectId>,
    /// Objects with the discriminator that are not rendered, if they were searched.
    pub orphans: Vec<ObjectRef>,
    pub completeness: Completeness,
    pub errors: Vec<ObjectError>,
    pub warnings: Vec<ObjectError>,
    /// The versions of the objects that equal their manifests.
    pub versions: AppliedVersions,
    /// The unchanged objects of kinds without a status that are ready: a validation right after the comparison need not read
    /// them again ([`crate::validate_besides`]).
    pub ready: HashSet<ObjectId>,
}

impl Comparison {
    /// Returns the objects to apply: missing, changed, and not comparable ones, because applying the latter reports the reason.
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

    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.missing.is_empty()
            && self.changed.is_empty()
            && self.errors.is_empty()
            && self.orphans.is_empty()
    }
}

/// Compares rendered with live objects. Nothing is written: the API server returns, in a dry run, the result of an apply.
pub async fn compare(
    cluster: &Cluster,
    rendered: &Rendered,
    options: CompareOptions<'_>,
) -> Result<Comparison, Error> {
    let refs = live::references(rendered)?;
    let discriminator = rendered.target.discriminator.as_deref();
    let live = live::fetch_all(cluster, &refs, discriminator).await?;
    let objects = rendered
        .items
        .iter()
        .flat_map(|item| item.objects.iter().map(move |object| (item, object)));
    let desired: Vec<Desired<'_>> = objects
        .zip(&refs)
        // Hooks come and go: their state means nothing.
        .filter(|((_, manifest), _)| hooks::parse(manifest).hook.is_none())
        .map(|((item, manifest), reference)| Desired {
            manifest,
            reference,
            rules: &item.rules,
        })
        .collect();
    let owner = owner(discriminator);
    let compared = apply::compare(
        cluster,
        &owner,
        &live,
        desired,
        options.versions,
        options.force_apply,
    )
    .await;
    let mut comparison = Comparison::default();
    for one in compared {
        let Desired {
            manifest, reference, ..
        } = one.desired;
        let warnings = one.warnings.into_iter();
        comparison
            .warnings
            .extend(warnings.map(|warning| words::warning(reference, warning)));
        match one.drift {
            Ok(Drift::None(object)) => {
                comparison.versions.remember(reference.id(), manifest, &object);
                if apply::is_ready_at_once(&VOCABULARY, reference, &object) {
                    comparison.ready.insert(reference.id());
                }
            }
            Ok(Drift::Deleted | Drift::Skipped) => {}
            Ok(Drift::Missing) => {
                comparison.missing.insert(reference.id());
            }
            Ok(Drift::Changed) => {
                comparison.changed.insert(reference.id());
            }
            Err(error) => comparison
                .errors
                .push(ObjectError::of(reference, error.to_string())),
        }
    }
    for selector in rendered.items.iter().flat_map(|item| &item.delete_objects) {
        match existing(cluster, selector).await {
            Ok(found) => comparison.changed.extend(found.iter().map(ObjectRef::id)),
            Err(error) => comparison.errors.push(ObjectError::general(error.to_string())),
        }
    }
    if cluster.cancellation().is_cancelled() {
        return Err(Error::Cancelled);
    }
    if options.orphans {
        let warnings = &mut comparison.warnings;
        let search = OrphanSearch {
            filter: None,
            previous: options.previous,
            kinds: options.kinds,
        };
        (comparison.orphans, comparison.completeness) =
            live::orphans(cluster, &refs, discriminator, options.inclusion, search, warnings).await?;
    }
    comparison.errors.sort();
    comparison.warnings.sort();
    comparison.warnings.dedup();
    Ok(comparison)
}
