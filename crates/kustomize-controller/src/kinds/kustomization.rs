//! Kustomization of `kustomize.toolkit.fluxcd.io`: objects that are built from the artifact of a source, and applied.
//!
//! - `spec` refuses fields that are invalid or not supported, and has the values with their defaults (pure);
//! - `consumer` names the references of an object;
//! - `build` reads files, variables and keys for a [`kustomization::Build`], by `reads`, `keys` and `vault`, and runs it;
//! - `owner` has the managers that are taken over;
//! - `health` has the objects that are waited for, and the expressions that decide about them;
//! - `status` and `events` make the status and the events (pure).

mod build;
mod consumer;
mod events;
mod health;
mod keys;
mod owner;
mod reads;
mod spec;
mod status;
mod vault;

use std::{borrow::Cow, collections::BTreeMap, sync::Arc, time::Duration};

use ::objects::ObjectRef;
use api::{Fault, GoDuration, KubeConfig, Reason, Time, finalizer, kustomize};
use apply::{AppliedSet, BatchOptions, Owner, Pruned, WaitTarget};
use deployer::{
    Consumer as _, DeploySpec, Inputs, NewRevision, Parts, References, SourceArtifact,
    credentials::DecryptionIdentities,
    manifests::{Attempt, CompiledRules, ManifestKind, ManifestSpec, Manifests, Report},
};
use futures::stream::BoxStream;
use kube::ResourceExt as _;
use kustomization::{CelHealth, FIELD_MANAGER, IgnoreRules, OWNER_LABELS, check, variables};
use runtime::{Context, EventDraft, ObjectKey, Outcome, Pass, Trigger, client::describe, scratch};

use crate::flags::{FeatureGates, Flags};
use consumer::KustomizationConsumer;

/// Start of the message about an artifact that is being replaced.
const NOT_READY: &str = "Source is not ready";
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
    /// Selector of the ConfigMaps and Secrets that are watched.
    watched_configs: Option<String>,
    sops_age_secret: String,
    sops_vault_configmap: String,
    default_decryption_account: String,
    default_kubeconfig_account: String,
    identities: DecryptionIdentities,
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
            references: References::new(ctx, &flags.references, &dir, limits, clusters)?
                .with_additive_expressions(flags.feature_gates.additive_expressions),
            parts: parts.clone(),
            gates: flags.feature_gates.clone(),
            limits: flags.render.limits(),
            custom_stage: custom.map(|(group, kind)| (group.into(), kind.into())).collect(),
            takeover: owner::takeover(flags),
            no_remote_bases: flags.no_remote_bases,
            watched_configs: flags.watched_configs().map(str::to_owned),
            sops_age_secret: flags.sops_age_secret.clone(),
            sops_vault_configmap: flags.sops_vault_configmap.clone(),
            default_decryption_account: flags.default_decryption_service_account.clone(),
            default_kubeconfig_account: flags.default_kubeconfig_service_account.clone(),
            identities: DecryptionIdentities::new(ctx),
        };
        Ok((kind, parts))
    }

    /// Wakes objects when their sources, dependencies and labelled settings change.
    #[must_use]
    pub fn triggers(&self, ctx: &Context) -> BoxStream<'static, Trigger> {
        let configs = self.watched_configs.as_deref();
        deployer::triggers::<KustomizationConsumer>(ctx, self.references.offered(), configs)
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
        let files = self
            .references
            .find_files(pass.object, artifact, limit, &pass.cancel);
        let files = pass.slot.waiting(files).await;
        files.map_err(|error| {
            let why = match (error.is_missing(), error.is_changed()) {
                (false, false) => {
                    let fault = error.fault(spec::retry_interval(&pass.object.spec));
                    return Fault {
                        reason: Reason::ArtifactFailed,
                        ..fault
                    };
                }
                (true, _) => "artifact not found",
                (false, true) => "artifact digest changed",
            };
            let delay = self.parts.ctx.flags().requeue_dependency;
            let message = format!("{NOT_READY}, {why}, retrying in {}", GoDuration::from(delay));
            Fault::wait(delay, Reason::ArtifactFailed, message)
        })
    }
}

impl ManifestKind for Kustomizations {
    type Object = kustomize::Kustomization;
    type Status = kustomize::KustomizationStatus;
    type Source = SourceArtifact;

    const FINALIZER: &'static str = finalizer::FLUX;
    const FIELD_MANAGER: &'static str = FIELD_MANAGER;
    const OWNER_LABELS: (&'static str, &'static str) = OWNER_LABELS;
    const JOINS_EVENTS: bool = false;

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
            validate: matches!(spec.validation.as_deref(), Some("client" | "server")),
            allow_empty: true,
            delete: policy.deletes(spec.prune),
            awaits_deletion: policy == spec::DeletionPolicy::WaitForTermination,
            account: spec.service_account_name.as_deref(),
            kube_config: kube_config(object),
            cluster_map: cluster_map(spec),
        }
    }

    fn validate(&self, object: &kustomize::Kustomization) -> Result<(), Fault> {
        let confined = self.parts.ctx.flags().no_cross_namespace_refs;
        spec::check(object, &self.gates, confined)
    }

    async fn compile(&self, pass: &Pass<'_, kustomize::Kustomization>) -> Result<CompiledRules, Fault> {
        let references = deployer::check_expressions::<KustomizationConsumer>(pass).await;
        references.map_err(|fault| match fault.reason {
            Reason::InvalidCELExpression => check::terminal(&fault.message),
            _ => fault,
        })?;
        let spec = &pass.object.spec;
        if spec.health_check_exprs.is_empty() && spec.ignore.is_empty() {
            return Ok(CompiledRules::default());
        }
        let compiled = async {
            let ignored = IgnoreRules::compile_for(pass.namespace, &spec.ignore).await?;
            let health = CelHealth::compile(pass.namespace, &spec.health_check_exprs).await?;
            Ok(CompiledRules {
                health: health.map(|health| Box::new(health) as _),
                ignored: ignored.map(|rules| Arc::new(rules) as _),
            })
        };
        pass.slot.waiting(compiled).await
    }

    fn revision(source: &SourceArtifact) -> &str {
        source.revision()
    }

    fn owner(&self, owner: Owner) -> Owner {
        Owner {
            takeover: self.takeover.clone(),
            ..kustomization::with_rules(owner)
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
        let object = pass.object;
        // Dependencies of the same source must have the new revision first.
        if !object.spec.depends_on.is_empty() {
            return None;
        }
        let attempted = object.status.as_ref()?.last_attempted_revision.as_deref();
        let known = (inputs.record.as_deref()?, attempted);
        let limit = spec::timeout(&object.spec) / DOWNLOAD;
        let newer = self.references.newer_artifact(pass, &inputs.own, known, limit);
        newer.await
    }

    fn with_revision(
        &self,
        status: kustomize::KustomizationStatus,
        source: &SourceArtifact,
    ) -> kustomize::KustomizationStatus {
        status::with_revision(status, source, &runtime::now())
    }

    fn change_events(&self, source: &SourceArtifact, done: &apply::Reconciled) -> Vec<EventDraft> {
        status::changes(source, done).drafts
    }

    fn revision_events(
        &self,
        object: &kustomize::Kustomization,
        source: &SourceArtifact,
        took: Duration,
    ) -> Vec<EventDraft> {
        let event = status::revision_event(object, source, took);
        self.gates
            .commit_status_event
            .then_some(event)
            .into_iter()
            .collect()
    }

    async fn source(&self, pass: &Pass<'_, kustomize::Kustomization>) -> Result<SourceArtifact, Fault> {
        let artifact = pass.slot.waiting(self.newest_artifact(pass.object)).await?;
        let checked = self.references.check_dependencies(pass.object, Some(&artifact));
        pass.slot.lending(checked).await?;
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

    fn refused(&self, tried: &AppliedSet, manifests: &Manifests) -> String {
        variables::redact(&events::refused(&tried.outcomes), &manifests.hidden)
    }

    fn default_kubeconfig_account(&self) -> &str {
        &self.default_kubeconfig_account
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

    fn suspended_status(&self, object: &kustomize::Kustomization) -> Option<kustomize::KustomizationStatus> {
        Some(status::suspended(object))
    }

    fn failed(
        &self,
        object: &kustomize::Kustomization,
        attempt: Attempt<'_, SourceArtifact>,
        fault: &Fault,
        now: &Time,
    ) -> Outcome<kustomize::KustomizationStatus> {
        // A dependency is checked when the artifact is known: its event has the revision.
        let known = match (attempt.source, fault.reason) {
            (None, Reason::DependencyNotReady) => self.references.known_artifact(object),
            _ => None,
        };
        let attempt = Attempt {
            source: attempt.source.or(known.as_ref()),
            ..attempt
        };
        status::failed(object, &attempt, fault, now)
    }

    fn done(
        &self,
        object: &kustomize::Kustomization,
        report: &Report<'_, SourceArtifact>,
        now: &Time,
    ) -> Outcome<kustomize::KustomizationStatus> {
        // A watch notes the offer of a source before it interrupts.
        let trigger = match self.references.still_offers(report.source) {
            true => format!("Kustomization/{}", KustomizationConsumer::key(object)),
            false => report.source.source.to_string(),
        };
        status::done(object, report, (self.gates.commit_status_event, &trigger), now)
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

fn cluster_map(spec: &kustomize::KustomizationSpec) -> Option<&str> {
    let map = spec.kube_config.as_ref()?.config_map_ref.as_ref()?;
    Some(&map.name)
}
