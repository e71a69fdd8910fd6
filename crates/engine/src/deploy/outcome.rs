//! The outcome of an item.

use std::collections::HashSet;

use apply::AppliedVersions;
use objects::{Ignore, ObjectId, ObjectRef, diff, normalize, secrets};
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

/// Returns the changes of an apply. Without a live object before, the object is new.
pub(crate) fn changed(
    reference: &ObjectRef,
    ignore: &Ignore,
    before: Option<&Value>,
    after: &Value,
    show_secrets: bool,
) -> Result<ResultObject, objects::Error> {
    let mut object = ResultObject::new(reference.clone());
    let Some(before) = before else {
        object.new = true;
        return Ok(object);
    };
    if std::ptr::eq(before, after) && ignore.is_empty() {
        return Ok(object);
    }
    let (before, after) = (normalize(before, ignore)?, normalize(after, ignore)?);
    object.changed = before != after;
    object.changes = diff::changes(&before, &after);
    if secrets::is_secret(reference) && !show_secrets {
        secrets::mask(&mut object.changes);
    }
    Ok(object)
}
