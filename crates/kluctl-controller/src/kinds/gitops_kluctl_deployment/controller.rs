//! The state of the controller of this kind, which all steps of its passes use.

use std::sync::Arc;

use api::kluctl::gitops::KluctlDeployment;
use cluster::Cluster;
use deployer::{ClusterIdentity, OwnClusterId, Parts, RemoteDenials, key};
use engine::{ExternalAccess, RenderSlots};
use kube::Client;
use remote::{ChartCache, SourceCache};
use results::ResultStore;
use runtime::Context;

use super::spec;
use crate::{
    flags::{Flags, ResultFlags},
    metrics::{Metrics, SpecValues},
    orphans::{GoneObjects, ResultCleaner},
    overrides::SourceOverrides,
};

#[derive(Debug, Clone)]
pub struct SharedParts {
    pub parts: Parts,
    pub render_slots: RenderSlots,
    pub chart_cache: ChartCache,
}

#[derive(Debug)]
pub struct Controller {
    pub(super) parts: Parts,
    pub(super) metrics: Metrics,
    pub(super) rendering: tree::Limits,
    pub(super) external: ExternalAccess,
    pub(super) render_slots: RenderSlots,
    pub(super) chart_cache: ChartCache,
    pub(super) results: ResultFlags,
    pub(super) gone: GoneObjects,
    pub(super) store: ResultStore,
    pub(super) overrides: Option<SourceOverrides>,
    pub(super) remote_denials: RemoteDenials,
    cluster_id: OwnClusterId,
    dry_run: bool,
}

/// Returns the identity of a cluster, empty if it could not be read.
fn printed_id(read: Result<String, cluster::Error>) -> String {
    read.unwrap_or_else(|error| {
        tracing::info!(%error, "cannot read the identity of the cluster");
        String::new()
    })
}

impl Controller {
    pub fn new(
        ctx: &Context,
        flags: &Flags,
        shared: SharedParts,
        orphaned: &ResultCleaner,
        gone: GoneObjects,
    ) -> Result<Self, prometheus::Error> {
        Ok(Self {
            parts: shared.parts,
            metrics: Metrics::new(ctx.metrics().registry())?,
            rendering: flags.render.limits(),
            external: {
                let mut external = flags.external(ctx);
                external.servers.source_cache = Some(SourceCache::default());
                external
            },
            render_slots: shared.render_slots,
            chart_cache: shared.chart_cache,
            results: flags.results.clone(),
            dry_run: flags.dry_run,
            cluster_id: orphaned.cluster_id().clone(),
            remote_denials: RemoteDenials::default(),
            gone,
            store: orphaned.store().clone(),
            overrides: None,
        })
    }

    /// Lets the controller read the files of command lines; `None` refuses `spec.sourceOverrides`.
    #[must_use]
    pub fn with(self, overrides: Option<SourceOverrides>) -> Self {
        Self { overrides, ..self }
    }

    pub(super) fn client(&self) -> &Client {
        self.parts.ctx.client()
    }

    /// Returns true if all changes of an object are dry runs.
    pub(super) fn is_dry_run(&self, object: &KluctlDeployment) -> bool {
        self.dry_run || object.spec.dry_run
    }

    /// Returns the identity of the cluster of the controller; empty without rights to read it.
    pub(super) async fn own_cluster_id(&self) -> String {
        printed_id(self.cluster_id.read().await.map(Option::unwrap_or_default))
    }

    /// Returns the identity of the cluster that is deployed to; empty without rights to read it.
    pub(super) async fn cluster_id(
        &self,
        object: &KluctlDeployment,
        cluster: &Cluster,
        connection: &Arc<ClusterIdentity>,
    ) -> String {
        if object.spec.kube_config.is_none() {
            return self.own_cluster_id().await;
        }
        let of = (&key(object), object.metadata.generation);
        let read = self.remote_denials.read(of, cluster, connection).await;
        printed_id(read.map(Option::unwrap_or_default))
    }

    pub(super) fn show_source(&self, object: &KluctlDeployment, source: &spec::Source) {
        let (url, reference) = source.labels();
        let spec = &object.spec;
        let values = SpecValues {
            interval: Some(spec::deploy_interval(spec).unwrap_or_else(|| spec::interval(spec))),
            dry_run: self.is_dry_run(object),
            prune: spec.prune,
            delete: spec.delete,
            images: spec.images.len(),
            source: url,
            path: source.path.clone(),
            reference,
        };
        self.metrics.wanted(&key(object), &values);
    }
}
