//! Trying to apply the objects of a Kustomization: a dry run, as its controller would apply them.

use std::{collections::HashMap, sync::Arc};

use anyhow::{Context as _, Result};
use apply::{
    Action, ApplyError, BatchOptions, Failure, IgnoredFields, ObjectOutcome, Owner, SessionOptions, apply_all,
};
use cluster::Cluster;
use kustomization::{IgnoreRules, variables::redact};
use objects::{Ignore, ObjectId, ObjectRef, diff, inventory, meta, normalize, secrets};
use yaml::Value;

use super::{
    manifest_builder::{Built, owner},
    mask, report,
    subject::Subject,
};

/// The effect on an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Created,
    Drifted,
    Deleted,
}

impl Effect {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Drifted => "drifted",
            Self::Deleted => "deleted",
        }
    }
}

/// An object that would be changed.
#[derive(Debug, Clone)]
pub(super) struct ObjectChange {
    pub(super) reference: ObjectRef,
    pub(super) effect: Effect,
    /// The changes of its fields; empty for objects that are created or deleted.
    pub(super) text: String,
}

impl ObjectChange {
    pub(super) fn new(reference: &ObjectRef, effect: Effect) -> Self {
        Self {
            reference: reference.clone(),
            effect,
            text: String::new(),
        }
    }

    /// Returns the change in the form of the original.
    pub(super) fn lines(&self) -> String {
        let name = report::name(&self.reference);
        format!("► {name} {}\n{}", self.effect.word(), self.text)
    }
}

/// The result for a manifest.
#[derive(Debug)]
pub(super) struct TriedObject {
    pub(super) manifest: Value,
    pub(super) reference: ObjectRef,
    /// The change; `None` without one.
    pub(super) result: Result<Option<ObjectChange>, Refusal>,
}

/// The error of the API server, without values of Secrets.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) message: String,
    /// True if the namespace or the kind of the object may be missing: a dry run creates neither.
    pub(super) is_premature: bool,
}

impl TriedObject {
    pub(super) fn is_new(&self) -> bool {
        matches!(&self.result, Ok(Some(change)) if change.effect == Effect::Created)
    }
}

/// The owner of the objects of a Kustomization, and the cluster that they are compared with.
pub(super) struct Trial<'a> {
    cluster: &'a Cluster,
    subject: &'a Subject,
    owner: Owner,
}

impl<'a> Trial<'a> {
    pub(super) fn new(cluster: &'a Cluster, subject: &'a Subject) -> Self {
        Self {
            cluster,
            subject,
            owner: owner(subject),
        }
    }

    /// Tries to apply the built objects, and returns the results in the order of the manifests.
    ///
    /// # Errors
    /// If the API server can't be asked. Objects that it refuses are errors of their results.
    pub(super) async fn objects(&self, built: Built) -> Result<Vec<TriedObject>> {
        let Built { objects, hidden } = built;
        let manifests = kustomization::manifests(objects, None)?;
        let mut outcomes = self.outcomes(&manifests).await?;
        let mut tried = Vec::with_capacity(manifests.len());
        for manifest in manifests {
            let id = ObjectRef::of(&manifest)?.id();
            let Some(outcome) = outcomes.remove(&id) else {
                continue;
            };
            let result = match &outcome.result {
                Ok(action) => Ok(self.change(&manifest, &outcome, *action).await?),
                Err(failed) => Err(Refusal {
                    message: redact(&failed.to_string(), &hidden),
                    is_premature: is_premature(&failed.failure),
                }),
            };
            tried.push(TriedObject {
                manifest,
                reference: outcome.reference,
                result,
            });
        }
        Ok(tried)
    }

    async fn outcomes(&self, manifests: &[Value]) -> Result<HashMap<ObjectId, ObjectOutcome>> {
        let spec = &self.subject.spec;
        let rules = IgnoreRules::compile(&spec.ignore).context("spec")?;
        let rules = rules.map(|rules| Arc::new(rules) as Arc<dyn IgnoredFields>);
        let options = BatchOptions {
            session: SessionOptions {
                dry_run: true,
                force: true,
                recreate_immutable: spec.force,
                ..SessionOptions::default()
            },
            ignored: rules.as_ref(),
            ..BatchOptions::default()
        };
        let tried = apply_all(self.cluster, &self.owner, manifests, options).await?;
        let outcomes = tried.outcomes.into_iter();
        Ok(outcomes
            .map(|outcome| (outcome.reference.id(), outcome))
            .collect())
    }

    async fn change(
        &self,
        manifest: &Value,
        outcome: &ObjectOutcome,
        action: Action,
    ) -> Result<Option<ObjectChange>> {
        let reference = &outcome.reference;
        match action {
            Action::Created => Ok(Some(ObjectChange::new(reference, Effect::Created))),
            Action::Configured => {
                let before = self.cluster.get(reference).await?;
                let (Some(before), Some(after)) = (before, outcome.object.as_deref()) else {
                    return Ok(Some(ObjectChange::new(reference, Effect::Created)));
                };
                let changes = changes(manifest, &before, after, &self.owner)?;
                Ok(changes.map(|text| ObjectChange {
                    text,
                    ..ObjectChange::new(reference, Effect::Drifted)
                }))
            }
            Action::Unchanged | Action::Deleted | Action::Skipped => Ok(None),
        }
    }

    /// Returns the objects that the controller would delete: they left the manifests, and still belong to the Kustomization.
    ///
    /// # Errors
    /// If the API server can't be asked.
    pub(super) async fn pruned(&self, current: &[ObjectRef]) -> Result<Vec<ObjectChange>> {
        let mut deleted = Vec::new();
        for reference in inventory::stale(&self.subject.inventory, current) {
            let live = match self.cluster.get(&reference).await {
                // The kind is gone with its objects.
                Err(cluster::Error::NoMatch { .. }) => None,
                live => live?,
            };
            let labels = self.owner.labels().into_iter().flatten();
            let is_own = |live: &Value| {
                let mut labels = labels.clone();
                labels.all(|(name, value)| meta::label(live, name) == Some(value))
            };
            if live.is_some_and(|live| is_own(&live) && !self.owner.skips_delete(&live)) {
                deleted.push(ObjectChange::new(&reference, Effect::Deleted));
            }
        }
        Ok(deleted)
    }
}

fn is_premature(failure: &Failure) -> bool {
    match failure {
        Failure::Apply(ApplyError::Cluster(error)) => {
            error.is_not_found() || matches!(error, cluster::Error::NoMatch { .. })
        }
        _ => false,
    }
}

/// Describes the changes of an object; `None` if there are none. Values of Secrets are masked; encrypted ones are equal. Pure.
fn changes(manifest: &Value, before: &Value, after: &Value, owner: &Owner) -> Result<Option<String>> {
    let mut ignore = Ignore::of(manifest, &owner.vocabulary, [])?;
    let (mut before, mut after) = (normalize(before, &mut ignore)?, normalize(after, &mut ignore)?);
    let is_secret = ObjectRef::of(manifest).is_ok_and(|reference| secrets::is_secret(&reference));
    if is_secret && mask::is_masked(manifest) {
        (before, after) = (secrets::masked(&before), secrets::masked(&after));
    }
    if before == after {
        return Ok(None);
    }
    let mut changes = diff::changes(&before, &after);
    if is_secret {
        secrets::mask(&mut changes);
    }
    Ok(Some(report::describe(&changes, &before, &after)))
}
