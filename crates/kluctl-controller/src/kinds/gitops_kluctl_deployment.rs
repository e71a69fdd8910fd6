//! KluctlDeployment of `gitops.kluctl.io`: a target of a kluctl project, which the controller fetches by itself.
//!
//! A pass handles one request, or makes a full reconciliation:
//!
//! - `spec` refuses fields that are invalid or not supported, and has the values of the others (pure);
//! - `requests` reads requests by annotation and applies their overrides (pure);
//! - `credentials` reads Secrets, `prepare` fetches the project, connects to the cluster, and renders;
//! - `plan` decides (pure), `work` goes through the pass, `begin` notes what it is about to deploy, `act` runs its commands;
//! - `guard` is asked before objects are deleted;
//! - `inventory` has the kinds and namespaces of what was deployed (pure);
//! - `status` has conditions and messages (pure);
//! - `results` stores the results of commands;
//! - `settled` remembers passes that left nothing to do, and `elsewhere` leaves out renders that would read the same;
//! - `removal` deletes the deployed objects when the KluctlDeployment is deleted.

mod act;
mod begin;
mod credentials;
mod elsewhere;
mod events;
mod guard;
mod inventory;
mod plan;
mod prepare;
mod removal;
mod requests;
mod results;
mod settled;
mod spec;
mod status;
mod work;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use api::{
    Fault, condition_type, conditions, finalizer,
    kluctl::gitops::{KluctlDeployment, KluctlDeploymentStatus},
};
use cluster::Cluster;
use engine::{ChartCache, ExternalAccess, RenderSlots, ResultStore, SourceCache, SshConnections};
use kube::{Client, ResourceExt as _, api::DynamicObject};
use references::{ClusterIdentity, Clusters, LabelIndex};
use runtime::{Context, EventDraft, ObjectKey, Outcome, Pass, Reconciler, Requeue, WorkSlot, now};

use crate::{
    common::{
        cluster_id::{OwnClusterId, RemoteDenials},
        memory::Memory,
        settled::SettledPasses,
    },
    flags::{Flags, ResultFlags},
    metrics::{Metrics, SpecValues},
    orphans::{GoneObjects, OrphanedResults},
    overrides::SourceOverrides,
};
use settled::SettledRead;

/// The parts of the process that all its kinds share.
#[derive(Debug, Clone)]
pub struct SharedParts {
    /// Connections to all clusters.
    pub clusters: Arc<Clusters>,
    /// Slots of all renders.
    pub render_slots: RenderSlots,
    /// Charts of all renders.
    pub chart_cache: ChartCache,
    /// The objects with a discriminator.
    pub deployed: LabelIndex,
}

/// Reconciles the KluctlDeployments of `gitops.kluctl.io`.
#[derive(Debug)]
pub struct Controller {
    ctx: Context,
    memory: Memory,
    metrics: Metrics,
    clusters: Arc<Clusters>,
    rendering: tree::Limits,
    external: ExternalAccess,
    render_slots: RenderSlots,
    chart_cache: ChartCache,
    deployed: LabelIndex,
    settled: SettledPasses<SettledRead>,
    results: ResultFlags,
    dry_run: bool,
    cluster_id: OwnClusterId,
    remote_denials: RemoteDenials,
    gone: GoneObjects,
    store: ResultStore,
    overrides: Option<SourceOverrides>,
}

/// Returns namespace and name of an object.
fn key(object: &KluctlDeployment) -> ObjectKey {
    ObjectKey::new(object.namespace().unwrap_or_default(), object.name_any())
}

/// Returns the identity of a cluster, empty if it could not be read.
fn shown_id(read: Result<String, cluster::Error>) -> String {
    read.unwrap_or_else(|error| {
        tracing::info!(%error, "cannot read the identity of the cluster");
        String::new()
    })
}

impl Controller {
    /// Starts without any memory of earlier passes. Objects that are gone are reported to `gone`, so that `orphaned` deletes their results.
    ///
    /// # Errors
    /// If a metric of the same name is registered.
    pub fn new(
        ctx: &Context,
        flags: &Flags,
        shared: SharedParts,
        orphaned: &OrphanedResults,
        gone: GoneObjects,
    ) -> Result<Self, prometheus::Error> {
        Ok(Self {
            ctx: ctx.clone(),
            memory: Memory::default(),
            metrics: Metrics::new(ctx.metrics().registry())?,
            clusters: shared.clusters,
            rendering: flags.rendering(),
            external: ExternalAccess {
                source_cache: Some(SourceCache::default()),
                ..flags.external(ctx)
            },
            render_slots: shared.render_slots,
            chart_cache: shared.chart_cache,
            deployed: shared.deployed,
            settled: SettledPasses::default(),
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

    fn client(&self) -> &Client {
        self.ctx.client()
    }

    /// Returns true if all changes of an object are dry runs.
    fn is_dry_run(&self, object: &KluctlDeployment) -> bool {
        self.dry_run || object.spec.dry_run
    }

    /// Returns the identity of the cluster of the controller; empty without rights to read it.
    async fn own_cluster_id(&self) -> String {
        shown_id(self.cluster_id.read().await.map(Option::unwrap_or_default))
    }

    /// Returns the identity of the cluster that is deployed to; empty without rights to read it.
    async fn cluster_id(
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
        shown_id(read.map(Option::unwrap_or_default))
    }

    /// Shows the source of an object in the metrics.
    fn show_source(&self, object: &KluctlDeployment, source: &spec::Source) {
        let (url, reference) = source.labels();
        self.metrics.wanted(
            &key(object),
            &self.spec_values(object, url, source.path.clone(), reference),
        );
    }

    fn spec_values(
        &self,
        object: &KluctlDeployment,
        source: String,
        path: String,
        reference: String,
    ) -> SpecValues {
        let spec = &object.spec;
        SpecValues {
            interval: Some(spec::deploy_interval(spec).unwrap_or_else(|| spec::interval(spec))),
            dry_run: self.is_dry_run(object),
            prune: spec.prune,
            delete: spec.delete,
            images: spec.images.len(),
            source,
            path,
            reference,
        }
    }

    fn observe_outcome(&self, object: &KluctlDeployment, outcome: &Outcome<KluctlDeploymentStatus>) {
        let ready = conditions::is_true(&outcome.status.conditions, condition_type::READY);
        self.metrics.ready(&key(object), ready);
    }

    fn forget_object(&self, key: &ObjectKey) {
        self.memory.forget(key);
        self.settled.forget(key);
        self.remote_denials.forget(key);
        self.metrics.forget(key);
    }
}

impl Reconciler for Controller {
    type Object = KluctlDeployment;
    type Status = KluctlDeploymentStatus;

    const FINALIZER: &'static str = finalizer::GITOPS_KLUCTL;
    const CONTROLLER: &'static str = "kluctldeployment-gitops";
    // What is being applied is applied up to the next barrier.
    const FINISHES: bool = true;
    // kluctl's definition has no inventories: then anything may be deployed.
    const DROPS_UNKNOWN_STATUS: bool = true;

    fn suspended(object: &KluctlDeployment) -> bool {
        object.spec.suspend && !requests::is_pending(object)
    }

    fn timeout(&self, object: &KluctlDeployment) -> Duration {
        spec::timeout(&object.spec)
    }

    fn validate(&self, _: &KluctlDeployment) -> Result<(), Fault> {
        // Requests of an object with an invalid spec are answered, too.
        Ok(())
    }

    fn progressing(&self, object: &KluctlDeployment) -> Option<KluctlDeploymentStatus> {
        Some(status::starting(object, &now()))
    }

    fn faulted(&self, object: &KluctlDeployment, fault: &Fault) -> Outcome<KluctlDeploymentStatus> {
        let mut status = object.status.clone().unwrap_or_default();
        requests::end_interrupted(&mut status, &fault.message, &now());
        status::set_ready(&mut status, object, fault.reason, &fault.message, &now());
        let outcome = Outcome {
            status,
            requeue: Requeue::from(fault.class),
            events: Vec::new(),
            fault: Some(fault.clone()),
        };
        self.observe_outcome(object, &outcome);
        outcome
    }

    fn event_metadata(&self, object: &KluctlDeployment) -> BTreeMap<String, String> {
        object
            .status
            .as_ref()
            .map_or_else(BTreeMap::new, events::current_metadata)
    }

    fn suspended_status(&self, object: &KluctlDeployment) -> Option<KluctlDeploymentStatus> {
        let mut status = object.status.clone().unwrap_or_default();
        status.observed_generation = object.metadata.generation;
        requests::end_interrupted(
            &mut status,
            "the reconciliation of the request was interrupted",
            &now(),
        );
        match status.last_prepare_error {
            None => drop(status::set_final(&mut status, object, &now())),
            Some(_) => status::observe(&mut status, object),
        }
        Some(status)
    }

    async fn reconcile(&self, pass: &Pass<'_, KluctlDeployment>) -> Outcome<KluctlDeploymentStatus> {
        let ssh = SshConnections::default();
        let outcome = match self.unaffected(pass, &ssh).await {
            Some(outcome) => outcome,
            None => {
                self.settled.forget(&pass.key());
                work::Work::new(self, pass, ssh).run().await
            }
        };
        self.observe_outcome(pass.object, &outcome);
        outcome
    }

    async fn finalize(&self, pass: &Pass<'_, KluctlDeployment>) -> Result<(), Fault> {
        self.settled.forget(&pass.key());
        self.remove(pass).await?;
        self.forget_object(&key(pass.object));
        Ok(())
    }

    async fn finalize_undecodable(
        &self,
        _: &Pass<'_, DynamicObject>,
        why: &Fault,
    ) -> Result<Vec<EventDraft>, Fault> {
        Ok(vec![removal::undecodable(why)])
    }

    async fn settled(&self, key: &ObjectKey, slot: &WorkSlot) -> Option<Duration> {
        self.still_settled(key, slot).await
    }

    fn forget(&self, key: &ObjectKey) {
        self.forget_object(key);
        self.gone.tell(key);
    }
}
