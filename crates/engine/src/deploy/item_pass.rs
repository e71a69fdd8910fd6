//! The pass over one item: its objects are applied, deleted and waited for one by one, and its outcome grows.

use std::sync::Arc;

use apply::{AppliedObject, Request, WaitOptions, Waited};
use kluctl::Item;
use objects::{IgnoreTexts, ObjectRef};
use yaml::Value;

use super::{
    Run, live,
    outcome::{self, ItemOutcome},
    owner::VOCABULARY,
    words,
};
use crate::{Event, ItemCounts};
use results::ObjectError;

pub(super) struct ItemPass<'r, 'i> {
    pub(super) run: &'r Run<'i>,
    pub(super) item: &'r Item,
    index: usize,
    name: String,
    size: usize,
    counts: ItemCounts,
    outcome: ItemOutcome,
    /// True if a wait was cut off for something newer: the rest of the item is left to that.
    pub(super) stopped: bool,
}

impl<'r, 'i> ItemPass<'r, 'i> {
    pub(super) fn start(run: &'r Run<'i>, index: usize, item: &'r Item) -> Self {
        let pass = Self {
            run,
            item,
            index,
            size: item.objects.len(),
            counts: ItemCounts::default(),
            outcome: ItemOutcome::default(),
            stopped: false,
            name: name(item),
        };
        if item.dir.is_some() {
            run.tell(&Event::ItemStarted { item: &pass.name });
        }
        pass
    }

    pub(super) fn finish(self) -> ItemOutcome {
        let counts = self.counts;
        if self.item.dir.is_some() || counts != ItemCounts::default() {
            let item = &self.name;
            self.run.tell(&Event::ItemFinished { item, counts });
        }
        self.outcome
    }
}

/// Returns the directory of an item, or its only function.
fn name(item: &Item) -> String {
    match &item.dir {
        Some(dir) => dir.to_string(),
        None if !item.delete_objects.is_empty() => "<delete>".to_owned(),
        None if !item.wait_readiness_objects.is_empty() => "<wait>".to_owned(),
        None => "<barrier>".to_owned(),
    }
}

impl ItemPass<'_, '_> {
    pub(super) fn error(&mut self, error: ObjectError) {
        self.run.note_error();
        self.counts.errors += 1;
        self.outcome.errors.push(error);
    }

    pub(super) fn warning(&mut self, warning: ObjectError) {
        self.counts.warnings += 1;
        self.outcome.warnings.push(warning);
    }

    pub(super) async fn delete(&mut self, reference: &ObjectRef) {
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
                self.error(words::deletion(reference, &error));
                false
            }
        }
    }

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
                let error = words::failure(reference, &failure);
                for warning in failure.warnings {
                    self.warning(words::warning(reference, warning));
                }
                if failure.keeps_object {
                    let what = format!("skipped forced replace of {reference}");
                    self.run.tell(&Event::Warning(&what));
                }
                self.error(error);
                return false;
            }
        };
        self.note_applied(manifest, reference, done, is_hook).await;
        true
    }

    async fn note_applied(
        &mut self,
        manifest: &Value,
        reference: &ObjectRef,
        done: AppliedObject,
        is_hook: bool,
    ) {
        for warning in done.warnings {
            self.warning(words::warning(reference, warning));
        }
        if done.simulated {
            self.warning(words::simulated(reference));
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
        let ignored = IgnoreTexts::of(manifest, &VOCABULARY, ignored);
        let displayed = live::display_reference(manifest, reference);
        let states = (live.before(manifest, reference), Arc::clone(&done.object));
        let cluster = self.run.session.cluster;
        match outcome::changed(cluster, &displayed, ignored, states, options.show_secrets).await {
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

    pub(super) async fn wait_for(&mut self, reference: &ObjectRef, options: WaitOptions) -> bool {
        let what = format!("Waiting for {reference} to get ready...");
        self.run.tell(&Event::Waiting {
            item: &self.name,
            what: &what,
        });
        let mut denied = false;
        let messages = match self.run.session.wait_ready(reference, options).await {
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
