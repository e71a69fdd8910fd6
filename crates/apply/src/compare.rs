//! Comparison of manifests with live objects, without changing anything.

use std::sync::Arc;

use cluster::Cluster;
use futures::StreamExt as _;
use objects::{IgnoreTexts, ObjectRef, meta, normalize, rules::Rules};
use yaml::Value;

use crate::{
    AppliedVersions, CompareError, LiveObjects, Owner, PARALLEL, Treatment, Warning, concurrent, evaluate,
    object::{Attempt, Flags, apply},
};

#[derive(Debug, Clone, Copy)]
pub struct Desired<'a> {
    pub manifest: &'a Value,
    pub reference: &'a ObjectRef,
    pub rules: &'a Rules,
}

/// The difference between a manifest and its live object.
#[derive(Debug, Clone, PartialEq)]
pub enum Drift {
    None(Arc<Value>),
    /// The manifest is marked for deletion, and nothing is live.
    Deleted,
    /// Nothing is live, and an annotation or a label forbids to apply the manifest.
    Skipped,
    /// Nothing is live, or it is being deleted.
    Missing,
    /// An apply would change, or delete, the live object.
    Changed,
}

#[derive(Debug)]
pub struct Compared<'a> {
    pub desired: Desired<'a>,
    pub drift: Result<Drift, CompareError>,
    pub warnings: Vec<Warning>,
}

/// Compares manifests with their live objects: the API server is asked, in a dry run, for the result of an apply, which takes over
/// conflicting fields if `force` is true. Objects of a known version need no request. The results are not in the order of the
/// manifests.
pub async fn compare<'a>(
    cluster: &Cluster,
    owner: &Owner,
    live: &LiveObjects,
    desired: Vec<Desired<'a>>,
    known: Option<&AppliedVersions>,
    force: bool,
) -> Vec<Compared<'a>> {
    let comparisons = desired.into_iter().map(|desired| async move {
        let comparison = Comparison {
            cluster,
            owner,
            live,
            known,
            force,
        };
        let mut warnings = Vec::new();
        let drift = comparison.drift(desired, &mut warnings).await;
        Compared {
            desired,
            drift,
            warnings,
        }
    });
    concurrent(comparisons, PARALLEL).collect().await
}

struct Comparison<'a> {
    cluster: &'a Cluster,
    owner: &'a Owner,
    live: &'a LiveObjects,
    known: Option<&'a AppliedVersions>,
    force: bool,
}

impl Comparison<'_> {
    async fn drift(&self, desired: Desired<'_>, warnings: &mut Vec<Warning>) -> Result<Drift, CompareError> {
        let (owner, live) = (self.owner, self.live);
        let Desired {
            manifest, reference, ..
        } = desired;
        if let Some(error) = live.unreadable.get(reference) {
            return Err(CompareError::Unreadable(Arc::clone(error)));
        }
        let object = live.get(reference);
        let treatment = owner.treatment(manifest, object.as_deref());
        if treatment == Treatment::Skip {
            return Ok(match object {
                Some(object) => Drift::None(object),
                None => Drift::Skipped,
            });
        }
        let is_deletion = treatment == Treatment::Delete;
        let Some(object) = object else {
            return Ok(if is_deletion {
                Drift::Deleted
            } else {
                Drift::Missing
            });
        };
        if is_deletion {
            return Ok(Drift::Changed);
        }
        if meta::is_terminating(&object) {
            // It will be missing in a moment, and must be created again then.
            return Ok(Drift::Missing);
        }
        if self
            .known
            .is_some_and(|known| known.is_same(&reference.id(), manifest, &object))
        {
            return Ok(Drift::None(object));
        }
        if owner.takeover_patch(manifest, &object).is_some() {
            return Ok(Drift::Changed);
        }
        self.dry_run(desired, object, warnings).await
    }

    /// Compares a live object with the result of an apply.
    async fn dry_run(
        &self,
        desired: Desired<'_>,
        object: Arc<Value>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Drift, CompareError> {
        let (cluster, owner) = (self.cluster, self.owner);
        let Desired {
            manifest,
            reference,
            rules,
        } = desired;
        let attempt = Attempt {
            manifest,
            reference,
            rules: &rules.conflict_resolution,
            live: Some(Arc::clone(&object)),
        };
        let flags = Flags {
            dry_run: true,
            force: self.force,
        };
        let applied = apply(cluster, owner, attempt, flags).await?;
        warnings.extend(applied.warnings.into_iter().map(Warning::Server));
        warnings.extend(applied.left.into_iter().map(Warning::FieldLeft));
        let ignored = IgnoreTexts::of(manifest, &owner.vocabulary, &rules.ignore_for_diff);
        let (is_trivial, before) = (ignored.is_trivial(), Arc::clone(&object));
        let compared = evaluate(cluster, is_trivial, move || {
            let mut ignore = ignored.compile()?;
            // Compared literally, not as sets: the order of a container's arguments matters.
            let wanted = normalize(&applied.object, &mut ignore)?;
            let is_same = normalize(&before, &mut ignore)? == wanted;
            Ok((is_same, wanted, ignore))
        });
        let (is_same, wanted, mut ignore) = compared.await?;
        if is_same {
            return Ok(Drift::None(object));
        }
        // A controller may have changed the object between the list and the dry run: then it is equal by now.
        let Some(current) = cluster.get(reference).await?.map(Arc::new) else {
            return Ok(Drift::Missing);
        };
        let now = Arc::clone(&current);
        let compared = evaluate(cluster, is_trivial, move || {
            Ok(normalize(&now, &mut ignore)? == wanted)
        });
        Ok(match compared.await? {
            true => Drift::None(current),
            false => Drift::Changed,
        })
    }
}
