//! The hooks of an item: deleted, applied, waited for, and deleted again, as their annotations say.

use std::time::Duration;

use api::GoDuration;
use apply::WaitOptions;
use kluctl::{
    annotations,
    hooks::{self, Hook, Phase, Rollout},
};
use objects::ObjectRef;
use yaml::Value;

use super::{Run, item_pass::ItemPass};
use results::ObjectError;

pub(super) struct ItemHook<'a> {
    pub(super) hook: Hook,
    pub(super) manifest: &'a Value,
    pub(super) reference: &'a ObjectRef,
    /// Its index among the objects of the item.
    pub(super) position: usize,
    timeout: Option<Duration>,
}

/// Parses the annotations of an object as a hook. Invalid annotations become errors of the item.
pub(super) fn parse<'a>(
    pass: &mut ItemPass<'_, '_>,
    manifest: &'a Value,
    reference: &'a ObjectRef,
    position: usize,
) -> Option<ItemHook<'a>> {
    let parsed = hooks::parse(manifest);
    for error in parsed.errors {
        pass.error(ObjectError::of(reference, error));
    }
    for warning in parsed.warnings {
        pass.warning(ObjectError::of(reference, warning));
    }
    let hook = parsed.hook?;
    let timeout = hook
        .timeout
        .as_deref()
        .and_then(|text| match text.parse::<GoDuration>() {
            Ok(timeout) => Some(timeout.as_duration()),
            Err(error) => {
                let message = format!("failed to parse {}: {error}", annotations::HOOK_TIMEOUT);
                pass.error(ObjectError::of(reference, message));
                None
            }
        });
    Some(ItemHook {
        hook,
        manifest,
        reference,
        position,
        timeout,
    })
}

pub(super) async fn run(pass: &mut ItemPass<'_, '_>, hooks: &[ItemHook<'_>], phase: Phase, rollout: Rollout) {
    let mut chosen: Vec<&ItemHook<'_>> = hooks
        .iter()
        .filter(|hook| hook.hook.runs(phase, rollout))
        .collect();
    chosen.sort_by_key(|hook| hook.hook.weight);
    for hook in chosen.iter().filter(|hook| hook.hook.delete_before) {
        if pass.run.session.is_aborted() || pass.stopped {
            return;
        }
        pass.delete_hook(hook.reference).await;
    }
    let mut ended = Vec::new();
    for hook in chosen {
        if pass.run.session.is_aborted() || pass.stopped {
            break;
        }
        let applied = pass
            .apply(hook.manifest, hook.reference, hook.position, true)
            .await;
        if applied && hook.hook.wait && !pass.run.options.no_wait && !pass.run.options.dry_run {
            let options = WaitOptions {
                limit: hook.timeout.unwrap_or(pass.run.options.readiness_timeout),
                existed: true,
                ends_by_deletion: apply::ends_by_deletion(hook.manifest),
            };
            let succeeded = pass.wait_for(hook.reference, options).await;
            ended.push((hook, succeeded));
        }
    }
    for (hook, succeeded) in ended.into_iter().rev() {
        let goes = if succeeded {
            hook.hook.delete_on_success
        } else {
            hook.hook.delete_on_failure
        };
        if goes && !is_cancelled(pass.run) && !pass.stopped {
            pass.delete_hook(hook.reference).await;
        }
    }
}

fn is_cancelled(run: &Run<'_>) -> bool {
    run.session.cluster.cancellation().is_cancelled()
}
