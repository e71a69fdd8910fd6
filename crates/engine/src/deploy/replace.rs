//! What is done when an object can't be applied, for who asked for it: replace it, or delete it and apply it anew.

use std::sync::Arc;

use cluster::{Applied, ApplyOptions};
use objects::{ObjectRef, fixup, orphans};
use yaml::Value;

use super::{
    Run, delete,
    object::{Attempt, Done, Failed, Failure, apply, pin},
};

/// Tries harder. Without the options for it, and for objects that aren't there, the first failure counts.
pub(super) async fn try_harder(
    run: &Run<'_>,
    attempt: Attempt<'_>,
    failure: Failure,
) -> Result<Done, Failed> {
    let reference = attempt.reference;
    let options = run.options;
    let mut failed = Failed::of(reference, &failure);
    let may_replace = (options.replace_on_error || options.force_replace_on_error) && !failure.is_hopeless();
    if !may_replace || run.is_pretended_gone(reference) {
        return Err(failed);
    }
    let live = match run.cluster.get(reference).await {
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
    match replace(run, &manifest, &live).await {
        Ok(applied) => Ok(Done::with(applied, failed.warnings)),
        Err(error) => {
            failed.message = error.to_string();
            failed.denied = error.is_denied();
            if !options.force_replace_on_error
                || orphans::skips_delete(&live)
                || orphans::skips_delete(&manifest)
            {
                return Err(failed);
            }
            failed.warnings.push(format!(
                "patching {reference} failed, retrying by deleting and re-applying"
            ));
            anew(run, &manifest, reference, failed).await
        }
    }
}

/// Replaces the object as it was seen: whatever others wrote since is not overwritten blindly.
async fn replace(run: &Run<'_>, manifest: &Value, live: &Value) -> Result<Applied, cluster::Error> {
    let mut object = manifest.clone();
    pin(&mut object, live);
    run.cluster.replace(&object, run.options.dry_run).await
}

/// Deletes the object and applies it anew. A dry run can't, and takes it as it was rendered.
async fn anew(
    run: &Run<'_>,
    manifest: &Value,
    reference: &ObjectRef,
    mut failed: Failed,
) -> Result<Done, Failed> {
    let deleted = match delete::delete(run, reference).await {
        Ok(deleted) => deleted,
        Err(error) => {
            failed.message = format!("failed to delete {reference}: {error}");
            failed.denied = error.is_denied();
            return Err(failed);
        }
    };
    let applied = if run.options.dry_run {
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
        let options = ApplyOptions {
            force: run.options.force_apply,
            ..ApplyOptions::default()
        };
        match apply(run.cluster, attempt, options).await {
            Ok(applied) => applied,
            Err(failure) => {
                let mut again = Failed::of(reference, &failure);
                again.warnings = failed.warnings;
                again.message = format!("{} (after the object was deleted)", again.message);
                return Err(again);
            }
        }
    };
    Ok(Done {
        deleted,
        ..Done::with(applied, failed.warnings)
    })
}
