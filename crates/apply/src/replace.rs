//! Objects that can't be applied: replacement as a whole, or deletion and creation, if the options ask for that.

use std::sync::Arc;

use cluster::Applied;
use objects::{ObjectRef, fixup};
use yaml::Value;

use crate::{
    AppliedObject, ApplyError, FailedObject, Session,
    object::{Attempt, Flags, apply, pin},
};

/// Replaces an object that could not be applied. Without the options for that, and for objects that don't exist, the first
/// error counts.
pub(crate) async fn after_error(
    session: &Session<'_>,
    attempt: Attempt<'_>,
    error: ApplyError,
) -> Result<AppliedObject, FailedObject> {
    let reference = attempt.reference;
    let options = session.options;
    let mut failed = FailedObject::new(reference, &error);
    let may_replace = (options.replace_on_error || options.recreate_on_error) && !error.is_final();
    if !may_replace || session.is_pretended_gone(reference) {
        return Err(failed);
    }
    let live = match session.cluster.get(reference).await {
        Ok(Some(live)) => Arc::new(live),
        Ok(None) => return Err(failed),
        Err(_) => match attempt.live {
            Some(live) => live,
            None => return Err(failed),
        },
    };
    failed.warnings.push(format!(
        "patching {reference} failed, retrying with replace instead of patch"
    ));
    let manifest = fixup::apply(attempt.manifest);
    match replace(session, &manifest, &live).await {
        Ok(applied) => Ok(AppliedObject::new(applied, failed.warnings)),
        Err(error) => {
            failed.message = error.to_string();
            failed.denied = error.is_denied();
            let owner = session.owner;
            if !options.recreate_on_error {
                return Err(failed);
            }
            failed.keeps_object = owner.skips_delete(&live) || owner.skips_delete(&manifest);
            if failed.keeps_object {
                return Err(failed);
            }
            failed.warnings.push(format!(
                "patching {reference} failed, retrying by deleting and re-applying"
            ));
            recreate(session, &manifest, reference, failed).await
        }
    }
}

/// Replaces the object in the state that was read: later changes of others are not overwritten blindly.
async fn replace(session: &Session<'_>, manifest: &Value, live: &Value) -> Result<Applied, cluster::Error> {
    let mut object = manifest.clone();
    pin(&mut object, live);
    let flags = Flags {
        dry_run: session.options.dry_run,
        force: false,
    };
    session
        .cluster
        .replace(&object, session.owner.request(flags))
        .await
}

/// Deletes the object and applies it again. A dry run can't, and returns the manifest.
async fn recreate(
    session: &Session<'_>,
    manifest: &Value,
    reference: &ObjectRef,
    mut failed: FailedObject,
) -> Result<AppliedObject, FailedObject> {
    let deleted = match session.delete(reference).await {
        Ok(deleted) => deleted,
        Err(error) => {
            failed.message = format!("failed to delete {reference}: {error}");
            failed.denied = error.is_denied();
            return Err(failed);
        }
    };
    let applied = if session.options.dry_run {
        Applied {
            object: manifest.clone(),
            warnings: Vec::new(),
        }
    } else {
        let attempt = Attempt {
            manifest,
            reference,
            rules: &[],
            live: None,
        };
        let flags = Flags {
            dry_run: false,
            force: session.options.force,
        };
        match apply(session.cluster, session.owner, attempt, flags).await {
            Ok(applied) => applied,
            Err(error) => {
                let mut again = FailedObject::new(reference, &error);
                again.warnings = failed.warnings;
                again.message = format!("{} (after the object was deleted)", again.message);
                return Err(again);
            }
        }
    };
    Ok(AppliedObject {
        recreated: deleted,
        ..AppliedObject::new(applied, failed.warnings)
    })
}
