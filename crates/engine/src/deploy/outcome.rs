//! The outcome of an item.

use std::{collections::HashSet, sync::Arc};

use apply::{AppliedVersions, evaluate};
use cluster::Cluster;
use objects::{IgnoreTexts, ObjectId, ObjectRef, diff, normalize, secrets};
use yaml::Value;

use results::{CommandResult, ObjectError, ResultObject};

#[derive(Debug, Default)]
pub(crate) struct ItemOutcome {
    pub(crate) objects: Vec<ResultObject>,
    pub(crate) deleted: Vec<ObjectRef>,
    pub(crate) errors: Vec<ObjectError>,
    pub(crate) warnings: Vec<ObjectError>,
    pub(crate) versions: AppliedVersions,
    /// Objects that were ready as soon as they were applied.
    pub(crate) ready: HashSet<ObjectId>,
}

pub(super) fn collect(result: &mut CommandResult, outcome: ItemOutcome) {
    result.objects.extend(outcome.objects);
    result.errors.extend(outcome.errors);
    result.warnings.extend(outcome.warnings);
    result.versions.extend(outcome.versions);
    result.ready.extend(outcome.ready);
    for reference in outcome.deleted {
        result.ready.remove(&reference.id());
        result.objects.push(ResultObject {
            deleted: true,
            ..ResultObject::new(reference)
        });
    }
}

/// Returns the changes of an apply. Without a live object before, the object is new. Rules of the object are evaluated on another thread.
pub(crate) async fn changed(
    cluster: &Cluster,
    reference: &ObjectRef,
    ignored: IgnoreTexts,
    (before, after): (Option<Arc<Value>>, Arc<Value>),
    show_secrets: bool,
) -> Result<ResultObject, objects::Error> {
    let mut object = ResultObject::new(reference.clone());
    let hides_secrets = secrets::is_secret(reference) && !show_secrets;
    evaluate(cluster, ignored.is_trivial(), move || {
        let is_nothing_ignored = ignored.is_empty();
        let mut ignore = ignored.compile()?;
        let Some(before) = before else {
            object.new = true;
            return Ok(object);
        };
        if Arc::ptr_eq(&before, &after) && is_nothing_ignored {
            return Ok(object);
        }
        let (before, after) = (normalize(&before, &mut ignore)?, normalize(&after, &mut ignore)?);
        object.changed = before != after;
        object.changes = diff::changes(&before, &after);
        if hides_secrets {
            secrets::mask(&mut object.changes);
        }
        Ok(object)
    })
    .await
}
