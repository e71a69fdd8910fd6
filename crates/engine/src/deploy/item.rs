//! One item: its objects one after the other, then waiting for those that must be ready.

use cluster::{WaitOptions, Waited};
use kluctl::Item;
use objects::{ObjectRef, annotations, meta};
use yaml::Value;

use super::{
    Run,
    definitions::Place,
    object::{self, Attempt},
    outcome::{ItemOutcome, changed},
};
use crate::ObjectError;

/// Applies the objects of an item in order, and waits.
pub(super) async fn run(run: &Run<'_>, index: usize, item: &Item) -> ItemOutcome {
    let mut outcome = ItemOutcome::default();
    let mut to_wait_for = Vec::new();
    for (position, manifest) in item.objects.iter().enumerate() {
        if run.is_aborted() {
            return outcome;
        }
        // The references of all objects were read before the first item began.
        let Ok(reference) = ObjectRef::of(manifest) else {
            continue;
        };
        if run
            .options
            .only
            .as_ref()
            .is_some_and(|only| !only.contains(&reference.id()))
        {
            continue;
        }
        let applied = apply_one(run, manifest, &reference, (index, position), &mut outcome).await;
        let waits = item.wait_readiness || meta::flag(manifest, annotations::WAIT_READINESS);
        if applied && waits {
            to_wait_for.push(reference);
        }
    }
    if run.options.no_wait || run.options.dry_run {
        return outcome;
    }
    for reference in to_wait_for {
        if run.is_aborted() {
            return outcome;
        }
        wait_for(run, &reference, &mut outcome).await;
    }
    outcome
}

/// Applies an object and notes what came of it; tells whether it was applied.
async fn apply_one(
    run: &Run<'_>,
    manifest: &Value,
    reference: &ObjectRef,
    place: Place,
    outcome: &mut ItemOutcome,
) -> bool {
    let before = run.live.rendered.get(reference);
    let attempt = Attempt {
        manifest,
        reference,
        live: before.cloned(),
    };
    let applied = object::apply_in_run(run, attempt, place).await;
    run.definitions.note(manifest, applied.is_ok());
    match applied {
        Ok(applied) => {
            outcome.warnings.extend(
                applied
                    .warnings
                    .iter()
                    .map(|text| ObjectError::of(reference, text.as_str())),
            );
            if !run.options.dry_run {
                outcome.seen.remember(reference.id(), manifest, &applied.object);
            }
            match changed(reference, manifest, before, &applied.object) {
                Ok(mut object) => {
                    // What may not be read may well have been there before.
                    object.new &= !run.live.unreadable.contains_key(reference);
                    outcome.objects.push(object);
                }
                Err(error) => outcome.errors.push(ObjectError::of(reference, error.to_string())),
            }
            true
        }
        Err(failure) => {
            run.note_error();
            let message = format!("failed to patch {reference}: {failure}");
            let error = ObjectError::of(reference, message).denied(failure.is_denied());
            outcome.errors.push(error);
            false
        }
    }
}

async fn wait_for(run: &Run<'_>, reference: &ObjectRef, outcome: &mut ItemOutcome) {
    let limit = run.options.readiness_timeout;
    let mut denied = false;
    let messages = match run.cluster.wait_ready(reference, WaitOptions { limit }).await {
        Ok(Waited::Ready) => return,
        Ok(Waited::Failed(errors)) => errors,
        Ok(Waited::Disappeared) => vec![format!(
            "{reference} disappeared while waiting for it to become ready"
        )],
        Ok(Waited::TimedOut(last)) => {
            let last = last.join(", ");
            vec![format!(
                "timed out while waiting for readiness of {reference}: {last}"
            )]
        }
        Ok(Waited::Cancelled) => vec![format!(
            "context cancelled while waiting for readiness of {reference}"
        )],
        Err(error) => {
            denied = error.is_denied();
            vec![error.to_string()]
        }
    };
    run.note_error();
    let errors = messages.into_iter().map(|text| ObjectError::of(reference, text));
    outcome.errors.extend(errors.map(|error| error.denied(denied)));
}
