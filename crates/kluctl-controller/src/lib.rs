//! The kluctl-controller: deploys targets of kluctl projects from the artifacts of sources, and keeps them deployed.
//!
//! Each kind under control is a folder of [`kinds`]: its `plan` and `status` are pure, the rest reads and acts.

mod common;
pub mod flags;
pub mod kinds;
pub mod metrics;
pub mod orphans;
pub mod overrides;

use clap::Parser;
use deployer::DeployReconciler;
use runtime::{
    CommonFlags, Connection, Context, EventsFlags, Reconciler, RunOptions, flags::LogLevel, run_kind,
};

use flags::Flags;
use kinds::{flux_kluctl_deployment, gitops_kluctl_deployment};
use orphans::ResultCleaner;
use overrides::SourceOverrides;

/// The command line of the controller.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "kluctl-controller",
    about = "Reconciles KluctlDeployment objects",
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

impl Cli {
    /// Returns the flags that every controller has, with the flags of this controller that mean the same.
    #[must_use]
    pub fn common(&self) -> CommonFlags {
        let original = &self.own.original;
        let mut flags = CommonFlags {
            connection: Connection {
                kubeconfig: original.kubeconfig.clone(),
                context: original.context.clone(),
            },
            only_namespace: original.namespace.clone().filter(|name| !name.is_empty()),
            ..self.common.clone()
        };
        if original.debug {
            flags.log_level = LogLevel::Debug;
        }
        flags
    }
}

/// Returns the names of this controller, the original's unless `--controller-name` is given.
#[must_use]
pub fn spec(cli: &Cli) -> runtime::Spec {
    runtime::Spec {
        // Leaked once in the life of a process.
        name: match &cli.own.original.controller_name {
            Some(name) => name.clone().leak(),
            None => "flux-kluctl-controller",
        },
        lease: "flux-kluctl-controller-leader-election",
        events: cli.events.clone(),
        standby_records: false,
    }
}

/// Runs all kinds until the process ends.
///
/// # Errors
/// If the metrics or the directory for artifacts cannot be created.
pub async fn run(ctx: Context, flags: Flags) -> anyhow::Result<()> {
    run_within(ctx, flags, |flux| flux, |gitops| gitops).await
}

pub async fn run_within<F: Reconciler, G: Reconciler>(
    ctx: Context,
    flags: Flags,
    within_flux: impl FnOnce(DeployReconciler<flux_kluctl_deployment::Controller>) -> F,
    within_gitops: impl FnOnce(DeployReconciler<gitops_kluctl_deployment::Controller>) -> G,
) -> anyhow::Result<()> {
    runtime::flags::report_idle(&flags.idle());
    let reconciler = flux_kluctl_deployment::Controller::new(&ctx, &flags)?;
    let options = RunOptions {
        triggers: vec![flux_kluctl_deployment::triggers(&ctx, &reconciler)],
        ..RunOptions::default()
    };
    let (gone, orphaned) = ResultCleaner::new(&ctx, &flags.results);
    let address = flags.original.source_override_bind_address.as_deref();
    let overrides = SourceOverrides::start(&ctx, address).await?;
    let shared = reconciler.shared();
    let gitops = gitops_kluctl_deployment::Controller::new(&ctx, &flags, shared, &orphaned, gone)?;
    let gitops = gitops.with(overrides);
    let cleaning = tokio::spawn(orphaned.run(ctx.clone()));
    let both = tokio::try_join!(
        run_kind(&ctx, within_flux(DeployReconciler::new(reconciler)), options),
        run_kind(
            &ctx,
            within_gitops(DeployReconciler::new(gitops)),
            RunOptions::default()
        ),
    );
    both?;
    // It ends at a shutdown, as the kinds do.
    let _ = cleaning.await;
    Ok(())
}
