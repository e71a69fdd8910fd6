//! The objects with discriminators that the deployment had before.

use api::Fault;
use engine::{Error, RemoveOptions};
use results::CommandResult;

use super::{
    CommandResults, Deployment,
    done::nothing_pruned,
    plan,
    prune::{refusal_text, shared_text},
    spec,
};

impl Deployment<'_> {
    /// Deletes the objects with previous discriminators, or only finds them if pruning is off. A discriminator is forgotten when a
    /// complete search left no objects.
    pub(super) async fn prune_previous(&self, done: &mut CommandResults) -> Result<(), Fault> {
        // The objects that this deployment left out, or did not apply, still have them.
        if !spec::deploys_everything(&self.object.spec) {
            return Ok(());
        }
        let (prunes, mut remaining) = (self.object.spec.prune && !self.dry_run, Vec::new());
        for discriminator in std::mem::take(&mut done.previous) {
            let searched = self.search_previous(&discriminator, prunes).await;
            let (found, mut errors) = match searched? {
                Ok(result) => {
                    let mut errors: Vec<String> = result.errors.iter().map(ToString::to_string).collect();
                    errors.extend(result.completeness.message());
                    let found = result.objects.into_iter().map(|one| one.reference.to_string());
                    (found.collect::<Vec<_>>(), errors)
                }
                Err(why) => (Vec::new(), vec![why]),
            };
            let is_gone = errors.is_empty() && (prunes || found.is_empty());
            if prunes {
                tracing::info!(
                    discriminator,
                    deleted = found.len(),
                    "pruned objects with a previous discriminator"
                );
            } else {
                done.left.extend(found);
            }
            if is_gone {
                continue;
            }
            if self.object.spec.prune && !errors.is_empty() {
                let result = done.prune.get_or_insert_with(nothing_pruned);
                result.errors.append(&mut errors);
            }
            remaining.push(discriminator);
        }
        done.previous = remaining;
        Ok(())
    }

    async fn search_previous(
        &self,
        discriminator: &str,
        prunes: bool,
    ) -> Result<Result<CommandResult, String>, Fault> {
        let identity = &self.built.identity;
        let sharers = self
            .controller
            .sharers(self.object, discriminator, identity)
            .await?;
        if let Err(refusal) = plan::may_prune(Some(discriminator), &sharers.own) {
            return Ok(Err(refusal_text(&refusal)));
        }
        if prunes {
            self.still_current().await?;
        }
        let previous = self.previous();
        let owners = self.owners(sharers.foreign);
        let options = RemoveOptions {
            dry_run: !prunes,
            previous: previous.as_deref(),
            confirm: Some(&owners),
            ..RemoveOptions::default()
        };
        let (cluster, rendered) = (&self.built.cluster, &self.built.rendered);
        let pruned = engine::prune_discriminator(cluster, rendered, discriminator, &options).await;
        if let Some(refusal) = owners.refusal() {
            return Ok(Err(shared_text(Some(discriminator), refusal)));
        }
        match pruned {
            Ok(result) => Ok(Ok(result)),
            Err(error @ Error::Cancelled) => Err(self.fault(&error)),
            Err(error) => Ok(Err(error.to_string())),
        }
    }
}
