//! One object: apply, and settle conflicts with other managers.

use std::{sync::Arc, time::Duration};

use cluster::{Applied, ApplyOptions, Cluster};
use objects::{
    ObjectRef,
    conflict::{self, Resolution},
    fixup, meta,
    rules::ConflictRule,
};
use tokio::time::Instant;
use yaml::Value;

use super::{
    Run,
    definitions::{Definition, Place},
    replace,
};
use crate::stand_in;

/// How often an object that others keep changing is looked at anew.
const STALE_ATTEMPTS: u32 = 8;
/// How long a definition may take to be served.
const DEFINITION_TIMEOUT: Duration = Duration::from_secs(30);

/// An object to be applied.
#[derive(Debug, Clone)]
pub(crate) struct Attempt<'a> {
    /// As it was rendered.
    pub(crate) manifest: &'a Value,
    /// Its reference.
    pub(crate) reference: &'a ObjectRef,
    /// Who wins conflicts, as the project says.
    pub(crate) rules: &'a [ConflictRule],
    /// As it was seen before; none when it is new, or could not be read.
    pub(crate) live: Option<Arc<Value>>,
}

/// Applies an object as manager `kluctl`; when other managers own fields, decides field by field.
///
/// Only a patch without the fields that are left to others is ever applied by force, and only onto the very state of the
/// object that was decided about: the state is read before the API server names the conflicts, and the forced patch
/// carries its resource version. Any change in between makes the API server refuse, and all is decided anew.
pub(crate) async fn apply(
    cluster: &Cluster,
    attempt: Attempt<'_>,
    options: ApplyOptions,
) -> Result<Applied, Failure> {
    let manifest = fixup::apply(attempt.manifest);
    let mut live = attempt.live;
    let mut unsure = true;
    for round in 0..STALE_ATTEMPTS {
        let error = match cluster.apply(&manifest, options).await {
            Ok(applied) => return Ok(applied),
            Err(error) => error,
        };
        let Some(causes) = error.field_conflicts() else {
            if error.is_stale() && round + 1 < STALE_ATTEMPTS {
                cluster.pause(Duration::from_millis(20 << round)).await?;
                continue;
            }
            return Err(Failure::Cluster(error));
        };
        let Some(seen) = live else {
            live = cluster.get(attempt.reference).await?.map(Arc::new);
            if live.is_none() && round > 0 {
                return Err(Failure::Cluster(error));
            }
            continue;
        };
        let resolution = match conflict::resolve(&seen, &manifest, attempt.rules, causes) {
            Ok(resolution) => resolution,
            // What was seen may be older than the conflict.
            Err(_) if unsure => {
                unsure = false;
                live = cluster.get(attempt.reference).await?.map(Arc::new);
                continue;
            }
            Err(error) => return Err(Failure::Conflict(error)),
        };
        match apply_onto(cluster, &seen, resolution, options).await {
            Err(Failure::Cluster(error)) if error.is_stale() => {
                live = cluster.get(attempt.reference).await?.map(Arc::new);
                cluster.pause(Duration::from_millis(20 << round)).await?;
            }
            ended => return ended,
        }
    }
    Err(Failure::Restless)
}

/// Applies by force what a conflict was resolved to, onto the very state that it was resolved for.
async fn apply_onto(
    cluster: &Cluster,
    seen: &Value,
    resolution: Resolution,
    options: ApplyOptions,
) -> Result<Applied, Failure> {
    let mut patch = resolution.patch;
    pin(&mut patch, seen);
    let options = ApplyOptions {
        force: true,
        ..options
    };
    let mut applied = cluster.apply(&patch, options).await?;
    applied.warnings.extend(resolution.warnings);
    Ok(applied)
}

/// Why an object could not be applied.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    #[error("{0}")]
    Conflict(objects::Error),
    #[error(
        "the object is changed by others all the time, so a conflict with them can't be settled: try again later"
    )]
    Restless,
}

impl Failure {
    /// True if the API server refused the request for lack of permissions.
    fn is_denied(&self) -> bool {
        matches!(self, Self::Cluster(error) if error.is_denied())
    }

    /// Whether no other way of applying the object can help.
    pub(super) fn is_hopeless(&self) -> bool {
        matches!(
            self,
            Self::Cluster(
                cluster::Error::Cancelled
                    | cluster::Error::NoMatch { .. }
                    | cluster::Error::Unreachable { .. }
                    | cluster::Error::Timeout { .. }
                    | cluster::Error::InvalidName { .. }
            )
        )
    }
}

/// An object that was applied.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) object: Arc<Value>,
    pub(super) warnings: Vec<String>,
    /// Whether it had to be deleted for that.
    pub(super) deleted: bool,
}

impl Done {
    /// An object that is as rendered already.
    pub(super) fn unchanged(object: Arc<Value>) -> Self {
        Self {
            object,
            warnings: Vec::new(),
            deleted: false,
        }
    }

    /// An applied object, with what was warned of before.
    pub(super) fn with(applied: Applied, mut warnings: Vec<String>) -> Self {
        warnings.extend(applied.warnings);
        Self {
            object: Arc::new(applied.object),
            warnings,
            deleted: false,
        }
    }
}

/// An object that was not applied, and all that was tried.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) message: String,
    pub(super) denied: bool,
    pub(super) warnings: Vec<String>,
}

impl Failed {
    pub(super) fn of(reference: &ObjectRef, failure: &Failure) -> Self {
        let message = match failure {
            Failure::Cluster(cluster::Error::Cancelled) => {
                format!(
                    "failed to patch {reference}: cancelled in the middle, so whether it was applied is not known"
                )
            }
            other => format!("failed to patch {reference}: {other}"),
        };
        Self {
            message,
            denied: failure.is_denied(),
            warnings: Vec::new(),
        }
    }
}

pub(super) fn pin(patch: &mut Value, seen: &Value) {
    let version = meta::resource_version(seen).map(str::to_owned);
    if let (Some(metadata), Some(version)) = (patch.get_mut("metadata").and_then(Value::as_map_mut), version)
    {
        metadata.insert("resourceVersion", version);
    }
}

/// Applies an object of a deployment, whose kind or namespace the deployment itself may bring, and tries harder when told so.
pub(super) async fn apply_in_run(run: &Run<'_>, attempt: Attempt<'_>, place: Place) -> Result<Done, Failed> {
    match apply_to_place(run, attempt.clone(), place).await {
        Ok(applied) => Ok(Done::with(applied, Vec::new())),
        Err(failure) => replace::try_harder(run, attempt, failure).await,
    }
}

async fn apply_to_place(run: &Run<'_>, attempt: Attempt<'_>, place: Place) -> Result<Applied, Failure> {
    let options = ApplyOptions {
        dry_run: run.options.dry_run,
        force: run.options.force_apply,
        ..ApplyOptions::default()
    };
    let (manifest, reference, rules) = (attempt.manifest, attempt.reference, attempt.rules);
    if options.dry_run {
        let namespace_is_missing = run.is_pretended(reference.namespace.as_ref());
        if namespace_is_missing || run.is_pretended_gone(reference) {
            return try_elsewhere(run.cluster, &attempt, namespace_is_missing, options).await;
        }
    }
    let is_new = attempt.live.is_none();
    let deadline = Instant::now() + DEFINITION_TIMEOUT;
    let mut next = attempt;
    loop {
        match apply(run.cluster, next, options).await {
            Err(Failure::Cluster(cluster::Error::NoMatch { .. }))
                if run.definitions.expect(reference, place) == Definition::Coming =>
            {
                if options.dry_run {
                    return Ok(pretend(manifest, reference));
                }
                if Instant::now() >= deadline || run.is_aborted() {
                    let what = format!("waiting until kind {} is served", reference.kind);
                    return Err(Failure::Cluster(cluster::Error::Timeout {
                        what,
                        after: DEFINITION_TIMEOUT,
                    }));
                }
                run.cluster.pause(Duration::from_millis(250)).await?;
                next = Attempt {
                    manifest,
                    reference,
                    rules,
                    live: None,
                };
            }
            Ok(applied) => {
                if options.dry_run && is_new && reference.is("", "Namespace") {
                    run.pretend_namespace(&reference.name);
                }
                return Ok(applied);
            }
            failed => return failed,
        }
    }
}

/// Tries an object whose namespace does not exist yet, or whose name is not free yet.
async fn try_elsewhere(
    cluster: &Cluster,
    attempt: &Attempt<'_>,
    namespace_is_missing: bool,
    options: ApplyOptions,
) -> Result<Applied, Failure> {
    let reference = attempt.reference;
    let disguised = stand_in::disguise(attempt.manifest, reference, namespace_is_missing);
    let other = ObjectRef::of(&disguised).map_err(Failure::Conflict)?;
    let attempt = Attempt {
        manifest: &disguised,
        reference: &other,
        rules: &[],
        live: None,
    };
    let applied = apply(cluster, attempt, options).await?;
    Ok(Applied {
        object: stand_in::restore(applied.object, reference),
        ..applied
    })
}

/// In a dry run the definition of a kind was not really applied, so the object can't be tried.
fn pretend(manifest: &Value, reference: &ObjectRef) -> Applied {
    let warning = format!(
        "the underyling custom resource definition for {reference} has not been applied yet as Kluctl is running in dry-run \
         mode. It is not guaranteed that the object will actually sucessfully apply"
    );
    Applied {
        object: manifest.clone(),
        warnings: vec![warning],
    }
}
