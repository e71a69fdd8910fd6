//! `weir diff repository`: shows the changes that a checked-out repository would make in the cluster.

mod artifact_tree;
mod comment;
mod kluctl;
mod result;
mod sources;
mod walk;
mod work_tree;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};

use super::{Failure, manifest_builder::ManifestBuilder, subject::objects_of_file};
use crate::{
    commands::flux::{Flux, FluxFlags},
    output,
    terminal::printable,
    usage::{boolean_flag, split_list},
};
use result::RepositoryDiff;
use sources::RepositorySources;
use walk::Walk;
use work_tree::WorkTree;

const EXAMPLES: &str = "Examples:
  # The changes that the work tree in the current directory would make
  weir diff repository

  # As a comment for a pull request into main
  weir diff repository --branch main -o markdown > comment.md

  # A repository that the cluster gets as an OCI artifact
  weir diff repository --source OCIRepository/flux-system/fleet

  # With a Kustomization that is not in the cluster yet
  weir diff repository --kustomization-file clusters/prod/flux-system/gotk-sync.yaml

Exit codes: 0 without differences, 1 with some, 2 if anything could not be compared";

/// Show the changes that a checked-out repository would make in the cluster
///
/// Finds the Kustomizations and KluctlDeployments in the cluster that are made from the repository, and the ones among their objects.
/// Builds each from the work tree, applies the objects in a server-side dry run, and prints the differences, and the objects that would be
/// deleted. An object that fails doesn't stop the others. Values of Secrets are masked. All namespaces are searched unless --namespace is
/// given.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct RepositoryArgs {
    /// Directory in the work tree; defaults to the current one. The whole repository is compared
    #[arg(long, value_name = "DIR", default_value = ".")]
    path: PathBuf,
    /// Sources with the content of the repository, besides GitRepositories with the URL of its remote origin. Can be repeated
    #[arg(long, value_name = "KIND/NAMESPACE/NAME,...")]
    source: Vec<String>,
    /// Leave out GitRepositories that follow something other than this branch
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// File with Kustomizations and GitRepositories that count as if they were in the cluster. Can be repeated
    #[arg(long, value_name = "FILE")]
    kustomization_file: Vec<PathBuf>,
    /// Refuse variables without a value and without a default
    #[arg(long)]
    strict_substitute: bool,
    /// Format of the output. markdown is a comment for a pull request
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    output: Format,
    /// Heading of the Markdown comment
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "Changes in the cluster",
        help_heading = "Output"
    )]
    title: String,
    #[command(flatten)]
    flux: FluxFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Markdown,
}

/// Compares, and prints the result.
///
/// # Errors
/// With a [`Failure`] if anything differs or could not be compared.
pub(super) fn run(args: &RepositoryArgs) -> Result<()> {
    let work_tree = WorkTree::open(&args.path)?;
    let sources = RepositorySources::new(
        work_tree.origin.as_deref(),
        split_list(&args.source)?,
        args.branch.clone(),
    )?;
    let mut local = Vec::new();
    for file in &args.kustomization_file {
        local.extend(objects_of_file(file)?);
    }
    let flux = Flux::open(&args.flux)?;
    let builder = ManifestBuilder {
        cluster: Some(flux.cluster.clone()),
        ignored_lines: Vec::new(),
        strict: args.strict_substitute,
        timeout: args.flux.timeout,
        cancel: flux.cluster.cancellation().clone(),
    };
    let step = flux.terminal.spinner("Comparing the repository with the cluster");
    let namespace = args.flux.given_namespace().map(str::to_owned);
    let walked = flux.block_on(async {
        let mut walk = Walk::new(&flux.cluster, &work_tree, &builder, sources);
        walk.find(namespace, &local, &flux.namespace).await?;
        ensure!(
            !walk.is_empty(),
            "nothing in the cluster is deployed from {}: name its sources by --source",
            walk.sources
        );
        walk.compare().await
    });
    if let Some(step) = step {
        step.finish_and_clear();
    }
    finish(&walked?, args)
}

/// Prints the result in the wanted format, and returns it as the exit code.
fn finish(diff: &RepositoryDiff, args: &RepositoryArgs) -> Result<()> {
    output::print(&match args.output {
        Format::Text => printable(&diff.text()),
        Format::Json => serde_json::to_string_pretty(&diff.to_json())? + "\n",
        Format::Markdown => comment::comment(diff, &args.title),
    })?;
    let errors = diff.errors();
    if !errors.is_empty() {
        let message = errors.join("\n");
        return Err(Failure { code: 2, message }.into());
    }
    match diff.differs() {
        true => Err(Failure::differs().into()),
        false => Ok(()),
    }
}
