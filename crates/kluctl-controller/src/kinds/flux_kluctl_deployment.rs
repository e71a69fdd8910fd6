//! KluctlDeployment of `flux.kluctl.io/v1alpha1`: a target of a kluctl project, deployed from the artifact of a source.
//!
//! A pass observes, renders, plans, acts, and writes the status:
//!
//! - `spec` refuses fields that are invalid or not supported (pure);
//! - `consumer` names what an object refers to, and `references` reads it live;
//! - `observe` reads the rest, and changes nothing;
//! - `prepare` fetches the artifact, connects to the cluster, and renders;
//! - `plan` decides (pure);
//! - `act` deploys, prunes and validates as planned;
//! - `status` computes status and events (pure);
//! - `begun` has what may be deployed, and remembers the kinds and namespaces of a deployment until it has a result;
//! - `settled` remembers passes that left nothing to do, and `elsewhere` ends those whose artifact changed in other places only;
//! - `removal` deletes the deployed objects when the KluctlDeployment is deleted.

mod act;
mod begun;
mod consumer;
mod discriminators;
mod elsewhere;
mod events;
mod observe;
mod plan;
mod prepare;
mod removal;
mod results;
mod secrets;
mod settled;
mod source;
mod spec;
mod status;

use std::{
    borrow::Cow,
    collections::BTreeMap,
    time::{Duration, Instant},
};

use api::{
    Fault, condition_type, conditions, finalizer,
    kluctl::{KluctlDeployment, KluctlDeploymentStatus},
};
use engine::{ChartCache, ExternalAccess, RenderSlots, SshConnections};
use futures::stream::BoxStream;
use kube::{Client, api::DynamicObject};
use references::{ClusterIdentity, Consumer, LabelIndex, ObjectNames, References};
use runtime::{
    Context, EventDraft, ObjectKey, Outcome, Pass, Reconciler, Requeue, Trigger, WorkSlot, now, scratch,
};

use crate::{
    common::{
        memory::{self, Ages, Memory},
        message, owners,
        settled::SettledPasses,
        sharers::{self, Claimant, Sharing},
    },
    flags::Flags,
    kinds::gitops_kluctl_deployment::SharedParts,
    metrics::{Metrics, SpecValues},
};
use consumer::{FluxKluctlDeployment, key};
use plan::{Deploy, Period, Work};
use prepare::Prepared;
use results::Report;
use settled::SettledRead;
use status::Failure;

/// Wakes objects when their sources and dependencies change.
#[must_use]
pub fn triggers(ctx: &Context, controller: &Controller) -> BoxStream<'static, Trigger> {
    references::triggers::<FluxKluctlDeployment>(ctx, controller.references.offered())
}

/// Reconciles the KluctlDeployments of `flux.kluctl.io`.
#[derive(Debug)]
pub struct Controller {
    ctx: Context,
    memory: Memory,
    metrics: Metrics,
    references: References<FluxKluctlDeployment>,
    /// The objects of `gitops.kluctl.io`, which may take over.
    successors: ObjectNames,
    /// The objects with a discriminator.
    deployed: LabelIndex,
    settled: SettledPasses<SettledRead>,
    rendering: tree::Limits,
    external: ExternalAccess,
    render_slots: RenderSlots,
    chart_cache: ChartCache,
    dry_run: bool,
    git_credentials_hosts: Vec<String>,
}

impl Controller {
    /// Starts without any memory of earlier passes.
    ///
    /// # Errors
    /// If the directory for artifacts cannot be created, or a metric of the same name is registered.
    pub fn new(ctx: &Context, flags: &Flags) -> anyhow::Result<Self> {
        let dir = scratch::directory(&std::env::temp_dir(), "kluctl-controller")?;
        let limits = flags.references.fetching(flags.rendering());
        let references = References::new(ctx, &flags.references, &dir, limits)?;
        Ok(Self {
            ctx: ctx.clone(),
            memory: Memory::default(),
            metrics: Metrics::of_flux(
                &ctx.metrics()
                    .registry()
                    .labelled("group", api::group::FLUX_KLUCTL),
            )?,
            successors: ObjectNames::start(ctx, &sharers::successor()),
            deployed: LabelIndex::start(
                ctx,
                references.clusters().local(),
                kluctl::annotations::DISCRIMINATOR,
            ),
            settled: SettledPasses::default(),
            references,
            rendering: flags.rendering(),
            external: flags.external(ctx),
            render_slots: RenderSlots::default(),
            chart_cache: ChartCache::default(),
            dry_run: flags.dry_run,
            git_credentials_hosts: flags.git_credentials_hosts.clone(),
        })
    }

    /// Returns what other kinds of the process use, too.
    #[must_use]
    pub fn shared(&self) -> SharedParts {
        SharedParts {
            clusters: self.references.shared_clusters(),
            render_slots: self.render_slots.clone(),
            chart_cache: self.chart_cache.clone(),
            deployed: self.deployed.clone(),
        }
    }

    fn client(&self) -> &Client {
        self.ctx.client()
    }

    /// Lists the other objects that deploy with this discriminator.
    async fn sharers(
        &self,
        object: &KluctlDeployment,
        discriminator: &str,
        own: &ClusterIdentity,
    ) -> Result<sharers::Sharers, Fault> {
        let (sharing, itself) = self.sharing(object);
        sharing.sharers(&itself, discriminator, own).await
    }

    /// Returns what finds the objects that share labels with an object, and that object in its terms.
    fn sharing(&self, object: &KluctlDeployment) -> (Sharing<'_>, Claimant) {
        let sharing = Sharing {
            client: self.client(),
            namespace: self.ctx.flags().watch_namespace(),
            clusters: self.references.clusters(),
        };
        let itself = Claimant {
            key: key(object),
            is_successor: false,
        };
        (sharing, itself)
    }

    /// Returns true if all changes of an object are dry runs.
    fn is_dry_run(&self, object: &KluctlDeployment) -> bool {
        self.dry_run || object.spec.dry_run
    }

    /// Reconciles an object. `object` is that of the pass, and gets the status that is written on the way.
    async fn work(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        object: &mut Cow<'_, KluctlDeployment>,
    ) -> Result<Outcome<KluctlDeploymentStatus>, Failure> {
        let (started, key) = (Instant::now(), key(object));
        let handed_over = match self.successors.contains(&key) {
            Some(handed_over) => handed_over,
            None => observe::handed_over(self.client(), &key).await?,
        };
        if handed_over {
            tracing::info!(
                "a KluctlDeployment of gitops.kluctl.io with this name took over: nothing is done"
            );
            return Ok(left_alone(object));
        }
        let ssh = SshConnections::default();
        let artifact = pass
            .slot
            .waiting(self.newest_source(object, &ssh, &pass.cancel))
            .await?;
        self.references
            .check_dependencies(object, artifact.artifact())
            .await?;
        let failure = |fault| Failure::of(artifact.revision(), fault);
        // Nothing is applied yet, so it need not be completed.
        let prepared = tokio::select! {
            prepared = self.prepare(pass, &artifact, ssh) => prepared,
            () = pass.superseded.cancelled() => Err(self.superseded(object, &artifact).await),
        };
        let mut prepared = prepared.map_err(failure)?;
        let previous = discriminators::previous(object.status.as_ref(), prepared.discriminator());
        let facts = observe::facts(
            object,
            &prepared.hash,
            self.is_dry_run(object),
            self.memory.ages(&key),
            &now(),
        );
        let work = plan::work(&facts);
        tracing::debug!(?work, revision = artifact.revision(), "planned");
        let (since_compared, since_validated) = (facts.since_compared, facts.since_validated);
        self.begin(pass, object, &prepared, work, &previous)
            .await
            .map_err(failure)?;
        let object = &**object;
        let done = self
            .act(pass, &artifact, &prepared, work, previous)
            .await
            .map_err(failure)?;
        let ages = self.memory.ages(&key);
        // What a deployment left without a result is remembered until one has all kinds and namespaces.
        let begun = begun::recorded(object).filter(|_| done.inventory.is_none() || self.is_dry_run(object));
        let report = Report {
            revision: artifact.revision().to_owned(),
            hash: prepared.hash.clone(),
            involved: results::involved(&prepared.involved),
            discriminator: prepared.discriminator().map(str::to_owned),
            raw_target: prepared.raw_target(&done.previous, begun.as_ref()),
            previous: done.previous,
            left: done.left,
            deploy: done.deploy,
            confirmed: done.confirmed,
            prune: done.prune,
            validate: done.validate,
            inventory: done.inventory,
            dry_run: self.is_dry_run(object),
            since_compared: ages.since_compared.unwrap_or(since_compared),
            since_validated: ages.since_validated.or(since_validated).unwrap_or_default(),
            took: started.elapsed(),
        };
        let outcome = status::done(object, &report, &runtime::now());
        self.settle(object, &artifact, &mut prepared, &outcome, report.since_compared);
        Ok(outcome)
    }

    /// Records the discriminator, and the kinds and namespaces of a deployment that begins: should the process end in the middle of
    /// it, a removal must know what to delete.
    async fn begin(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        object: &mut Cow<'_, KluctlDeployment>,
        prepared: &Prepared,
        work: Work,
        previous: &[String],
    ) -> Result<(), Fault> {
        let discriminator = prepared.discriminator().filter(|text| !text.is_empty());
        if self.is_dry_run(object) || discriminator.is_none() {
            return Ok(());
        }
        let begun = match work.deploy {
            Deploy::Nothing => None,
            _ => begun::unrecorded(object, &prepared.references(), &prepared.hash),
        };
        if begun.is_none() && has_discriminator(object, discriminator) {
            return Ok(());
        }
        let begun = begun.or_else(|| begun::recorded(object));
        let target = prepared.raw_target(previous, begun.as_ref());
        let status = status::with_discriminator(object, discriminator.map(str::to_owned), target, &now());
        pass.checkpoint(&status).await?;
        object.to_mut().status = Some(status);
        Ok(())
    }

    fn observe_outcome(&self, object: &KluctlDeployment, outcome: &Outcome<KluctlDeploymentStatus>) {
        let (key, spec) = (key(object), &object.spec);
        let wanted = SpecValues {
            interval: match spec::deploy_period(spec) {
                Period::Every(interval) => Some(interval),
                Period::Never => None,
            },
            dry_run: self.is_dry_run(object),
            prune: spec.prune,
            delete: spec.delete.unwrap_or(spec.prune),
            images: spec.images.len(),
            source: match &spec.source {
                Some(source) => source.url.to_string(),
                None => FluxKluctlDeployment::source(object)
                    .map(|source| source.to_string())
                    .unwrap_or_default(),
            },
            path: spec::path_text(spec).to_owned(),
            reference: String::new(),
        };
        self.metrics.wanted(&key, &wanted);
        self.metrics.ready(
            &key,
            conditions::is_true(&outcome.status.conditions, condition_type::READY),
        );
    }

    fn forget_object(&self, key: &ObjectKey) {
        self.memory.forget(key);
        self.settled.forget(key);
        self.references.forget(key);
        self.metrics.forget(key);
    }
}

/// Returns true if the status already has the discriminator.
fn has_discriminator(object: &KluctlDeployment, discriminator: Option<&str>) -> bool {
    let stored = object
        .status
        .as_ref()
        .and_then(|status| status.discriminator.as_deref());
    stored == discriminator
}

fn left_alone(object: &KluctlDeployment) -> Outcome<KluctlDeploymentStatus> {
    Outcome {
        status: status::untouched(object),
        requeue: Requeue::Interval(spec::interval(&object.spec)),
        events: Vec::new(),
        fault: None,
    }
}

impl Reconciler for Controller {
    type Object = KluctlDeployment;
    type Status = KluctlDeploymentStatus;

    const FINALIZER: &'static str = finalizer::FLUX_KLUCTL;
    const METRICS_GROUP: Option<&'static str> = Some(api::group::FLUX_KLUCTL);
    // What is being applied is applied up to the next barrier.
    const FINISHES: bool = true;

    fn suspended(object: &KluctlDeployment) -> bool {
        object.spec.suspend
    }

    fn timeout(&self, object: &KluctlDeployment) -> Duration {
        spec::timeout(&object.spec)
    }

    fn validate(&self, object: &KluctlDeployment) -> Result<(), Fault> {
        spec::check(object)
    }

    fn progressing(&self, object: &KluctlDeployment) -> Option<KluctlDeploymentStatus> {
        status::progressing(object, &now())
    }

    fn faulted(&self, object: &KluctlDeployment, fault: &Fault) -> Outcome<KluctlDeploymentStatus> {
        let outcome = status::failed(object, &Failure::from(fault.clone()), &now());
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
        // An object that was suspended from its beginning has no status; it may be taken over all the same.
        Some(status::untouched(object))
    }

    async fn reconcile(&self, pass: &Pass<'_, KluctlDeployment>) -> Outcome<KluctlDeploymentStatus> {
        let mut object = Cow::Borrowed(pass.object);
        let outcome = match self.unaffected(pass).await {
            Some(outcome) => outcome,
            None => {
                self.settled.forget(&pass.key());
                match self.work(pass, &mut object).await {
                    Ok(outcome) => outcome,
                    Err(failure) => status::failed(&object, &failure, &now()),
                }
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
    }
}
