//! Deletes the deployed objects when their KluctlDeployment is deleted, or keeps them.

use std::time::Instant;

use api::{Fault, Reason, kluctl::KluctlDeployment};
use cluster::Cluster;
use deployer::{
    ClusterIdentity, RemovalFailure,
    claims::{ForeignOwners, Refusal, Sharers},
    key, working,
};
use results::deployed::flux as inventory;
use runtime::{Pass, Severity};

use super::{
    controller::Controller,
    discriminators,
    plan::{self, KeepReason, Removal, RemovalFacts, Selector},
    spec,
};
use crate::{
    common::{OwnerCheck, check_removed, sharers::WORDS},
    metrics::Command,
};

impl Controller {
    pub(super) async fn remove_deployed(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
    ) -> Result<(), RemovalFailure<()>> {
        let object = pass.object;
        // Objects with an earlier discriminator go, too.
        let mut discriminators = discriminators::previous(object.status.as_ref(), None);
        let current = object
            .status
            .as_ref()
            .and_then(|status| status.discriminator.clone());
        if let Some(current) = current.filter(|current| !discriminators.contains(current)) {
            discriminators.push(current);
        }
        if discriminators.is_empty() {
            let labels = object.status.as_ref().map(|status| &status.common_labels);
            return self
                .remove_selected(pass, Selector::without_discriminator(labels))
                .await;
        }
        for discriminator in &discriminators {
            self.remove_selected(pass, Selector::Discriminator(discriminator))
                .await?;
        }
        Ok(())
    }

    async fn remove_selected(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        selector: Selector<'_>,
    ) -> Result<(), RemovalFailure<()>> {
        let object = pass.object;
        let mut facts = RemovalFacts {
            suspended: object.spec.suspend,
            delete: object.spec.delete,
            prune: object.spec.prune,
            selector,
            handed_over: false,
            sharers: &[],
        };
        // Facts that need no request decide first.
        if let Removal::Keep(reason) = plan::removal(&facts) {
            self.report_retained(object, &reason);
            return Ok(());
        }
        facts.handed_over = self.has_successor(&key(object)).await?;
        if let Removal::Keep(reason) = plan::removal(&facts) {
            self.report_retained(object, &reason);
            return Ok(());
        }
        let (kube_config, account) = (&object.spec.kube_config, &object.spec.service_account_name);
        let target = self
            .clusters()
            .of(pass.namespace, kube_config.as_ref(), account.as_deref());
        let target = target.await.map_err(|error| RemovalFailure::of_cluster(&error))?;
        let sharers = self.removal_sharers(object, selector, &target.identity).await?;
        facts.sharers = sharers.certain().map_or(&[][..], std::slice::from_ref);
        match (plan::removal(&facts), sharers.uncertain.first()) {
            (Removal::Keep(reason), _) => {
                self.report_retained(object, &reason);
                Ok(())
            }
            (Removal::Delete, Some(other)) => {
                let what = selector.name();
                let why = format!("the cluster of {other}, which has the same {what}, is unknown");
                Err(Fault::retry(Reason::Failed, why).into())
            }
            (Removal::Delete, None) => {
                let cluster = working(&target.cluster, pass);
                let clusters = self.clusters();
                let owners = ForeignOwners::new(clusters, &cluster, &target.identity, sharers.foreign, WORDS);
                self.delete(object, &cluster, selector, OwnerCheck(owners)).await
            }
        }
    }

    async fn removal_sharers(
        &self,
        object: &KluctlDeployment,
        selector: Selector<'_>,
        own: &ClusterIdentity,
    ) -> Result<Sharers, Fault> {
        match selector {
            Selector::Nothing => Ok(Sharers::default()),
            Selector::Discriminator(value) => self.sharers(object, value, own).await,
            Selector::CommonLabels(labels) => {
                let (sharing, itself) = self.sharing(object);
                sharing.sharers_of_labels(&itself, labels, own).await
            }
        }
    }

    async fn delete(
        &self,
        object: &KluctlDeployment,
        cluster: &Cluster,
        selector: Selector<'_>,
        owners: OwnerCheck<'_>,
    ) -> Result<(), RemovalFailure<()>> {
        let started = Instant::now();
        let has_result = object
            .status
            .as_ref()
            .is_some_and(|status| status.last_deploy_result.is_some());
        // Without either, a deployment of an earlier release may have been interrupted: nobody knows its result.
        let is_known = has_result || inventory::in_progress(object).is_some();
        let previous = is_known.then(|| inventory::deployed_objects(object)).flatten();
        let options = engine::RemoveOptions {
            dry_run: self.is_dry_run(object),
            previous: previous.as_deref(),
            inclusion: spec::inclusion(&object.spec),
            confirm: Some(&owners),
            ..Default::default()
        };
        let deleted = match selector {
            Selector::Nothing => return Ok(()),
            Selector::Discriminator(value) => engine::delete(cluster, value, &options).await,
            Selector::CommonLabels(labels) => engine::delete_labelled(cluster, labels, &options).await,
        };
        match owners.refusal() {
            Some(Refusal::Shared(other)) => {
                self.report_retained(object, &selector.shared(other));
                return Ok(());
            }
            Some(Refusal::Unknown(why)) => return Err(RemovalFailure::of_unknown_owners(why)),
            None => {}
        }
        let result = deleted.map_err(|error| Fault::retry(Reason::Failed, error.to_string()))?;
        self.metrics
            .done(&key(object), Command::Delete, started.elapsed(), result.counts());
        let own = object.spec.kube_config.is_none().then(|| key(object).namespace);
        check_removed(&result, previous.as_deref().unwrap_or_default(), own.as_deref())?;
        self.parts
            .report_removal(object, Severity::Info, result.message());
        Ok(())
    }

    fn report_retained(&self, object: &KluctlDeployment, reason: &KeepReason) {
        let severity = match reason {
            KeepReason::NotAsked => Severity::Trace,
            KeepReason::Suspended | KeepReason::HandedOver | KeepReason::NoDiscriminator => Severity::Info,
            _ => Severity::Error,
        };
        self.parts.report_removal(object, severity, reason.to_string());
    }
}
