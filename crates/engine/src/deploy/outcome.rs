//! What came of an item.

use objects::{Ignore, ObjectRef, diff, normalize, secrets};
use yaml::Value;

use crate::{CommandResult, ObjectError, ResultObject, Seen};

/// What came of an item.
#[derive(Debug, Default)]
pub(crate) struct ItemOutcome {
    pub(crate) objects: Vec<ResultObject>,
    pub(crate) errors: Vec<ObjectError>,
    pub(crate) warnings: Vec<ObjectError>,
    pub(crate) seen: Seen,
}

/// Adds an item's outcome to the result.
pub(super) fn collect(result: &mut CommandResult, outcome: ItemOutcome) {
    result.objects.extend(outcome.objects);
    result.errors.extend(outcome.errors);
    result.warnings.extend(outcome.warnings);
    result.seen.extend(outcome.seen);
}

/// What an apply changed. Without a live object before, the object is new.
pub(crate) fn changed(
    reference: &ObjectRef,
    manifest: &Value,
    before: Option<&Value>,
    after: &Value,
) -> Result<ResultObject, objects::Error> {
    let mut object = ResultObject::new(reference.clone());
    let Some(before) = before else {
        object.new = true;
        return Ok(object);
    };
    let ignore = Ignore::of(manifest)?;
    let (before, after) = (normalize(before, &ignore)?, normalize(after, &ignore)?);
    object.changed = before != after;
    object.changes = diff::changes(&before, &after);
    if secrets::is_secret(reference) {
        secrets::mask(&mut object.changes);
    }
    Ok(object)
}
