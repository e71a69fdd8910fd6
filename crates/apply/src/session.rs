//! Applying the manifests of one run, one by one, in the caller's order.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use cluster::Cluster;
use objects::{ObjectRef, rules::ConflictRule};
use parking_lot::Mutex;
use tokio::time::Instant;
use yaml::Value;

use crate::{
    ApplyError, Definitions, FailedObject, Failure, LiveObjects, Owner, Position, WaitOptions, Waited,
    Warning, assumed,
    definitions::Definition,
    disguise,
    object::{Applied, Attempt, Flags, apply},
    readiness, replace, takeover,
    unchanged::{self, RunState},
};

/// Time within which an applied definition must be served.
const DEFINITION_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, Default)]
#[allow(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub struct SessionOptions {
    /// If set, the API server does everything but store the results.
    pub dry_run: bool,
    pub force: bool,
    /// If set, objects are applied even if that would change nothing.
    pub apply_unchanged: bool,
    /// If set, an object that can't be applied is replaced as a whole.
    pub replace_on_error: bool,
    /// If set, an object that can't be replaced either is deleted and created again.
    pub recreate_on_error: bool,
    /// If set, an object is deleted and created again if a change of an immutable field is refused.
    pub recreate_immutable: bool,
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
    pub warnings: Vec<Warning>,
    /// True if the fields of other managers were taken over, or their metadata removed.
    pub taken_over: bool,
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
            taken_over: false,
            recreated: false,
            simulated: false,
        }
    }

    pub(crate) fn new(applied: Applied, mut warnings: Vec<Warning>) -> Self {
        warnings.extend(applied.warnings.into_iter().map(Warning::Server));
        warnings.extend(applied.left.into_iter().map(Warning::FieldLeft));
        Self {
            warnings,
            ..Self::unchanged(Arc::new(applied.object))
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

    /// Applies an object. An object that equals its manifest is left alone, unless a webhook or a policy would see it. The treatment
    /// that annotations ask for ([`Owner::treatment`]) is up to the caller.
    ///
    /// # Errors
    /// If the object could not be applied, and not replaced either if the options ask for that.
    pub async fn apply(&self, request: Request<'_>) -> Result<AppliedObject, FailedObject> {
        let applied = self.apply_live(request).await;
        self.definitions.note(request.manifest, applied.is_ok());
        applied
    }

    async fn apply_live(&self, request: Request<'_>) -> Result<AppliedObject, FailedObject> {
        let (manifest, reference) = (request.manifest, request.reference);
        if self.live.is_assumed(reference) {
            if let Some(applied) = assumed::apply(self, request).await {
                return Ok(applied);
            }
            assumed::read(self, reference).await?;
        }
        let live = self.live.get(reference);
        let taken = match &live {
            Some(live) => takeover::take_over(self, manifest, reference, live)
                .await
                .map_err(|error| FailedObject::new(Failure::Takeover(error)))?,
            None => None,
        };
        if !request.always
            && taken.is_none()
            && let Some(object) = unchanged::find(self, manifest, reference).await
        {
            return Ok(AppliedObject::unchanged(object));
        }
        let taken_over = taken.is_some();
        let attempt = Attempt {
            manifest,
            reference,
            rules: request.rules,
            live: taken.or(live),
        };
        let applied = match self.apply_at(attempt.clone(), request.position).await {
            Ok(applied) => Ok(applied),
            Err(error) => replace::after_error(self, attempt, error).await,
        };
        let applied = self.note_applied(reference, applied)?;
        Ok(AppliedObject {
            taken_over,
            ..applied
        })
    }

    /// Notes that an apply may have changed the cluster. An object that is as it was before is not kept twice.
    fn note_applied(
        &self,
        reference: &ObjectRef,
        applied: Result<AppliedObject, FailedObject>,
    ) -> Result<AppliedObject, FailedObject> {
        match (applied, self.live.get(reference)) {
            (Ok(done), Some(before)) if *done.object == *before => Ok(AppliedObject {
                object: before,
                ..done
            }),
            (applied, _) => {
                self.note_change();
                applied
            }
        }
    }

    /// Waits until an object is ready.
    pub async fn wait_ready(
        &self,
        reference: &ObjectRef,
        options: WaitOptions,
    ) -> Result<Waited, cluster::Error> {
        readiness::wait_ready(self.cluster, &self.owner.vocabulary, reference, options).await
    }

    pub(crate) const fn flags(&self) -> Flags {
        Flags {
            dry_run: self.options.dry_run,
            force: self.options.force,
        }
    }

    /// Returns true if an object is deleted and created again if a change of an immutable field is refused.
    pub(crate) fn recreates(&self, manifest: &Value, live: Option<&Value>) -> bool {
        self.options.recreate_immutable || self.owner.asks_for_recreation(manifest, live)
    }

    /// Returns true if the definition of an object's kind is among the manifests before it.
    pub(crate) fn awaits_definition(&self, reference: &ObjectRef, position: Position) -> bool {
        self.definitions.expect(reference, position) == Definition::Expected
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

    async fn apply_at(&self, attempt: Attempt<'_>, position: Position) -> Result<AppliedObject, ApplyError> {
        let flags = self.flags();
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
                    if self.awaits_definition(reference, position) =>
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
