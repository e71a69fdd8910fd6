//! The kustomize-controller: builds Kustomizations from the artifacts of sources, applies them, and keeps them applied.

pub mod flags;
pub mod kinds;

use clap::Parser;
use deployer::{DeployReconciler, manifests::ManifestDeployer};
use runtime::{CommonFlags, Context, EventsFlags, Reconciler, RunOptions, run_kind};

use flags::Flags;
use kinds::kustomization;

/// The command line of the controller.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "kustomize-controller",
    about = "Reconciles Kustomization objects",
    version
)]
pub struct Cli {
    /// The flags that every controller has.
    #[command(flatten)]
    pub common: CommonFlags,
    /// The flags for sending events.
    #[command(flatten)]
    pub events: EventsFlags,
    /// The flags of this controller alone.
    #[command(flatten)]
    pub own: Flags,
}

#[must_use]
pub fn spec(cli: &Cli) -> runtime::Spec {
    runtime::Spec {
        name: "kustomize-controller",
        lease: "kustomize-controller-leader-election",
        events: cli.events.clone(),
        standby_records: false,
    }
}

/// Runs until the process ends.
///
/// # Errors
/// If the directory for artifacts can't be created.
pub async fn run(ctx: Context, flags: Flags) -> anyhow::Result<()> {
    run_within(ctx, flags, |kustomizations| kustomizations).await
}

/// Does the same as [`run`] with another reconciler around the kind.
pub async fn run_within<R: Reconciler>(
    ctx: Context,
    flags: Flags,
    within: impl FnOnce(DeployReconciler<ManifestDeployer<kustomization::Kustomizations>>) -> R,
) -> anyhow::Result<()> {
    runtime::flags::report_idle(&flags.idle());
    let (kind, parts) = kustomization::Kustomizations::start(&ctx, &flags)?;
    let options = RunOptions {
        triggers: vec![kind.triggers(&ctx)],
        ..RunOptions::default()
    };
    let reconciler = DeployReconciler::new(ManifestDeployer::new(kind, parts));
    Ok(run_kind(&ctx, within(reconciler), options).await?)
}
