//! The deletion of objects that are no longer rendered.

use std::time::Instant;

use api::Fault;
use deployer::claims::{Claim, ForeignOwners, Refusal};
use engine::{Error, RemoveOptions, SearchedKinds, discriminator::DiscriminatorError};
use remote::SshConnections;

use super::{
    CommandDone, Deployment, Prune,
    done::{command_done, nothing_pruned, refused},
    plan, spec,
};
use crate::{
    common::{OwnerCheck, sharers::WORDS},
    metrics::Command,
};

impl Deployment<'_> {
    /// Deletes objects that are no longer rendered, if the discriminator proves that they belong to this object.
    pub(super) async fn prune(
        &self,
        prune: Prune,
        orphans: Option<usize>,
        kinds: Option<&SearchedKinds>,
    ) -> Result<Option<CommandDone>, Fault> {
        match (prune, orphans) {
            (Prune::Disabled | Prune::NotNow, _) | (Prune::IfSeen, None | Some(0)) => return Ok(None),
            (Prune::Run, _) | (Prune::IfSeen, Some(_)) => {}
        }
        let discriminator = self.built.discriminator();
        if let Err(refusal) = plan::may_prune(discriminator, &[]) {
            return Ok(Some(refused(refusal_text(&refusal))));
        }
        if orphans == Some(0) {
            return Ok(Some(nothing_pruned()));
        }
        let sharers = self
            .controller
            .sharers(
                self.object,
                discriminator.unwrap_or_default(),
                &self.built.identity,
            )
            .await?;
        if let Err(refusal) = plan::may_prune(discriminator, &sharers.own) {
            return Ok(Some(refused(refusal_text(&refusal))));
        }
        self.still_current().await?;
        let started = Instant::now();
        let previous = self.previous();
        let owners = self.owners(sharers.foreign);
        let options = RemoveOptions {
            dry_run: self.dry_run,
            previous: previous.as_deref(),
            inclusion: spec::inclusion(&self.object.spec),
            kinds,
            confirm: Some(&owners),
            ..RemoveOptions::default()
        };
        let pruned = engine::prune(&self.built.cluster, &self.built.rendered, &options).await;
        if let Some(refusal) = owners.refusal() {
            return Ok(Some(refused(shared_text(discriminator, refusal))));
        }
        match pruned {
            Ok(result) => {
                let metrics = &self.controller.metrics;
                metrics.done(self.key, Command::Prune, started.elapsed(), result.counts());
                let mut done = command_done(&result);
                // Objects may be left, so pruning stays due.
                done.errors.extend(result.completeness.message());
                Ok(Some(done))
            }
            Err(error @ Error::Cancelled) => Err(self.fault(&error)),
            Err(error) => Ok(Some(refused(error.to_string()))),
        }
    }

    /// Returns the check if objects that are about to be deleted may belong to these deployments of other namespaces.
    pub(super) fn owners(&self, claims: Vec<Claim>) -> OwnerCheck<'_> {
        let clusters = self.controller.clusters();
        let (cluster, identity) = (&self.built.cluster, &self.built.identity);
        OwnerCheck(ForeignOwners::new(clusters, cluster, identity, claims, WORDS))
    }

    /// Fails if the object or its source changed since this pass began: objects of a newer revision must not be deleted.
    pub(super) async fn still_current(&self) -> Result<(), Fault> {
        let client = self.controller.client();
        let same = deployer::objects::is_unchanged(client, self.object).await?
            && self.revision_now().await? == self.artifact.revision();
        if same {
            return Ok(());
        }
        Err(self.superseded().await)
    }

    async fn revision_now(&self) -> Result<String, Fault> {
        let cluster = &self.built.cluster;
        let ssh = SshConnections::default();
        let source = self.controller.source(self.object, &ssh, cluster.cancellation());
        Ok(cluster.waiting(source).await?.revision().to_owned())
    }
}

/// Returns the reason not to prune, as kluctl says it.
pub(super) fn refusal_text(refusal: &DiscriminatorError) -> String {
    match refusal {
        DiscriminatorError::Empty => Error::PruneWithoutDiscriminator.to_string(),
        other => other.to_string(),
    }
}

pub(super) fn shared_text(discriminator: Option<&str>, refusal: Refusal) -> String {
    match refusal {
        Refusal::Shared(other) => refusal_text(&DiscriminatorError::Duplicate {
            discriminator: discriminator.unwrap_or_default().to_owned(),
            other,
        }),
        Refusal::Unknown(why) => why,
    }
}
