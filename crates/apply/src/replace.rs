//! Objects that can't be applied: replacement as a whole, or deletion and creation, if the options ask for that.

use std::sync::Arc;

use objects::{ObjectRef, fixup};
use yaml::Value;

use crate::{
    AppliedObject, ApplyError, FailedObject, Failure, Session, Warning, immutable,
    object::{Applied, Attempt, Flags, apply, pin},
};

/// Replaces an object that could not be applied. Without the options for that, and for objects that don't exist, the first
/// error counts.
pub(crate) async fn after_error(
    session: &Session<'_>,
    attempt: Attempt<'_>,
    error: ApplyError,
) -> Result<AppliedObject, FailedObject> {
    let (reference, options) = (attempt.reference, session.options);
    let replaces = options.replace_on_error || options.recreate_on_error;
    let recreates = session.recreates(attempt.manifest, attempt.live.as_deref());
    if !(replaces || recreates) || error.is_final() || session.is_pretended_gone(reference) {
        return Err(FailedObject::new(Failure::Apply(error)));
    }
    let live = match session.cluster.get(reference).await {
        Ok(Some(live)) => Arc::new(live),
        Ok(None) => return Err(FailedObject::new(Failure::Apply(error))),
        Err(_) => match attempt.live {
            Some(live) => live,
            None => return Err(FailedObject::new(Failure::Apply(error))),
        },
    };
    let manifest = fixup::apply(attempt.manifest, session.owner.repaired);
    let object = (&manifest, reference);
    if recreates && immutable::needs_recreation(session.cluster, session.owner, object, &error).await {
        return recreate(session, object, &live, FailedObject::new(Failure::Apply(error))).await;
    }
    if !replaces {
        return Err(FailedObject::new(Failure::Apply(error)));
    }
    let mut warnings = vec![Warning::Replaced];
    match replace(session, &manifest, &live).await {
        Ok(applied) => {
            let applied = Applied::new(applied, Vec::new());
            Ok(AppliedObject::new(applied, warnings))
        }
        Err(error) => {
            let failed = FailedObject {
                warnings: std::mem::take(&mut warnings),
                ..FailedObject::new(Failure::Replace(error))
            };
            if !options.recreate_on_error {
                return Err(failed);
            }
            recreate(session, object, &live, failed).await
        }
    }
}

/// Replaces the object in the state that was read: later changes of others are not overwritten blindly.
async fn replace(
    session: &Session<'_>,
    manifest: &Value,
    live: &Value,
) -> Result<cluster::Applied, cluster::Error> {
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

/// Deletes the object and applies it again, unless an annotation forbids that. A dry run can't, and returns the manifest.
async fn recreate(
    session: &Session<'_>,
    (manifest, reference): (&Value, &ObjectRef),
    live: &Value,
    mut failed: FailedObject,
) -> Result<AppliedObject, FailedObject> {
    let owner = session.owner;
    failed.keeps_object = owner.forbids_recreation(manifest, live);
    if failed.keeps_object {
        return Err(failed);
    }
    let mut warnings = failed.warnings;
    warnings.push(Warning::Recreated);
    let failure = |failure, warnings| FailedObject {
        warnings,
        ..FailedObject::new(failure)
    };
    let recreated = match session.delete(reference).await {
        Ok(deleted) => deleted,
        Err(error) => return Err(failure(Failure::Delete(error), warnings)),
    };
    let applied = if session.options.dry_run {
        Applied {
            object: manifest.clone(),
            warnings: Vec::new(),
            left: Vec::new(),
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
        match apply(session.cluster, owner, attempt, flags).await {
            Ok(applied) => applied,
            Err(error) => return Err(failure(Failure::Create(error), warnings)),
        }
    };
    Ok(AppliedObject {
        recreated,
        ..AppliedObject::new(applied, warnings)
    })
}
