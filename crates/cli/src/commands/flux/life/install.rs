//! `weir install`: installs the controllers, or upgrades them.

use anyhow::{Result, bail, ensure};
use clap::Args;

use super::{flags::ControllerFlags, found::Installation, rollout};
use crate::{
    commands::flux::{Flux, FluxFlags},
    output,
    usage::boolean_flag,
};

/// Install the controllers, or upgrade them
///
/// The manifests are part of weir: nothing is downloaded. Objects of the namespace of the controllers that name no ServiceAccount deploy as
/// cluster-admin; objects of other namespaces have the rights of their own ServiceAccounts (see --admin). The same command with other flags
/// changes the installation, and is safe to repeat. A cluster that follows a Git repository is upgraded by `weir bootstrap`.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    controllers: ControllerFlags,
    /// Print the manifests instead of applying them
    #[arg(long)]
    export: bool,
    /// Override an installation of another tool
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    flux: FluxFlags,
}

const EXAMPLES: &str = "\
Examples:
  # All controllers, from your registry
  weir install --registry=registry.example.com/weir

  # Two of them, for one namespace
  weir install --components=source-controller,kustomize-controller --watch-all-namespaces=false

  # The manifests, to commit them
  weir install --export > gotk-components.yaml";

pub(crate) fn run(args: &InstallArgs) -> Result<()> {
    if args.export {
        let options = args.controllers.options(&args.flux.namespace()?)?;
        return output::print(&install::install(&options)?);
    }
    let flux = Flux::open(&args.flux)?;
    let options = args.controllers.options(&flux.namespace)?;
    flux.generated("generating manifests");
    let objects = install::objects(&options)?;
    flux.success("manifests build completed");
    flux.block_on(async {
        check_present(&flux, args.force).await?;
        flux.action(&format!("installing components in {} namespace", flux.namespace));
        let targets = rollout::apply(&flux, &objects).await?;
        flux.waiting("verifying installation");
        rollout::wait(&flux, targets, args.flux.timeout).await?;
        flux.success("install finished");
        Ok(())
    })
}

/// Refuses to override an installation that follows a repository, which would undo the change, or that another tool keeps.
async fn check_present(flux: &Flux, force: bool) -> Result<()> {
    let Some(found) = Installation::find(&flux.cluster).await? else {
        return Ok(());
    };
    let distribution = found.distribution();
    ensure!(
        !found.is_bootstrapped,
        "this cluster was bootstrapped with {distribution}: its Git repository has the manifests; upgrade it by weir bootstrap"
    );
    match found.manager.as_deref() {
        None | Some("weir") => Ok(()),
        Some(_) if force => Ok(()),
        Some(manager) => bail!(
            "{distribution} is installed in this cluster, and kept by {manager}: use --force to override it"
        ),
    }
}
