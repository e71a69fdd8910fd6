//! Applying one object, with conflicts resolved field by field.

use std::{sync::Arc, time::Duration};

use cluster::{ApplyOptions, Cluster};
use objects::{
    ObjectRef,
    conflict::{Cause, ConflictTexts, LeftField, Policy, Resolution, Resolver},
    fixup, meta,
    rules::ConflictRule,
};
use yaml::Value;

use crate::{ApplyError, Owner, evaluate};

const STALE_ATTEMPTS: u32 = 8;

#[derive(Debug, Clone)]
pub(crate) struct Attempt<'a> {
    pub(crate) manifest: &'a Value,
    pub(crate) reference: &'a ObjectRef,
    pub(crate) rules: &'a [ConflictRule],
    /// The live object as it was read before; absent if it is new or could not be read.
    pub(crate) live: Option<Arc<Value>>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Flags {
    pub(crate) dry_run: bool,
    pub(crate) force: bool,
}

#[derive(Debug)]
pub(crate) struct Applied {
    pub(crate) object: Value,
    pub(crate) warnings: Vec<String>,
    pub(crate) left: Vec<LeftField>,
}

impl Applied {
    pub(crate) fn new(applied: cluster::Applied, left: Vec<LeftField>) -> Self {
        Self {
            object: applied.object,
            warnings: applied.warnings,
            left,
        }
    }
}

impl Owner {
    pub(crate) fn request(&self, flags: Flags) -> ApplyOptions<'_> {
        ApplyOptions {
            dry_run: flags.dry_run,
            force: flags.force,
            manager: &self.manager,
        }
    }
}

/// Applies an object as the owner's field manager; if other managers own fields, decides field by field.
///
/// Only a patch without the fields that are left to others is ever applied by force, and only onto the state of the
/// object that was decided about: the state is read before the API server names the conflicts, and the forced patch
/// carries its resource version. After any change in between, the API server refuses, and all is decided again.
pub(crate) async fn apply(
    cluster: &Cluster,
    owner: &Owner,
    attempt: Attempt<'_>,
    flags: Flags,
) -> Result<Applied, ApplyError> {
    let manifest = Arc::new(fixup::apply(attempt.manifest, owner.repaired));
    let policy = Policy {
        vocabulary: &owner.vocabulary,
        overridden: owner.overridden,
        rules: attempt.rules,
    };
    let mut conflicts = Conflicts::default();
    let mut live = attempt.live;
    let mut may_be_outdated = true;
    for round in 0..STALE_ATTEMPTS {
        let error = match cluster.apply(&manifest, owner.request(flags)).await {
            Ok(applied) => return Ok(Applied::new(applied, Vec::new())),
            Err(error) => error,
        };
        let Some(causes) = error.field_conflicts() else {
            if error.is_stale() && round + 1 < STALE_ATTEMPTS {
                cluster.pause(Duration::from_millis(20 << round)).await?;
                continue;
            }
            return Err(error.into());
        };
        let Some(before) = live else {
            live = cluster.get(attempt.reference).await?.map(Arc::new);
            if live.is_none() && round > 0 {
                return Err(error.into());
            }
            continue;
        };
        let resolved = conflicts.resolve(cluster, policy, (&before, &manifest), causes);
        let resolution = match resolved.await {
            Ok(resolution) => resolution,
            // The state that was read may be older than the conflict.
            Err(_) if may_be_outdated => {
                may_be_outdated = false;
                live = cluster.get(attempt.reference).await?.map(Arc::new);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        match apply_onto(cluster, owner, &before, resolution, flags).await {
            Err(error) if error.is_stale() => {
                live = cluster.get(attempt.reference).await?.map(Arc::new);
                cluster.pause(Duration::from_millis(20 << round)).await?;
            }
            ended => return Ok(ended?),
        }
    }
    Err(ApplyError::Contended)
}

/// The rules about conflicts of one object, which all attempts to apply it share.
#[derive(Debug, Default)]
struct Conflicts(Option<Resolver>);

impl Conflicts {
    async fn resolve(
        &mut self,
        cluster: &Cluster,
        policy: Policy<'_>,
        (live, local): (&Arc<Value>, &Arc<Value>),
        causes: &[Cause],
    ) -> Result<Resolution, objects::Error> {
        let texts = ConflictTexts::of(local, policy);
        let (live, local, causes) = (Arc::clone(live), Arc::clone(local), causes.to_vec());
        let compiled = self.0.take();
        let resolved = evaluate(cluster, texts.is_trivial(), move || {
            let mut resolver = compiled.map_or_else(|| texts.compile(), Ok)?;
            Ok((resolver.resolve(&live, &local, &causes), resolver))
        });
        let (resolution, resolver) = resolved.await?;
        self.0 = Some(resolver);
        resolution
    }
}

/// Applies the patch of a resolved conflict by force, onto the state that it was resolved for.
async fn apply_onto(
    cluster: &Cluster,
    owner: &Owner,
    before: &Value,
    resolution: Resolution,
    flags: Flags,
) -> Result<Applied, cluster::Error> {
    let mut patch = resolution.patch;
    pin(&mut patch, before);
    let flags = Flags { force: true, ..flags };
    let applied = cluster.apply(&patch, owner.request(flags)).await?;
    Ok(Applied::new(applied, resolution.left))
}

/// Sets the resource version of a state, so that the API server refuses a write onto any other.
pub(crate) fn pin(patch: &mut Value, state: &Value) {
    if let Some(version) = meta::resource_version(state) {
        pin_version(patch, version);
    }
}

pub(crate) fn pin_version(patch: &mut Value, version: &str) {
    if let Some(metadata) = patch.get_mut("metadata").and_then(Value::as_map_mut) {
        metadata.insert("resourceVersion", version.to_owned());
    }
}
