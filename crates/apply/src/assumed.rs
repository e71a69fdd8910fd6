//! Objects that were not read before ([`crate::Query::assumes`]): the apply carries the version that they are assumed to have, and the API
//! server refuses it if they have another.

use std::sync::Arc;

use objects::{ObjectRef, fixup, meta, unchanged::is_unchanged};
use yaml::Value;

use crate::{
    AppliedObject, FailedObject, Failure, Request, Session,
    object::{Applied, pin, pin_version},
};

/// A version that no object has: an apply with it creates an object, and changes none.
const MISSING: &str = "1";

/// Applies an object onto the state that it is assumed to have. Returns `None` if it has to be read: it seems to need no change, has another state, or
/// the apply failed.
pub(crate) async fn apply(session: &Session<'_>, request: Request<'_>) -> Option<AppliedObject> {
    let (owner, reference) = (session.owner, request.reference);
    let assumed = session.live.get(reference);
    let mut manifest = fixup::apply(request.manifest, owner.repaired);
    match &assumed {
        Some(live) => {
            if is_unchanged(&manifest, live, &owner.manager)
                || owner.takeover_patch(&manifest, live).is_some()
            {
                return None;
            }
            pin(&mut manifest, live);
        }
        None => pin_version(&mut manifest, MISSING),
    }
    let options = owner.request(session.flags());
    let applied = session.cluster.apply(&manifest, options).await.ok()?;
    session.note_change();
    let is_same = |before: &Value| meta::uid(before) == meta::uid(&applied.object);
    if assumed.is_none_or(|before| !is_same(&before)) {
        session.live.correct(reference, None);
    }
    Some(AppliedObject::new(Applied::new(applied, Vec::new()), Vec::new()))
}

/// Reads an object instead of assuming its state.
///
/// # Errors
/// If the API server can't be reached. An object that may not be read is taken for missing.
pub(crate) async fn read(session: &Session<'_>, reference: &ObjectRef) -> Result<(), FailedObject> {
    let object = match session.cluster.get(reference).await {
        Ok(object) => object.map(Arc::new),
        Err(error) if error.is_forbidden() => None,
        Err(error) => return Err(FailedObject::new(Failure::Apply(error.into()))),
    };
    session.live.correct(reference, object);
    Ok(())
}
