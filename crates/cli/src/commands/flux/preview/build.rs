//! `weir build`: prints the objects that a Kustomization makes of local manifests.

use std::{collections::HashSet, path::Path};

use anyhow::{Context as _, Result, ensure};
use clap::{Args, Subcommand};
use futures::future::{BoxFuture, FutureExt as _};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use yaml::Value;

use super::{
    builder::Builder,
    flags::BuildFlags,
    subject::{Subject, is_kustomization},
};
use crate::{commands::flux::Flux, deferred::Deferred, output, session::end_early, usage::boolean_flag};

const EXAMPLES: &str = "Examples:
  # The objects as the Kustomization in the cluster builds them
  weir build kustomization my-app --path ./path/to/local/manifests

  # The Kustomization of a local file
  weir build kustomization my-app --path ./path/to/local/manifests \\
    --kustomization-file ./path/to/local/my-app.yaml

  # Without a cluster: variables of ConfigMaps and Secrets are not substituted
  weir build kustomization my-app --path ./path/to/local/manifests \\
    --kustomization-file ./path/to/local/my-app.yaml \\
    --dry-run

  # Without some of the files
  weir build kustomization my-app --path ./path/to/local/manifests \\
    --ignore-paths \"/to_ignore/**/*.yaml,ignore.yaml\"

  # With the Kustomizations among the objects
  weir build kustomization my-app --path ./path/to/local/manifests \\
    --recursive \\
    --local-sources GitRepository/flux-system/my-repo=./path/to/local/git";

/// Subcommands of `weir build`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Build a Kustomization from local manifests, and print its objects
    #[command(visible_alias = "ks")]
    Kustomization(Deferred<KustomizationArgs>),
}

/// Build a Kustomization from local manifests, and print its objects
///
/// The Kustomization is read from the cluster, or from a file. A missing kustomization.yaml is generated in memory: nothing is written.
/// Values that SOPS has encrypted are masked.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct KustomizationArgs {
    #[command(flatten)]
    build: BuildFlags,
    /// Use no cluster: needs --kustomization-file, and skips variables of ConfigMaps and Secrets
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(command: &Command) -> Result<()> {
    let Command::Kustomization(args) = command;
    let flags = &args.build;
    let dir = flags.dir()?;
    ensure!(
        !args.dry_run || flags.kustomization_file.is_some(),
        "dry-run mode requires a kustomization file"
    );
    let objects = match args.dry_run {
        true => offline(flags, dir)?,
        false => {
            let flux = Flux::open(&flags.flux)?;
            let cancel = flux.cluster.cancellation().clone();
            let builder = Builder::new(flags, flux.namespace.clone(), Some(flux.cluster.clone()), cancel)?;
            flux.block_on(all(&builder, dir))?
        }
    };
    let texts: Vec<String> = objects
        .iter()
        .map(|object| yaml::print::goyaml(object) + "---\n")
        .collect();
    output::print_all(&texts)
}

/// Builds without a cluster.
fn offline(flags: &BuildFlags, dir: &Path) -> Result<Vec<Value>> {
    let runtime = Runtime::new().context("start the async runtime")?;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let cancel = CancellationToken::new();
    runtime.spawn(end_early(
        cancel.clone(),
        flags.flux.terminal(),
        flags.flux.timeout,
    ));
    let builder = Builder::new(flags, flags.flux.namespace()?, None, cancel)?;
    runtime.block_on(all(&builder, dir))
}

/// Builds the Kustomization of the command and, if asked, the ones among its objects.
async fn all(builder: &Builder<'_>, dir: &Path) -> Result<Vec<Value>> {
    let subject = builder.subject().await?;
    let mut objects = builder.build(&subject, dir).await?.objects;
    if builder.flags.recursive {
        let mut visited = HashSet::from([(subject.namespace.clone(), subject.name.clone())]);
        let below = below(builder, &subject, &objects, &mut visited).await?;
        objects.extend(below);
    }
    Ok(objects)
}

/// Builds the Kustomizations among objects, each once.
fn below<'f>(
    builder: &'f Builder<'_>,
    parent: &'f Subject,
    objects: &'f [Value],
    visited: &'f mut HashSet<(String, String)>,
) -> BoxFuture<'f, Result<Vec<Value>>> {
    async move {
        let mut all = Vec::new();
        for object in objects.iter().filter(|object| is_kustomization(object)) {
            let child = builder.child(object, parent).await?;
            if !visited.insert((child.namespace.clone(), child.name.clone())) {
                continue;
            }
            let built = builder.build(&child, &builder.dir(&child)?).await?.objects;
            let below = below(builder, &child, &built, visited).await?;
            all.extend(built);
            all.extend(below);
        }
        Ok(all)
    }
    .boxed()
}
