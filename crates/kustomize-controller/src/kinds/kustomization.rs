//! Kustomization of `kustomize.toolkit.fluxcd.io`: objects that are built from the artifact of a source, and applied.
//!
//! - `spec` refuses fields that are invalid or not supported, and has the values with their defaults (pure);
//! - `consumer` names the references of an object;
//! - `overlay` makes the kustomization.yaml that is built (pure), `build` builds it, `decrypt` opens encrypted files and Secrets, `variables`
//!   reads variables, `substitute` and `objects` make the manifests of the built objects (pure);
//! - `owner` has the annotations that are obeyed, and the managers that are taken over;
//! - `health` has the objects that are waited for, and the expressions that decide about them;
//! - `status` and `events` make the status and the events (pure).

mod build;
mod consumer;
mod decrypt;
mod events;
mod health;
mod objects;
mod overlay;
mod owner;
mod spec;
mod status;
mod substitute;
mod variables;

use std::{borrow::Cow, collections::BTreeMap, sync::Arc, time::Duration};

use ::objects::ObjectRef;
use api::{Fault, GoDuration, KubeConfig, Reason, Time, finalizer, kustomize};
use apply::{AppliedSet, BatchOptions, CustomHealth, Owner, Pruned, WaitTarget};
use deployer::{
    Consumer as _, DeploySpec, Inputs, NewRevision, Parts, References, SourceArtifact,
    manifests::{ManifestKind, ManifestSpec, Manifests, Report},
};
use futures::stream::BoxStream;
use kube::ResourceExt as _;
use runtime::{Context, ObjectKey, Outcome, Pass, Trigger, client::describe, scratch};

use crate::flags::{FeatureGates, Flags};
use consumer::KustomizationConsumer;

/// The labels of applied objects with name and namespace of their Kustomization.
pub(crate) const OWNER_LABELS: (&str, &str) = (
    "kustomize.toolkit.fluxcd.io/name",
    "kustomize.toolkit.fluxcd.io/namespace",
);
/// Part of the timeout that a download may take.
const DOWNLOAD: u32 = 3;

/// The controller of Kustomizations.
#[derive(Debug)]
pub struct Kustomizations {
    parts: Parts,
    references: References<KustomizationConsumer>,
    gates: FeatureGates,
    limits: tree::Limits,
    custom_stage: Vec<(Cow<'static, str>, Cow<'static, str>)>,
    takeover: ::objects::takeover::Takeover,
    no_remote_bases: bool,
    sops_age_secret: String,
    default_decryption_account: String,
}

impl Kustomizations {
    /// Starts without any knowledge of earlier passes.
    ///
    /// # Errors
    /// If the directory for artifacts can't be created.
    pub fn start(ctx: &Context, flags: &Flags) -> anyhow::Result<(Self, Parts)> {
        let dir = scratch::directory(&std::env::temp_dir(), "kustomize-controller")?;
        let (name, namespace) = OWNER_LABELS;
        let parts = Parts::start(ctx, flags.references.kubeconfigs(), &[name, namespace]);
        let limits = flags.references.fetching(flags.render.limits());
        let clusters = Arc::clone(&parts.clusters);
        let custom = flags.custom_stage().into_iter();
        let kind = Self {
            references: References::new(ctx, &flags.references, &dir, limits, clusters)?,
            parts: parts.clone(),
            gates: flags.feature_gates.clone(),
            limits: flags.render.limits(),
            custom_stage: custom.map(|(group, kind)| (group.into(), kind.into())).collect(),
            takeover: owner::takeover(flags),
            no_remote_bases: flags.no_remote_bases,
            sops_age_secret: flags.sops_age_secret.clone(),
            default_decryption_account: flags.default_decryption_service_account.clone(),
        };
        Ok((kind, parts))
    }

    /// Wakes objects when their sources and dependencies change.
    #[must_use]
    pub fn triggers(&self, ctx: &Context) -> BoxStream<'static, Trigger> {
        deployer::triggers::<KustomizationConsumer>(ctx, self.references.offered())
    }

    async fn newest_artifact(&self, object: &kustomize::Kustomization) -> Result<SourceArtifact, Fault> {
        let attempted = object.status.as_ref();
        let attempted = attempted.and_then(|status| status.last_attempted_revision.as_deref());
        let found = self.references.newest_artifact(object, attempted).await;
        found.map_err(|fault| {
            if !SourceArtifact::is_missing(&fault) {
                return fault;
            }
            let delay = self.parts.ctx.flags().requeue_dependency;
            let message = format!(
                "Source artifact not found, retrying in {}",
                GoDuration::from(delay)
            );
            Fault::wait(delay, Reason::ArtifactFailed, message)
        })
    }

    async fn files(
        &self,
        pass: &Pass<'_, kustomize::Kustomization>,
        artifact: &SourceArtifact,
    ) -> Result<Arc<artifact::Unpacked>, Fault> {
        let limit = spec::timeout(&pass.object.spec) / DOWNLOAD;
        let files = self.references.files(pass.object, artifact, limit, &pass.cancel);
        let files = pass.slot.waiting(files).await;
        files.map_err(|fault| Fault {
            reason: Reason::ArtifactFailed,
            ..fault
        })
    }
}

impl ManifestKind for Kustomizations {
    type Object = kustomize::Kustomization;
    type Status = kustomize::KustomizationStatus;
    type Source = SourceArtifact;

    const FINALIZER: &'static str = finalizer::FLUX;
    const FIELD_MANAGER: &'static str = "kustomize-controller";
    const OWNER_LABELS: (&'static str, &'static str) = OWNER_LABELS;

    fn spec(object: &kustomize::Kustomization) -> ManifestSpec<'_> {
        let spec = &object.spec;
        let timeout = spec::timeout(spec);
        let policy = spec::deletion_policy(spec);
        ManifestSpec {
            deploy: DeploySpec {
                interval: spec::interval(spec),
                retry: spec::retry_interval(spec),
                // The health checks may take all of the timeout of the spec.
                timeout: timeout * 2 + Duration::from_secs(60),
                suspend: spec.suspend,
            },
            wait_timeout: timeout,
            prune: spec.prune,
            wait: spec.wait,
            force: spec.force,
            trial: true,
            allow_empty: true,
            delete: policy.deletes(spec.prune),
            awaits_deletion: policy == spec::DeletionPolicy::WaitForTermination,
            account: spec.service_account_name.as_deref(),
            kube_config: kube_config(object),
        }
    }

    fn validate(&self, object: &kustomize::Kustomization) -> Result<(), Fault> {
        let confined = self.parts.ctx.flags().no_cross_namespace_refs;
        spec::check(object, &self.gates, confined)
    }

    fn revision(source: &SourceArtifact) -> &str {
        source.revision()
    }

    fn owner(&self, owner: Owner) -> Owner {
        Owner {
            vocabulary: owner::vocabulary(),
            takeover: self.takeover.clone(),
            ..owner
        }
    }

    fn batch(&self) -> BatchOptions<'_> {
        BatchOptions {
            custom_stage: &self.custom_stage,
            ..BatchOptions::default()
        }
    }

    fn is_current(&self, _: &ObjectKey, source: &SourceArtifact) -> bool {
        self.references.still_offers(source)
    }

    async fn new_revision(
        &self,
        pass: &Pass<'_, kustomize::Kustomization>,
        inputs: &Inputs<SourceArtifact>,
    ) -> Option<NewRevision<SourceArtifact>> {
        let (object, last) = (pass.object, &inputs.own);
        let record = inputs.record.clone()?;
        let attempted = object.status.as_ref()?.last_attempted_revision.as_deref();
        // Dependencies of the same source must have the new revision first.
        if attempted != Some(last.revision()) || !object.spec.depends_on.is_empty() {
            return None;
        }
        let newest = self.references.newest_artifact(object, attempted);
        let artifact = pass.slot.waiting(newest).await.ok()?;
        if artifact.source != last.source || artifact.revision() == last.revision() {
            return None;
        }
        let is_same = self.references.is_same_for(object, (last, &artifact), &record);
        let files = match pass.slot.waiting(is_same).await {
            true => None,
            false => Some(self.files(pass, &artifact).await.ok()? as _),
        };
        Some(NewRevision { files, own: artifact })
    }

    fn with_revision(
        &self,
        status: kustomize::KustomizationStatus,
        source: &SourceArtifact,
    ) -> kustomize::KustomizationStatus {
        status::with_revision(status, source)
    }

    async fn source(&self, pass: &Pass<'_, kustomize::Kustomization>) -> Result<SourceArtifact, Fault> {
        let artifact = pass.slot.waiting(self.newest_artifact(pass.object)).await?;
        let checked = self.references.check_dependencies(pass.object, Some(&artifact));
        checked.await?;
        Ok(artifact)
    }

    async fn manifests(
        &self,
        pass: &Pass<'_, kustomize::Kustomization>,
        source: &SourceArtifact,
    ) -> Result<Manifests, Fault> {
        self.build(pass, source).await
    }

    fn health_targets(&self, object: &kustomize::Kustomization, applied: &AppliedSet) -> Vec<WaitTarget> {
        health::targets(object, applied)
    }

    fn custom_health(&self, object: &kustomize::Kustomization) -> Option<Box<dyn CustomHealth>> {
        // Invalid expressions were refused before.
        let checks = health::CelHealth::compile(&object.spec.health_check_exprs).ok()?;
        checks.map(|checks| Box::new(checks) as _)
    }

    fn fails_fast(&self) -> bool {
        self.gates.fail_fast
    }

    fn progressing(
        &self,
        object: &kustomize::Kustomization,
        now: &Time,
    ) -> Option<kustomize::KustomizationStatus> {
        Some(status::progressing(object, now))
    }

    fn waiting(
        &self,
        object: &kustomize::Kustomization,
        source: &SourceArtifact,
        now: &Time,
    ) -> Option<kustomize::KustomizationStatus> {
        Some(status::waiting(object, source, now))
    }

    fn failed(
        &self,
        object: &kustomize::Kustomization,
        source: Option<&SourceArtifact>,
        fault: &Fault,
        now: &Time,
    ) -> Outcome<kustomize::KustomizationStatus> {
        status::failed(object, source, fault, now)
    }

    fn done(
        &self,
        object: &kustomize::Kustomization,
        report: &Report<'_, SourceArtifact>,
        now: &Time,
    ) -> Outcome<kustomize::KustomizationStatus> {
        status::done(object, report, self.gates.commit_status_event, now)
    }

    fn event_metadata(status: &kustomize::KustomizationStatus) -> BTreeMap<String, String> {
        events::metadata(
            status.last_attempted_revision.as_deref(),
            status.last_applied_origin_revision.as_deref(),
        )
    }

    fn removed(pruned: &Pruned) -> String {
        events::deleted(pruned)
    }

    async fn stays(
        &self,
        object: &kustomize::Kustomization,
        inventory: &[ObjectRef],
    ) -> Result<Option<String>, Fault> {
        let default = self.parts.ctx.flags().default_service_account.as_str();
        let account = object.spec.service_account_name.as_deref();
        let account = account.filter(|name| !name.is_empty()).unwrap_or(default);
        if account.is_empty() || object.spec.kube_config.is_some() {
            return Ok(None);
        }
        let namespace = object.namespace().unwrap_or_default();
        let accounts: kube::Api<k8s_openapi::api::core::v1::ServiceAccount> =
            kube::Api::namespaced(self.parts.ctx.client().clone(), &namespace);
        match accounts.get_metadata_opt(account).await {
            Ok(Some(_)) => Ok(None),
            Ok(None) => Ok(Some(events::unable_to_prune(inventory))),
            Err(error) => {
                let message = format!(
                    "cannot read ServiceAccount {namespace}/{account}: {}",
                    describe(&error)
                );
                Err(Fault::retry(Reason::PruneFailed, message))
            }
        }
    }

    fn forget(&self, key: &ObjectKey) {
        self.references.forget(key);
    }
}

fn kube_config(object: &kustomize::Kustomization) -> Option<&KubeConfig> {
    KustomizationConsumer::kube_config(object)
}
