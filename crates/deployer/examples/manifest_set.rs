//! A controller for a kind of its own, as small as one that deploys can be: a ManifestSet has a list of manifests. The tests of this crate run
//! it as a process.

use std::{process::ExitCode, time::Duration};

use api::{Condition, Fault, GoDuration, Reason, conditions::HasConditions};
use clap::Parser;
use deployer::{
    DeployReconciler, DeploySpec, Parts, ReferenceFlags,
    manifests::{DeployStatus, ManifestDeployer, ManifestKind, ManifestSpec, Manifests, inventory_entries},
};
use kube::CustomResource;
use objects::{ObjectRef, inventory::Entry};
use runtime::{CommonFlags, EventsFlags, Pass, RunOptions, Spec, run_kind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[kube(
    group = "weir.test",
    version = "v1",
    kind = "ManifestSet",
    namespaced,
    status = "ManifestSetStatus"
)]
#[serde(rename_all = "camelCase", default)]
struct ManifestSetSpec {
    interval: GoDuration,
    suspend: bool,
    wait: bool,
    service_account_name: Option<String>,
    manifests: Vec<Value>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
struct ManifestSetStatus {
    observed_generation: Option<i64>,
    last_handled_reconcile_at: Option<String>,
    last_applied_revision: Option<String>,
    last_attempted_revision: Option<String>,
    inventory: Vec<(String, String)>,
    #[schemars(with = "Vec<Value>")]
    conditions: Vec<Condition>,
}

impl HasConditions for ManifestSetStatus {
    fn conditions(&self) -> &Vec<Condition> {
        &self.conditions
    }

    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.conditions
    }
}

impl DeployStatus for ManifestSetStatus {
    fn set_observed(&mut self, generation: Option<i64>, requested_at: Option<String>) {
        self.observed_generation = generation;
        self.last_handled_reconcile_at = requested_at;
    }

    fn last_applied_revision(&self) -> Option<&str> {
        self.last_applied_revision.as_deref()
    }

    fn set_revision(&mut self, revision: &str, is_applied: bool) {
        self.last_attempted_revision = Some(revision.to_owned());
        if is_applied {
            self.last_applied_revision
                .clone_from(&self.last_attempted_revision);
        }
    }

    fn inventory(&self) -> Vec<ObjectRef> {
        inventory_entries(
            self.inventory
                .iter()
                .map(|(id, version)| (id.as_str(), version.as_str())),
        )
    }

    fn set_inventory(&mut self, inventory: &[ObjectRef]) {
        let entries = inventory.iter().map(Entry::of);
        self.inventory = entries.map(|entry| (entry.id, entry.version)).collect();
    }
}

#[derive(Debug)]
struct ManifestSets;

impl ManifestKind for ManifestSets {
    type Object = ManifestSet;
    type Status = ManifestSetStatus;
    /// The revision: the generation of the object.
    type Source = String;

    const FINALIZER: &'static str = "finalizers.weir.test";
    const FIELD_MANAGER: &'static str = "manifest-set";
    const OWNER_LABELS: (&'static str, &'static str) = ("weir.test/name", "weir.test/namespace");

    fn spec(object: &ManifestSet) -> ManifestSpec<'_> {
        let spec = &object.spec;
        ManifestSpec {
            deploy: DeploySpec {
                interval: spec.interval.as_duration(),
                retry: Duration::from_secs(2),
                timeout: Duration::from_secs(60),
                suspend: spec.suspend,
            },
            wait_timeout: Duration::from_secs(30),
            prune: true,
            wait: spec.wait,
            force: false,
            trial: false,
            validate: false,
            allow_empty: false,
            delete: true,
            awaits_deletion: false,
            account: spec.service_account_name.as_deref(),
            kube_config: None,
            cluster_map: None,
        }
    }

    fn validate(&self, object: &ManifestSet) -> Result<(), Fault> {
        let empty = Fault::stall(Reason::InvalidSpec, "spec.manifests: the list is empty");
        if object.spec.manifests.is_empty() {
            Err(empty)
        } else {
            Ok(())
        }
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
