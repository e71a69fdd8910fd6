//! Checks before objects are deleted: the KluctlDeployment and the revision of its source must still be those that were read, and no other
//! deployment may own the objects.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use api::{Fault, kluctl::gitops::KluctlDeployment};
use engine::{CommandResult, Confirm, ObjectError};
use futures::{FutureExt as _, future::BoxFuture};
use kube::{Api, ResourceExt as _};
use objects::ObjectRef;

use super::{Controller, key, prepare::ProjectRead};
use crate::common::{
    owners::{ForeignOwners, Refusal},
    sharers::{Claimant, Sharing},
};

/// Timeout for asking a Git server or a registry for a revision.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Asked by a prune or a removal before it deletes objects. It reads other KluctlDeployments only then.
pub(super) struct Guard<'a> {
    pub(super) controller: &'a Controller,
    pub(super) object: &'a KluctlDeployment,
    pub(super) cluster: &'a cluster::Cluster,
    pub(super) identity: &'a references::ClusterIdentity,
    pub(super) discriminator: &'a str,
    /// The source that must not have moved; absent in a removal, which needs none.
    source: Option<&'a ProjectRead>,
    pub(super) refusal: Mutex<Option<String>>,
    /// True if a deletion was refused because the source moved, or could not be asked.
    is_outdated: AtomicBool,
}

impl<'a> Guard<'a> {
    pub(super) fn new(
        controller: &'a Controller,
        object: &'a KluctlDeployment,
        cluster: &'a cluster::Cluster,
        identity: &'a references::ClusterIdentity,
        discriminator: &'a str,
    ) -> Self {
        Self {
            controller,
            object,
            cluster,
            identity,
            discriminator,
            source: None,
            refusal: Mutex::default(),
            is_outdated: AtomicBool::new(false),
        }
    }

    /// Requires that the source still names the revision that was read: a newer one may deploy what this one doesn't.
    pub(super) fn at(self, source: &'a ProjectRead) -> Self {
        Self {
            source: Some(source),
            ..self
        }
    }

    /// Returns true if a deletion was refused because the source moved, or could not be asked: a new pass knows more.
    pub(super) fn is_outdated(&self) -> bool {
        self.is_outdated.load(Ordering::Relaxed)
    }

    /// Returns why a deletion was refused.
    pub(super) fn refusal(&self) -> Option<String> {
        self.refusal
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Replaces the error of a refused deletion by the reason.
    pub(super) fn explain(&self, result: &mut CommandResult) {
        if let Some(why) = self.refusal() {
            result
                .errors
                .retain(|error| error.reference.is_some() || error.message != "aborted");
            result.errors.push(ObjectError::general(why));
        }
    }

    async fn check(&self, objects: &[ObjectRef]) -> Result<(), String> {
        if !self.is_unchanged().await.map_err(|fault| fault.message)? {
            return Err("nothing is deleted: the KluctlDeployment changed meanwhile".to_owned());
        }
        if let Err(why) = self.check_source().await {
            self.is_outdated.store(true, Ordering::Relaxed);
            return Err(why);
        }
        let sharing = Sharing {
            client: self.controller.client(),
            namespace: self.controller.ctx.flags().watch_namespace(),
            clusters: &self.controller.clusters,
        };
        let itself = Claimant {
            key: key(self.object),
            is_successor: true,
        };
        let sharers = sharing.sharers(&itself, self.discriminator, self.identity).await;
        let sharers = sharers.map_err(|fault| fault.message)?;
        let shared = |other: &str| {
            format!(
                "nothing is deleted: the discriminator '{}' is also used by {other}",
                self.discriminator
            )
        };
        if let Some(other) = sharers.own.first() {
            return Err(shared(other));
        }
        let owners = ForeignOwners::new(
            &self.controller.clusters,
            self.cluster,
            self.identity,
            sharers.foreign,
        );
        let confirmed = owners.deletions(objects).await;
        match owners.refusal() {
            Some(Refusal::Shared(other)) => Err(shared(&other)),
            Some(Refusal::Unknown(why)) => Err(why),
            None if confirmed => Ok(()),
            None => Err("nothing is deleted: other owners of the objects could not be ruled out".to_owned()),
        }
    }

    /// Reads the head of the source again. Files of a command line are not asked for.
    async fn check_source(&self) -> Result<(), String> {
        let Some(source) = self.source else {
            return Ok(());
        };
        let Some(read) = &source.revision else {
            return Ok(());
        };
        let (rendering, cancel) = (&self.controller.rendering, self.cluster.cancellation());
        let asking = engine::project_head(source.address.clone(), &source.external, rendering, cancel);
        let head = match tokio::time::timeout(HEAD_TIMEOUT, asking).await {
            Ok(Ok(head)) => head,
            Ok(Err(error)) => {
                return Err(format!(
                    "nothing is deleted: the source cannot be read again: {error}"
                ));
            }
            Err(_) => {
                return Err(format!(
                    "nothing is deleted: the source did not answer within {HEAD_TIMEOUT:?}"
                ));
            }
        };
        match head {
            Some(head) if head.revision != *read => Err(format!(
                "nothing is deleted: the source has another revision meanwhile, {} instead of {read}",
                head.revision
            )),
            _ => Ok(()),
        }
    }

    async fn is_unchanged(&self) -> Result<bool, Fault> {
        let namespace = self.object.namespace().unwrap_or_default();
        let api: Api<KluctlDeployment> = Api::namespaced(self.controller.client().clone(), &namespace);
        let found = references::objects::found(api.get_metadata(&self.object.name_any()).await);
        let found = found.map_err(|error| {
            let message = format!(
                "cannot read the object again: {}",
                runtime::client::describe(&error)
            );
            Fault::retry(api::Reason::Failed, message)
        })?;
        let (then, now) = (&self.object.metadata, found.map(|found| found.metadata));
        Ok(now.is_some_and(|now| {
            now.uid == then.uid
                && now.generation == then.generation
                && now.deletion_timestamp.is_some() == then.deletion_timestamp.is_some()
        }))
    }
}

impl Confirm for Guard<'_> {
    fn changes<'b>(&'b self, _: &'b CommandResult) -> BoxFuture<'b, bool> {
        std::future::ready(true).boxed()
    }

    fn deletions<'b>(&'b self, objects: &'b [ObjectRef]) -> BoxFuture<'b, bool> {
        async {
            let checked = self.check(objects).await;
            let is_confirmed = checked.is_ok();
            *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = checked.err();
            is_confirmed
        }
        .boxed()
    }
}
