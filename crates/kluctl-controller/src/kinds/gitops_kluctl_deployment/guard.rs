//! Checks before objects are deleted: the KluctlDeployment and the revision of its source must still be those that were read, and no other
//! deployment may own the objects.

use std::{
    fmt,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use api::{Fault, kluctl::gitops::KluctlDeployment};
use deployer::{
    claims::{self, ForeignOwners},
    key,
};
use engine::Confirm;
use futures::{FutureExt as _, future::BoxFuture};
use objects::ObjectRef;
use parking_lot::Mutex;
use results::{CommandResult, ObjectError};

use super::{build::ProjectRead, controller::Controller};
use crate::common::sharers::{Claimant, Sharing, WORDS};

/// Timeout for asking a Git server or a registry for a revision.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Another deployment may own them. Only a change of the other one ends this.
    Shared(String),
    /// The checks could not be made, or the object or its source changed meanwhile: another attempt may end otherwise.
    Transient(String),
}

impl Refusal {
    fn shared(discriminator: &str, other: &str) -> Self {
        Self::Shared(format!(
            "the discriminator '{discriminator}' is also used by {other}"
        ))
    }

    /// Returns the refusal for the answer about the owners of the objects; `None` if nobody else owns them.
    fn of_owners(refusal: Option<claims::Refusal>, is_confirmed: bool, discriminator: &str) -> Option<Self> {
        match refusal {
            Some(claims::Refusal::Shared(other)) => Some(Self::shared(discriminator, &other)),
            Some(claims::Refusal::Unknown(why)) => Some(Self::Transient(why)),
            None if is_confirmed => None,
            None => Some(Self::Transient(
                "other owners of the objects could not be ruled out".to_owned(),
            )),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shared(why) | Self::Transient(why) => write!(f, "nothing is deleted: {why}"),
        }
    }
}

/// Asked by a prune or a removal before it deletes objects. It reads other KluctlDeployments only then.
pub(super) struct Guard<'a> {
    pub(super) controller: &'a Controller,
    pub(super) object: &'a KluctlDeployment,
    pub(super) cluster: &'a cluster::Cluster,
    pub(super) identity: &'a deployer::ClusterIdentity,
    pub(super) discriminator: &'a str,
    /// The source that must not have moved; absent in a removal, which needs none.
    source: Option<&'a ProjectRead>,
    pub(super) refusal: Mutex<Option<Refusal>>,
    is_outdated: AtomicBool,
}

impl<'a> Guard<'a> {
    pub(super) fn new(
        controller: &'a Controller,
        object: &'a KluctlDeployment,
        cluster: &'a cluster::Cluster,
        identity: &'a deployer::ClusterIdentity,
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

    /// Requires that the source still names the revision that was read: a newer one may deploy other objects.
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

    pub(super) fn refusal(&self) -> Option<Refusal> {
        self.refusal.lock().clone()
    }

    pub(super) fn explain(&self, result: &mut CommandResult) {
        if let Some(why) = self.refusal() {
            result
                .errors
                .retain(|error| error.reference.is_some() || error.message != "aborted");
            result.errors.push(ObjectError::general(why.to_string()));
        }
    }

    async fn check(&self, objects: &[ObjectRef]) -> Result<(), Refusal> {
        let unknown = |fault: Fault| Refusal::Transient(fault.message);
        let client = self.controller.client();
        if !deployer::objects::is_unchanged(client, self.object)
            .await
            .map_err(unknown)?
        {
            return Err(Refusal::Transient(
                "the KluctlDeployment changed meanwhile".to_owned(),
            ));
        }
        if let Err(why) = self.check_source().await {
            self.is_outdated.store(true, Ordering::Relaxed);
            return Err(Refusal::Transient(why));
        }
        let sharing = Sharing {
            client: self.controller.client(),
            namespace: self.controller.parts.ctx.flags().watch_namespace(),
            clusters: &self.controller.parts.clusters,
        };
        let itself = Claimant {
            key: key(self.object),
            is_successor: true,
        };
        let sharers = sharing.sharers(&itself, self.discriminator, self.identity).await;
        let sharers = sharers.map_err(unknown)?;
        if let Some(other) = sharers.certain() {
            return Err(Refusal::shared(self.discriminator, other));
        }
        if let Some(other) = sharers.uncertain.first() {
            return Err(Refusal::Transient(format!(
                "the cluster of {other}, which has the same discriminator, is unknown"
            )));
        }
        let owners = ForeignOwners::new(
            &self.controller.parts.clusters,
            self.cluster,
            self.identity,
            sharers.foreign,
            WORDS,
        );
        let is_confirmed = owners.allows(objects).await;
        Refusal::of_owners(owners.refusal(), is_confirmed, self.discriminator).map_or(Ok(()), Err)
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
        let asking = self.cluster.waiting(tokio::time::timeout(HEAD_TIMEOUT, asking));
        let head = match asking.await {
            Ok(Ok(head)) => head,
            Ok(Err(error)) => {
                return Err(format!("the source cannot be read again: {error}"));
            }
            Err(_) => {
                return Err(format!("the source did not answer within {HEAD_TIMEOUT:?}"));
            }
        };
        match head {
            Some(head) if head.revision != *read => Err(format!(
                "the source has another revision meanwhile, {} instead of {read}",
                head.revision
            )),
            _ => Ok(()),
        }
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
            *self.refusal.lock() = checked.err();
            is_confirmed
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_that_are_unknown_are_asked_for_again_and_known_ones_are_not() {
        let of = |refusal, is_confirmed| Refusal::of_owners(refusal, is_confirmed, "d");
        assert_eq!(of(None, true), None);
        let shared = of(Some(claims::Refusal::Shared("apps/other".to_owned())), false);
        let text = "nothing is deleted: the discriminator 'd' is also used by apps/other";
        assert_eq!(shared.as_ref().map(ToString::to_string).as_deref(), Some(text));
        assert!(matches!(shared, Some(Refusal::Shared(_))));
        let unknown = Some(claims::Refusal::Unknown("no answer".to_owned()));
        assert_eq!(
            of(unknown, false),
            Some(Refusal::Transient("no answer".to_owned()))
        );
        assert!(matches!(of(None, false), Some(Refusal::Transient(_))));
    }
}
