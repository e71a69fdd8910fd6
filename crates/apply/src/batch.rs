//! Applying a list of manifests.

use std::{collections::HashSet, fmt};

use cluster::Cluster;
use futures::{StreamExt as _, stream};
use objects::{Ignore, ObjectRef, normalize, rules::Rules, vocabulary::is_marked};
use yaml::Value;

use crate::{
    Definitions, Error, FailedObject, LiveObjects, Owner, PARALLEL, Query, Request, Session, SessionOptions,
    fetch,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Created,
    Configured,
    /// It already equalled its manifest.
    Unchanged,
    /// It was deleted, because its manifest is marked for that.
    Deleted,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Created => "created",
            Self::Configured => "configured",
            Self::Unchanged => "unchanged",
            Self::Deleted => "deleted",
        })
    }
}

#[derive(Debug)]
pub struct ObjectOutcome {
    pub reference: ObjectRef,
    pub result: Result<Action, FailedObject>,
    /// Warnings of the API server, and about fields that are left to other managers.
    pub warnings: Vec<String>,
}

impl fmt::Display for ObjectOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.result {
            Ok(action) => write!(f, "{}: {action}", self.reference),
            Err(failed) => f.write_str(&failed.message),
        }
    }
}

/// Applies a list of manifests: namespaces and definitions of kinds first, in the given order, then all others, eight at the
/// same time. Returns one outcome for each manifest, in the order of application.
///
/// # Errors
/// If the owner or a manifest is invalid, the live state can't be read, or the work is cancelled.
pub async fn apply_all(
    cluster: &Cluster,
    owner: &Owner,
    manifests: &[Value],
    options: SessionOptions,
) -> Result<Vec<ObjectOutcome>, Error> {
    owner.check()?;
    let refs: Vec<ObjectRef> = manifests.iter().map(ObjectRef::of).collect::<Result<_, _>>()?;
    let query = Query {
        refs: &refs,
        all: &refs,
        orphans: None,
        renamed: &HashSet::new(),
        seen: None,
    };
    let start = Session::start();
    let live = fetch(cluster, owner, query).await?;
    let (first, rest): (Vec<_>, Vec<_>) = manifests
        .iter()
        .zip(&refs)
        .partition(|(_, reference)| is_foundation(reference));
    let positions = [&first, &rest].into_iter().enumerate().flat_map(|(group, list)| {
        let manifests = list.iter().enumerate();
        manifests.map(move |(index, (manifest, _))| ((group, index), *manifest))
    });
    let definitions = Definitions::of(positions);
    let session = &Session::new(start, cluster, owner, &live, definitions, options);
    let mut outcomes = Vec::with_capacity(manifests.len());
    for (index, (manifest, reference)) in first.into_iter().enumerate() {
        outcomes.push(one(session, manifest, reference, (0, index)).await);
    }
    let work = rest
        .into_iter()
        .enumerate()
        .map(|(index, (manifest, reference))| one(session, manifest, reference, (1, index)));
    // Collected, because a stream that holds the closure can't be proven to be Send.
    let mut work = stream::iter(work.collect::<Vec<_>>()).buffered(PARALLEL);
    while let Some(outcome) = work.next().await {
        outcomes.push(outcome);
    }
    drop(work);
    if cluster.cancellation().is_cancelled() {
        return Err(cluster::Error::Cancelled.into());
    }
    Ok(outcomes)
}

/// Returns true if other objects may need this one first.
fn is_foundation(reference: &ObjectRef) -> bool {
    reference.is("", "Namespace") || reference.is("apiextensions.k8s.io", "CustomResourceDefinition")
}

async fn one(
    session: &Session<'_>,
    manifest: &Value,
    reference: &ObjectRef,
    position: (usize, usize),
) -> ObjectOutcome {
    let outcome = |result, warnings| ObjectOutcome {
        reference: reference.clone(),
        result,
        warnings,
    };
    let owner = session.owner;
    if is_marked(manifest, owner.vocabulary.delete) {
        let result = match session.delete(reference).await {
            Ok(true) => Ok(Action::Deleted),
            Ok(false) => Ok(Action::Unchanged),
            Err(error) => Err(FailedObject {
                message: format!("failed to delete {reference}: {error}"),
                denied: error.is_denied(),
                warnings: Vec::new(),
                keeps_object: false,
            }),
        };
        return outcome(result, Vec::new());
    }
    let rules = Rules::default();
    let request = Request {
        manifest,
        reference,
        rules: &rules.conflict_resolution,
        position,
        always: false,
    };
    match session.apply(request).await {
        Ok(applied) => {
            let action = action(session.live, owner, manifest, reference, &applied.object);
            outcome(Ok(action), applied.warnings)
        }
        Err(mut failed) => {
            let warnings = std::mem::take(&mut failed.warnings);
            outcome(Err(failed), warnings)
        }
    }
}

/// Returns the change of an object. An invalid rule about differences hides none.
fn action(
    live: &LiveObjects,
    owner: &Owner,
    manifest: &Value,
    reference: &ObjectRef,
    after: &Value,
) -> Action {
    let Some(before) = live.objects.get(reference) else {
        return Action::Created;
    };
    let ignore = Ignore::of(manifest, &owner.vocabulary, []).unwrap_or_default();
    let same = std::ptr::eq(before.as_ref(), after)
        || matches!((normalize(before, &ignore), normalize(after, &ignore)), (Ok(before), Ok(after)) if before == after);
    if same {
        Action::Unchanged
    } else {
        Action::Configured
    }
}
