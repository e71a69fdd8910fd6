//! Applying the manifests of one run, one by one, in the caller's order.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use cluster::{Applied, Cluster};
use objects::{ObjectRef, rules::ConflictRule};
use parking_lot::Mutex;
use tokio::time::Instant;
use yaml::Value;

use crate::{
    ApplyError, Definitions, LiveObjects, Owner, Position, WaitOptions, Waited,
    definitions::Definition,
    disguise,
    object::{Attempt, Flags, apply},
    readiness, replace,
    unchanged::{self, RunState},
};

/// Time within which an applied definition must be served.
const DEFINITION_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, Default)]
#[allow(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub struct SessionOptions {
    /// If set, the API server does everything but store the results.
    pub dry_run: bool,
    /// If set, all conflicts are resolved in favour of the owner.
    pub force: bool,
    /// If set, objects are applied even if that would change nothing.
    pub apply_unchanged: bool,
    /// If set, an object that can't be applied is replaced as a whole.
    pub replace_on_error: bool,
    /// If set, an object that can't be replaced either is deleted and created again.
    pub recreate_on_error: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    pub manifest: &'a Value,
    pub reference: &'a ObjectRef,
    pub rules: &'a [ConflictRule],
    /// Its position: it waits for the definition of its kind only if that comes before.
    pub position: Position,
    /// If set, it is applied even if that would change nothing.
    pub always: bool,
}

/// An object that was applied, or needed no change.
#[derive(Debug)]
pub struct AppliedObject {
    /// The object after the apply: the very same as before if nothing changed.
    pub object: Arc<Value>,
    /// Warnings of the API server, and about fields that are left to other managers.
    pub warnings: Vec<String>,
    /// True if it had to be deleted and created again.
    pub recreated: bool,
    /// True if it could not be tried in a dry run, because the definition of its kind was not really applied: the object
    /// is the manifest then.
    pub simulated: bool,
}

impl AppliedObject {
    fn unchanged(object: Arc<Value>) -> Self {
        Self {
            object,
            warnings: Vec::new(),
            recreated: false,
            simulated: false,
        }
    }

    pub(crate) fn new(applied: Applied, mut warnings: Vec<String>) -> Self {
        warnings.extend(applied.warnings);
        Self {
            warnings,
            ..Self::unchanged(Arc::new(applied.object))
        }
    }
}

#[derive(Debug)]
pub struct FailedObject {
    /// The error, and the object.
    pub message: String,
    pub denied: bool,
    /// Warnings about the attempts.
    pub warnings: Vec<String>,
    /// True if the object was not deleted and created again because it is to be kept.
    pub keeps_object: bool,
}

impl FailedObject {
    pub(crate) fn new(reference: &ObjectRef, error: &ApplyError) -> Self {
        let message = match error {
            ApplyError::Cluster(cluster::Error::Cancelled) => {
                format!(
                    "failed to patch {reference}: cancelled in the middle, so whether it was applied is not known"
                )
            }
            other => format!("failed to patch {reference}: {other}"),
        };
        Self {
            message,
            denied: error.is_denied(),
            warnings: Vec::new(),
            keeps_object: false,
        }
    }
}

/// A run: the state that applying one object after the other depends on.
#[derive(Debug)]
pub struct Session<'a> {
    pub cluster: &'a Cluster,
    pub owner: &'a Owner,
    /// The live objects as they were read at the start.
    pub live: &'a LiveObjects,
    pub definitions: Definitions,
    pub(crate) options: SessionOptions,
    pub(crate) state: RunState,
    /// In a dry run: namespaces that were not really created.
    pretended_namespaces: Mutex<HashSet<String>>,
    /// In a dry run: objects that were not really deleted.
    pretended_gone: Mutex<HashSet<ObjectRef>>,
    aborted: AtomicBool,
}

/// The start of a run, before the live objects are read: later findings are newer than these objects may be.
#[derive(Debug)]
pub struct SessionStart(RunState);

impl<'a> Session<'a> {
    /// Starts a run; to be called before, or while, the live objects are read.
    #[must_use]
    pub fn start() -> SessionStart {
        SessionStart(RunState::start())
    }

    #[must_use]
    pub fn new(
        start: SessionStart,
        cluster: &'a Cluster,
        owner: &'a Owner,
        live: &'a LiveObjects,
        definitions: Definitions,
        options: SessionOptions,
    ) -> Self {
        Self {
            cluster,
            owner,
            live,
            definitions,
            options,
            state: start.0,
            pretended_namespaces: Mutex::default(),
            pretended_gone: Mutex::default(),
            aborted: AtomicBool::new(false),
        }
    }

    /// Returns true if nothing new may begin: the run was aborted or the work is cancelled.
    #[must_use]
    pub fn is_aborted(&self) -> bool {
        self.aborted.load(Ordering::Relaxed) || self.cluster.cancellation().is_cancelled()
    }

    pub fn abort(&self) {
        self.aborted.store(true, Ordering::Relaxed);
    }

    /// Applies an object. An object that equals its manifest is left alone, unless a webhook or a policy would see it.
    ///
    /// # Errors
    /// If the object could not be applied, and not replaced either if the options ask for that.
    pub async fn apply(&self, request: Request<'_>) -> Result<AppliedObject, FailedObject> {
        let (manifest, reference) = (request.manifest, request.reference);
        let unchanged = match request.always {
            true => None,
            false => unchanged::find(self, manifest, reference).await,
        };
        let applied = match unchanged {
            Some(object) => Ok(AppliedObject::unchanged(object)),
            None => {
                let attempt = Attempt {
                    manifest,
                    reference,
                    rules: request.rules,
                    live: self.live.objects.get(reference).map(Arc::clone),
                };
                let applied = match self.apply_at(attempt.clone(), request.position).await {
                    Ok(applied) => Ok(applied),
                    Err(error) => replace::after_error(self, attempt, error).await,
                };
                self.note_applied(reference, applied)
            }
        };
        self.definitions.note(manifest, applied.is_ok());
        applied
    }

    /// Notes that an apply may have changed the cluster. An object that is as it was before is not kept twice.
    fn note_applied(
        &self,
        reference: &ObjectRef,
        applied: Result<AppliedObject, FailedObject>,
    ) -> Result<AppliedObject, FailedObject> {
        match (applied, self.live.objects.get(reference)) {
            (Ok(done), Some(before)) if *done.object == **before => Ok(AppliedObject {
                object: Arc::clone(before),
                ..done
            }),
            (applied, _) => {
                self.note_change();
                applied
            }
        }
    }

    /// Waits until an object is ready.
    ///
    /// # Errors
    /// If the API server refuses or can't be reached.
    pub async fn wait_ready(
        &self,
        reference: &ObjectRef,
        options: WaitOptions,
    ) -> Result<Waited, cluster::Error> {
        readiness::wait_ready(self.cluster, &self.owner.vocabulary, reference, options).await
    }

    /// Notes that the cluster may differ from the live objects that were read. A dry run changes nothing.
    pub(crate) fn note_change(&self) {
        if !self.options.dry_run {
            self.state.note_change();
        }
    }

    pub(crate) fn is_pretended(&self, namespace: Option<&String>) -> bool {
        namespace.is_some_and(|namespace| self.pretended_namespaces.lock().contains(namespace))
    }

    pub(crate) fn pretend_gone(&self, reference: &ObjectRef) {
        self.pretended_gone.lock().insert(reference.clone());
    }

    pub(crate) fn is_pretended_gone(&self, reference: &ObjectRef) -> bool {
        self.pretended_gone.lock().contains(reference)
    }

    /// Applies an object whose kind or namespace may be among the manifests.
    async fn apply_at(&self, attempt: Attempt<'_>, position: Position) -> Result<AppliedObject, ApplyError> {
        let flags = Flags {
            dry_run: self.options.dry_run,
            force: self.options.force,
        };
        let (manifest, reference, rules) = (attempt.manifest, attempt.reference, attempt.rules);
        if flags.dry_run {
            let namespace_is_missing = self.is_pretended(reference.namespace.as_ref());
            if namespace_is_missing || self.is_pretended_gone(reference) {
                let applied = self
                    .apply_disguised(&attempt, namespace_is_missing, flags)
                    .await?;
                return Ok(AppliedObject::new(applied, Vec::new()));
            }
        }
        let is_new = attempt.live.is_none();
        let deadline = Instant::now() + DEFINITION_TIMEOUT;
        let mut next = attempt;
        loop {
            match apply(self.cluster, self.owner, next, flags).await {
                Err(ApplyError::Cluster(cluster::Error::NoMatch { .. }))
                    if self.definitions.expect(reference, position) == Definition::Expected =>
                {
                    if flags.dry_run {
                        return Ok(AppliedObject {
                            simulated: true,
                            ..AppliedObject::unchanged(Arc::new(manifest.clone()))
                        });
                    }
                    if Instant::now() >= deadline || self.is_aborted() {
                        let what = format!("waiting until kind {} is served", reference.kind);
                        return Err(ApplyError::Cluster(cluster::Error::Timeout {
                            what,
                            after: DEFINITION_TIMEOUT,
                        }));
                    }
                    self.cluster.pause(Duration::from_millis(250)).await?;
                    next = Attempt {
                        manifest,
                        reference,
                        rules,
                        live: None,
                    };
                }
                Ok(applied) => {
                    if flags.dry_run && is_new && reference.is("", "Namespace") {
                        self.pretended_namespaces.lock().insert(reference.name.clone());
                    }
                    return Ok(AppliedObject::new(applied, Vec::new()));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Tries an object whose namespace does not exist yet, or whose name is not free yet, under another name.
    async fn apply_disguised(
        &self,
        attempt: &Attempt<'_>,
        namespace_is_missing: bool,
        flags: Flags,
    ) -> Result<Applied, ApplyError> {
        let reference = attempt.reference;
        let disguised = disguise::disguise(attempt.manifest, reference, namespace_is_missing);
        let other = ObjectRef::of(&disguised)?;
        let attempt = Attempt {
            manifest: &disguised,
            reference: &other,
            rules: &[],
            live: None,
        };
        let applied = apply(self.cluster, self.owner, attempt, flags).await?;
        Ok(Applied {
            object: disguise::restore(applied.object, reference),
            ..applied
        })
    }
}
