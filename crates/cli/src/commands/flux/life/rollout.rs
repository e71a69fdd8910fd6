//! Applying the objects of an installation, and waiting for its controllers.

use std::{sync::Arc, time::Duration};

use anyhow::{Result, bail};
use apply::{
    Action, BatchOptions, Halt, HealthRules, Membership, Owner, SessionOptions, SetWait, WaitTarget,
};
use objects::ObjectRef;
use yaml::Value;

use super::MANAGER;
use crate::commands::flux::Flux;

/// Applies objects, definitions and namespaces first, and prints the changes. Fields of others are taken over.
pub(super) async fn apply(flux: &Flux, objects: &[Value]) -> Result<Vec<WaitTarget>> {
    let owner = owner();
    let options = BatchOptions {
        session: SessionOptions {
            force: true,
            ..SessionOptions::default()
        },
        ..BatchOptions::default()
    };
    let applied = apply::apply_all(&flux.cluster, &owner, objects, options).await?;
    let mut failed = 0;
    for outcome in &applied.outcomes {
        match &outcome.result {
            Ok(Action::Unchanged | Action::Skipped) => {}
            Ok(action) => flux
                .terminal
                .plain(&format!("{} {action}", line(&outcome.reference))),
            Err(error) => {
                failed += 1;
                flux.failure(&format!("{}: {error}", line(&outcome.reference)));
            }
        }
    }
    if let Some(Halt::NotReady(_, waited)) = &applied.halt {
        let open = waited.open.iter();
        let open = open.map(|(object, health)| format!("{}: {}", line(object), health.message));
        bail!(
            "definitions and namespaces don't become ready: {}",
            open.collect::<Vec<_>>().join("; ")
        );
    }
    if failed > 0 {
        bail!("{failed} objects could not be applied");
    }
    Ok(applied.targets())
}

/// Returns live objects as targets of a wait.
pub(super) fn targets(objects: &[Value]) -> Result<Vec<WaitTarget>> {
    let target = |object: &Value| {
        Ok(WaitTarget {
            reference: ObjectRef::of(object)?,
            known: Some(Arc::new(object.clone())),
        })
    };
    objects.iter().map(target).collect()
}

/// Waits until all Deployments are ready, and prints each of them.
pub(super) async fn wait(flux: &Flux, targets: Vec<WaitTarget>, timeout: Duration) -> Result<()> {
    let is_deployment = |target: &WaitTarget| target.reference.is("apps", "Deployment");
    let targets: Vec<WaitTarget> = targets.into_iter().filter(is_deployment).collect();
    let names: Vec<ObjectRef> = targets.iter().map(|target| target.reference.clone()).collect();
    let waited = apply::wait_all(&flux.cluster, &owner(), targets, SetWait::new(timeout)).await;
    for name in names {
        match waited.open.iter().find(|(open, _)| *open == name) {
            Some((_, health)) => flux.failure(&format!("{}: {}", name.name, health.message)),
            None => flux.success(&format!("{}: deployment ready", name.name)),
        }
    }
    match waited.is_ready() {
        true => Ok(()),
        false => bail!(
            "the controllers are not ready: look at their Pods with kubectl -n {} get pods",
            flux.namespace
        ),
    }
}

fn owner() -> Owner {
    Owner {
        health: HealthRules::Kstatus,
        ..Owner::new(MANAGER, Membership::None)
    }
}

/// Formats a reference as Flux does: `Deployment/flux-system/source-controller`.
pub(super) fn line(reference: &ObjectRef) -> String {
    let ObjectRef { kind, name, .. } = reference;
    match &reference.namespace {
        Some(namespace) => format!("{kind}/{namespace}/{name}"),
        None => format!("{kind}/{name}"),
    }
}
