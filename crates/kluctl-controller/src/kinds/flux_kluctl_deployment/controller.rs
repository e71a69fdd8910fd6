//! The state of the controller of this kind, which all steps of its passes use.

use api::{Fault, Reason, group, kluctl::KluctlDeployment};
use deployer::{ClusterIdentity, Clusters, ObjectNames, Parts, References, claims::Sharers, key, objects};
use engine::{ExternalAccess, RenderSlots};
use kube::Client;
use remote::ChartCache;
use runtime::{Context, ObjectKey, client::describe, scratch};

use super::consumer::FluxKluctlDeployment;
use crate::{
    common::sharers::{self, Claimant, Sharing},
    flags::Flags,
    metrics::Metrics,
};

#[derive(Debug)]
pub struct Controller {
    pub(super) parts: Parts,
    pub(super) metrics: Metrics,
    pub(super) references: References<FluxKluctlDeployment>,
    /// The objects of `gitops.kluctl.io`, which may take over.
    pub(super) successors: ObjectNames,
    pub(super) rendering: tree::Limits,
    pub(super) external: ExternalAccess,
    pub(super) render_slots: RenderSlots,
    pub(super) chart_cache: ChartCache,
    pub(super) git_credentials_hosts: Vec<String>,
    dry_run: bool,
}

impl Controller {
    pub fn new(ctx: &Context, flags: &Flags) -> anyhow::Result<Self> {
        let dir = scratch::directory(&std::env::temp_dir(), "kluctl-controller")?;
        let limits = flags.references.fetching(flags.render.limits());
        let labels = [kluctl::annotations::DISCRIMINATOR];
        let parts = Parts::start(ctx, flags.references.kubeconfigs(), &labels);
        let clusters = std::sync::Arc::clone(&parts.clusters);
        let references = References::new(ctx, &flags.references, &dir, limits, clusters)?;
        let registry = ctx.metrics().registry();
        Ok(Self {
            metrics: Metrics::of_flux(&registry.labelled("group", group::FLUX_KLUCTL))?,
            successors: ObjectNames::start(ctx, &sharers::successor()),
            parts,
            references,
            rendering: flags.render.limits(),
            external: flags.external(ctx),
            render_slots: RenderSlots::default(),
            chart_cache: ChartCache::default(),
            dry_run: flags.dry_run,
            git_credentials_hosts: flags.git_credentials_hosts.clone(),
        })
    }

    pub(super) fn client(&self) -> &Client {
        self.parts.ctx.client()
    }

    pub(super) fn clusters(&self) -> &Clusters {
        &self.parts.clusters
    }

    /// Returns true if all changes of an object are dry runs.
    pub(super) fn is_dry_run(&self, object: &KluctlDeployment) -> bool {
        self.dry_run || object.spec.dry_run
    }

    pub(super) async fn sharers(
        &self,
        object: &KluctlDeployment,
        discriminator: &str,
        own: &ClusterIdentity,
    ) -> Result<Sharers, Fault> {
        let (sharing, itself) = self.sharing(object);
        sharing.sharers(&itself, discriminator, own).await
    }

    pub(super) fn sharing(&self, object: &KluctlDeployment) -> (Sharing<'_>, Claimant) {
        let sharing = Sharing {
            client: self.client(),
            namespace: self.parts.ctx.flags().watch_namespace(),
            clusters: self.clusters(),
        };
        let itself = Claimant {
            key: key(object),
            is_successor: false,
        };
        (sharing, itself)
    }

    /// Returns true if an object of the same name in `gitops.kluctl.io` took over, by the watch if it knows.
    pub(super) async fn is_handed_over(&self, key: &ObjectKey) -> Result<bool, Fault> {
        match self.successors.contains(key) {
            Some(is_handed_over) => Ok(is_handed_over),
            None => self.has_successor(key).await,
        }
    }

    /// Returns true if an object of the same name in `gitops.kluctl.io`, whose objects bring their own source, took over. Read live.
    pub(super) async fn has_successor(&self, key: &ObjectKey) -> Result<bool, Fault> {
        let api = objects::api(self.client(), &sharers::successor(), Some(&key.namespace));
        match objects::found(api.get_metadata(&key.name).await) {
            Ok(found) => Ok(found.is_some()),
            Err(error) => {
                let message = format!(
                    "cannot read KluctlDeployment.{} {key}: {}",
                    group::GITOPS_KLUCTL,
                    describe(&error)
                );
                Err(Fault::retry(Reason::Failed, message))
            }
        }
    }
}
