//! One item: its deletions, its hooks, its objects one after the other, then waiting for those that must be ready.

use std::{collections::BTreeSet, time::Duration};

use apply::{AppliedObject, Request, WaitOptions, Waited};
use kluctl::{
    Item, ObjectSelector, annotations,
    hooks::{Phase, Rollout},
};
use objects::{Ignore, ObjectRef, meta};
use yaml::Value;

use super::{
    Run,
    hooks::{self, ItemHook},
    live,
    outcome::{self, ItemOutcome},
    owner::VOCABULARY,
    selector::{self, SelectError},
};
use crate::{Event, ItemCounts, ObjectError};

/// The work on one item.
pub(super) struct Work<'r, 'i> {
    pub(super) run: &'r Run<'i>,
    item: &'r Item,
    index: usize,
    name: String,
    /// Number of its objects.
    size: usize,
    counts: ItemCounts,
    outcome: ItemOutcome,
    /// True if a wait was cut off for something newer: the rest of the item is left to that.
    pub(super) stopped: bool,
}

/// Does all the work of an item.
pub(super) async fn run(run: &Run<'_>, index: usize, item: &Item) -> ItemOutcome {
    let name = name(item);
    let mut work = Work {
        run,
        item,
        index,
        size: item.objects.len(),
        counts: ItemCounts::default(),
        outcome: ItemOutcome::default(),
        stopped: false,
        name,
    };
    if item.dir.is_some() {
        run.tell(&Event::ItemStarted { item: &work.name });
    }
    work.all().await;
    let (counts, name) = (work.counts, work.name);
    if item.dir.is_some() || counts != ItemCounts::default() {
        run.tell(&Event::ItemFinished { item: &name, counts });
    }
    work.outcome
}

/// Returns the name of an item: its directory, or its only function.
fn name(item: &Item) -> String {
    match &item.dir {
        Some(dir) => dir.to_string(),
        None if !item.delete_objects.is_empty() => "<delete>".to_owned(),
        None if !item.wait_readiness_objects.is_empty() => "<wait>".to_owned(),
        None => "<barrier>".to_owned(),
    }
}

impl Work<'_, '_> {
    pub(super) fn error(&mut self, error: ObjectError) {
        self.run.note_error();
        self.counts.errors += 1;
        self.outcome.errors.push(error);
    }

    pub(super) fn warning(&mut self, warning: ObjectError) {
        self.counts.warnings += 1;
        self.outcome.warnings.push(warning);
    }

    async fn all(&mut self) {
        // The references of all objects were read before the first item began.
        let item = self.item;
        let refs: Vec<Option<ObjectRef>> = item
            .objects
            .iter()
            .map(|object| ObjectRef::of(object).ok())
            .collect();
        let chosen: Vec<(usize, &Value, &ObjectRef)> = item
            .objects
            .iter()
            .zip(&refs)
            .enumerate()
            .filter_map(|(position, (object, reference))| Some((position, object, reference.as_ref()?)))
            .filter(|(_, _, reference)| self.run.options.chooses(reference))
            .collect();
        let whole = self.run.options.only.is_none();
        let to_wait_for = if whole {
            self.resolve(&item.wait_readiness_objects).await
        } else {
            Vec::new()
        };
        if whole {
            for reference in self.resolve(&item.delete_objects).await {
                self.delete(&reference).await;
            }
        }
        let (deletions, mut rest): (Vec<_>, Vec<_>) = chosen
            .into_iter()
            .partition(|(_, object, _)| meta::flag(object, annotations::DELETE));
        for (_, _, reference) in deletions {
            self.delete(reference).await;
        }
        let mut hooks: Vec<ItemHook<'_>> = Vec::new();
        rest.retain(|(position, manifest, reference)| {
            let hook = hooks::parse(self, manifest, reference, *position);
            let is_hook = hook.is_some();
            hooks.extend(hook.filter(|_| whole));
            !is_hook
        });
        let is_there = |reference: &ObjectRef| self.run.session.live.objects.contains_key(reference);
        let rollout = if refs.iter().flatten().any(is_there) {
            Rollout::Upgrade
        } else {
            Rollout::Initial
        };
        hooks::run(self, &hooks, Phase::Before, rollout).await;
        if self.stopped {
            return;
        }
        self.apply_all(rest, to_wait_for).await;
        if !self.run.session.is_aborted() && !self.stopped {
            hooks::run(self, &hooks, Phase::After, rollout).await;
        }
    }

    async fn apply_all(&mut self, rest: Vec<(usize, &Value, &ObjectRef)>, mut to_wait_for: Vec<ObjectRef>) {
        for (position, manifest, reference) in rest {
            if self.run.session.is_aborted() {
                return;
            }
            let applied = self.apply(manifest, reference, position, false).await;
            let waits = self.item.wait_readiness || meta::flag(manifest, annotations::WAIT_READINESS);
            if applied && waits && !to_wait_for.contains(reference) {
                to_wait_for.push(reference.clone());
            }
        }
        if self.run.options.no_wait || self.run.options.dry_run {
            return;
        }
        for reference in to_wait_for {
            if self.run.session.is_aborted() || self.stopped {
                return;
            }
            self.wait_for(&reference, self.run.options.readiness_timeout)
                .await;
        }
    }

    /// Returns the objects that selectors name, each once.
    async fn resolve(&mut self, selectors: &[ObjectSelector]) -> Vec<ObjectRef> {
        let mut found = BTreeSet::new();
        for selector in selectors {
            match selector::select(self.run, selector).await {
                Ok(refs) => found.extend(refs),
                Err(SelectError::UnknownKind(message)) => self.error(ObjectError::general(message)),
                Err(SelectError::Cluster(error)) => {
                    self.error(ObjectError::general(error.to_string()).denied(error.is_denied()));
                }
            }
        }
        found.into_iter().collect()
    }

    async fn delete(&mut self, reference: &ObjectRef) {
        if self.run.session.is_aborted() {
            return;
        }
        if self.delete_if_there(reference).await {
            self.counts.deleted += 1;
            self.outcome.deleted.push(reference.clone());
        }
    }

    /// Deletes a hook, which is not reported: hooks come and go.
    pub(super) async fn delete_hook(&mut self, reference: &ObjectRef) {
        if self.delete_if_there(reference).await {
            self.counts.deleted_hooks += 1;
        }
    }

    async fn delete_if_there(&mut self, reference: &ObjectRef) -> bool {
        match self.run.session.delete(reference).await {
            Ok(existed) => existed,
            Err(cluster::Error::Cancelled) if self.run.stops() => {
                self.stopped = true;
                false
            }
            Err(error) => {
                let message = format!("failed to delete {reference}: {error}");
                self.error(ObjectError::of(reference, message).denied(error.is_denied()));
                false
            }
        }
    }

    /// Applies an object and adds its outcome; returns true if it was applied.
    pub(super) async fn apply(
        &mut self,
        manifest: &Value,
        reference: &ObjectRef,
        position: usize,
        is_hook: bool,
    ) -> bool {
        let request = Request {
            manifest,
            reference,
            rules: &self.item.rules.conflict_resolution,
            position: (self.index, position),
            always: is_hook,
        };
        let applied = self.run.session.apply(request).await;
        let done = match applied {
            Ok(done) => done,
            Err(failure) => {
                for warning in failure.warnings {
                    self.warning(ObjectError::of(reference, warning));
                }
                if failure.keeps_object {
                    let what = format!("skipped forced replace of {reference}");
                    self.run.tell(&Event::Warning(&what));
                }
                let error = ObjectError::of(reference, failure.message).denied(failure.denied);
                self.error(error);
                return false;
            }
        };
        self.note_applied(manifest, reference, done, is_hook);
        true
    }

    /// Adds the outcome of an applied object, with its changes.
    fn note_applied(&mut self, manifest: &Value, reference: &ObjectRef, done: AppliedObject, is_hook: bool) {
        for warning in done.warnings {
            self.warning(ObjectError::of(reference, warning));
        }
        if done.simulated {
            self.warning(ObjectError::of(reference, simulated(reference)));
        }
        if done.recreated {
            self.outcome.deleted.push(reference.clone());
        }
        let (live, options) = (self.run.session.live, self.run.options);
        if !options.dry_run && !is_hook {
            self.outcome
                .versions
                .remember(reference.id(), manifest, &done.object);
            if apply::is_ready_at_once(&VOCABULARY, reference, &done.object) {
                self.outcome.ready.insert(reference.id());
            }
        }
        self.counts.applied += 1;
        self.counts.hooks += usize::from(is_hook);
        self.run.tell(&Event::Applied {
            item: &self.name,
            done: self.counts.applied,
            of: self.size,
        });
        let ignored = self.item.rules.ignore_for_diff.iter().chain(&options.hidden);
        let ignore = match Ignore::of(manifest, &VOCABULARY, ignored) {
            Ok(ignore) => ignore,
            Err(error) => return self.error(ObjectError::of(reference, error.to_string())),
        };
        let shown = live::shown(manifest, reference);
        match outcome::changed(
            &shown,
            &ignore,
            live.before(manifest, reference).map(AsRef::as_ref),
            &done.object,
            options.show_secrets,
        ) {
            Ok(mut object) => {
                // An object that may not be read may have existed before.
                object.new &= !live.unreadable.contains_key(reference) && !is_hook;
                object.hook = is_hook;
                object.is_applied = true;
                if options.contents {
                    object.applied = Some(done.object);
                }
                self.outcome.objects.push(object);
            }
            Err(error) => self.error(ObjectError::of(reference, error.to_string())),
        }
    }

    /// Waits until an object is ready; returns false if it is not.
    pub(super) async fn wait_for(&mut self, reference: &ObjectRef, limit: Duration) -> bool {
        let what = format!("Waiting for {reference} to get ready...");
        self.run.tell(&Event::Waiting {
            item: &self.name,
            what: &what,
        });
        let mut denied = false;
        let messages = match self
            .run
            .session
            .wait_ready(reference, WaitOptions { limit })
            .await
        {
            Ok(Waited::Ready(warnings)) => {
                for warning in warnings {
                    self.warning(ObjectError::of(reference, warning));
                }
                return true;
            }
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
            Ok(Waited::Cancelled) if self.run.stops() => {
                self.stopped = true;
                return false;
            }
            Ok(Waited::Cancelled) => vec![format!(
                "context cancelled while waiting for readiness of {reference}"
            )],
            Err(error) => {
                denied = error.is_denied();
                vec![error.to_string()]
            }
        };
        for text in messages {
            self.error(ObjectError::of(reference, text).denied(denied));
        }
        false
    }
}

/// Returns the warning of kluctl about an object that a dry run could not try, with its spelling.
fn simulated(reference: &ObjectRef) -> String {
    format!(
        "the underyling custom resource definition for {reference} has not been applied yet as Kluctl is running in dry-run \
         mode. It is not guaranteed that the object will actually sucessfully apply"
    )
}
