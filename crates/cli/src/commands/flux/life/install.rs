//! `weir install`: installs the controllers, or upgrades them.

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use yaml::Value;

use super::{artifact, flags::ControllerFlags, found::Installation, rollout};
use crate::{
    commands::flux::{Flux, FluxFlags},
    output,
    usage::boolean_flag,
};

/// Install the controllers, or upgrade them
///
/// The manifests are part of weir: nothing is downloaded, unless --manifests-oci names an artifact. Its content is verified by the digest, and
/// --components selects from it; the login to the registry comes from Docker's config.json. Objects of the namespace of the controllers that name no ServiceAccount deploy as
/// cluster-admin; objects of other namespaces have the rights of their own ServiceAccounts (see --admin). The same command with other flags
/// changes the installation, and is safe to repeat. A cluster that follows a Git repository is upgraded by `weir bootstrap`.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    controllers: ControllerFlags,
    /// Install the manifests of an OCI artifact, such as the one of another release: oci://HOST/PATH@sha256:DIGEST
    #[arg(long, value_name = "URL", conflicts_with_all = [
        "version", "registry", "image_pull_secret", "watch_all_namespaces", "log_level", "cluster_domain", "toleration_keys", "admin",
    ])]
    manifests_oci: Option<String>,
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

  # The manifests of a release in a registry, verified by their digest
  weir install \
    --manifests-oci=oci://registry.example.com/weir/manifests@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08

  # The manifests, to commit them
  weir install --export > gotk-components.yaml";

pub(crate) fn run(args: &InstallArgs) -> Result<()> {
    if args.export {
        return output::print(&exported(args)?);
    }
    let flux = Flux::open(&args.flux)?;
    flux.generated("generating manifests");
    let objects = match &args.manifests_oci {
        Some(url) => pulled(args, url, &flux.namespace)?,
        None => install::objects(&args.controllers.options(&flux.namespace)?)?,
    };
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

/// Returns the manifests as text.
fn exported(args: &InstallArgs) -> Result<String> {
    let namespace = args.flux.namespace()?;
    match &args.manifests_oci {
        Some(url) => {
            let objects = pulled(args, url, &namespace)?;
            Ok(yaml::print::all(&objects, yaml::print::goyaml))
        }
        None => Ok(install::install(&args.controllers.options(&namespace)?)?),
    }
}

/// Returns the selected objects of an artifact.
fn pulled(args: &InstallArgs, url: &str, namespace: &str) -> Result<Vec<Value>> {
    let texts = artifact::pull(url, args.flux.timeout)?;
    let selection = args.controllers.selection(namespace)?;
    install::select(&texts, &selection).with_context(|| url.to_owned())
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
