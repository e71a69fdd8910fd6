//! A controller for a kind of its own, as small as one that deploys can be: a ManifestSet has a list of manifests. The tests of this crate run
//! it as a process.

use std::{process::ExitCode, time::Duration};

use api::{Fault, GoDuration, Reason, kustomize::KustomizationStatus};
use clap::Parser;
use deployer::{
    DeployReconciler, DeploySpec, Parts, ReferenceFlags,
    manifests::{ManifestDeployer, ManifestKind, ManifestSpec, Manifests},
};
use kube::CustomResource;
use runtime::{CommonFlags, EventsFlags, Pass, RunOptions, Spec, run_kind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[kube(group = "weir.test", version = "v1", kind = "ManifestSet", namespaced)]
#[kube(status = "KustomizationStatus")]
#[serde(rename_all = "camelCase", default)]
struct ManifestSetSpec {
    interval: GoDuration,
    suspend: bool,
    wait: bool,
    service_account_name: Option<String>,
    manifests: Vec<Value>,
}

#[derive(Debug)]
struct ManifestSets;

impl ManifestKind for ManifestSets {
    type Object = ManifestSet;
    type Status = KustomizationStatus;
    /// The revision: the generation of the object.
    type Source = String;

    const FINALIZER: &'static str = "finalizers.weir.test";
    const FIELD_MANAGER: &'static str = "manifest-set";
    const OWNER_LABELS: (&'static str, &'static str) = ("weir.test/name", "weir.test/namespace");

    fn spec(object: &ManifestSet) -> ManifestSpec<'_> {
        let spec = &object.spec;
        let deploy = DeploySpec {
            interval: spec.interval.as_duration(),
            retry: Duration::from_secs(2),
            timeout: Duration::from_secs(60),
            suspend: spec.suspend,
        };
        ManifestSpec {
            wait_timeout: Duration::from_secs(30),
            prune: true,
            wait: spec.wait,
            delete: true,
            account: spec.service_account_name.as_deref(),
            ..ManifestSpec::new(deploy)
        }
    }

    fn validate(&self, object: &ManifestSet) -> Result<(), Fault> {
        let empty = Fault::stall(Reason::InvalidSpec, "spec.manifests: the list is empty");
        object.spec.manifests.first().map(drop).ok_or(empty)
    }

    fn revision(source: &String) -> &str {
        source
    }

    fn is_current(&self, _: &runtime::ObjectKey, _: &String) -> bool {
        true
    }

    async fn source(&self, pass: &Pass<'_, ManifestSet>) -> Result<String, Fault> {
        let generation = pass.object.metadata.generation.unwrap_or_default();
        Ok(format!("generation-{generation}"))
    }

    async fn manifests(&self, pass: &Pass<'_, ManifestSet>, _: &String) -> Result<Manifests, Fault> {
        let objects = pass.object.spec.manifests.iter().cloned();
        Ok(Manifests::new(objects.map(yaml::Value::from_json).collect()))
    }
}

#[derive(Debug, Clone, Parser)]
struct Cli {
    #[command(flatten)]
    common: CommonFlags,
    #[command(flatten)]
    events: EventsFlags,
    #[command(flatten)]
    references: ReferenceFlags,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let spec = Spec {
        name: "manifest-set",
        lease: "manifest-set-lease",
        events: cli.events,
        standby_records: false,
    };
    runtime::start(spec, cli.common, |ctx| async move {
        let (name, namespace) = ManifestSets::OWNER_LABELS;
        let parts = Parts::start(&ctx, cli.references.kubeconfigs(), &[name, namespace]);
        let reconciler = DeployReconciler::new(ManifestDeployer::new(ManifestSets, parts));
        Ok(run_kind(&ctx, reconciler, RunOptions::default()).await?)
    })
}
