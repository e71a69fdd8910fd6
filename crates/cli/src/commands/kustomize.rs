//! `weir kustomize`.

mod directory;
mod inflate;

use std::{
    fs::{self, File},
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, anyhow, ensure};
use clap::{Args, Subcommand, ValueEnum};
use kustomize::{Build, Built, LoadRestriction, Options, SortOrder, Warning};
use remote::{ChartDownloader, RemoteFetcher};
use tree::{Budget, Limits};

use crate::{
    deferred::Deferred,
    logins::Logins,
    output::{print_all, write_texts},
    usage::{UnsupportedFlags, boolean_flag},
};
pub(crate) use directory::BuildDirectory;
use inflate::{ChartDefaults, HelmInflator};

/// Flags of `kustomize build` that weir doesn't support.
pub(crate) const UNSUPPORTED_FLAGS: UnsupportedFlags = &[
    (
        &["--helm-command"],
        "no program is run; Helm charts are rendered in process",
    ),
    (
        &[
            "--enable-alpha-plugins",
            "--enable-exec",
            "--network",
            "--network-name",
            "--mount",
            "--env",
            "-e",
            "--as-current-user",
        ],
        "exec and container plugins are not supported, only the built-in generators and transformers",
    ),
    (&["--stack-trace"], "weir has no stack traces"),
];

/// Subcommands of `weir kustomize`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Build a kustomization, and print its objects
    Build(Deferred<BuildArgs>),
}

const EXAMPLES: &str = "Examples:
  # Print the objects of an overlay
  weir kustomize build overlays/prod

  # Write one file per object, and download charts
  weir kustomize build overlays/prod --enable-helm -o out";

/// Build a kustomization, and print its objects
///
/// The output is the same as of `kustomize build` 5.8.1. Remote bases and files are fetched over http and https. No program is run.
#[derive(Debug, Args)]
#[command(mut_args = boolean_flag, after_help = EXAMPLES)]
pub(crate) struct BuildArgs {
    /// Directory with a kustomization.yaml, or URL of a Git repository
    #[arg(default_value = ".")]
    dir: PathBuf,
    /// Write the output to a file, or one file per object to an existing directory
    #[arg(short, long, value_name = "FILE|DIR")]
    output: Option<PathBuf>,
    /// Restriction on the files that a kustomization may load
    #[arg(long, value_name = "RESTRICTION", default_value = "LoadRestrictionsRootOnly")]
    load_restrictor: LoadRestrictor,
    /// Order of the objects, if the kustomization has no sortOptions
    #[arg(long, value_name = "ORDER", default_value = "legacy")]
    reorder: Reorder,
    /// Add the label app.kubernetes.io/managed-by to all objects
    #[arg(long)]
    enable_managedby_label: bool,
    /// Enable helmCharts; charts that are not in the chart home are downloaded
    #[arg(long)]
    enable_helm: bool,
    /// Kubernetes version for charts whose entry has no kubeVersion
    #[arg(long, value_name = "VERSION", requires = "enable_helm")]
    helm_kube_version: Option<String>,
    /// API versions for charts whose entry has no apiVersions: group/version or group/version/Kind. Can be repeated
    #[arg(long, value_name = "VERSION", requires = "enable_helm")]
    helm_api_versions: Vec<String>,
    /// Print which charts and values files are used
    #[arg(long, requires = "enable_helm")]
    helm_debug: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LoadRestrictor {
    /// Files in and below the directory of the kustomization
    #[value(name = "LoadRestrictionsRootOnly")]
    RootOnly,
    /// All files
    #[value(name = "LoadRestrictionsNone")]
    None,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Reorder {
    /// By kind: namespaces first, webhooks last
    Legacy,
    /// In the order of the kustomization
    None,
}

/// Returns the limits of a build: users build their own files, so only runaway builds are stopped.
pub(crate) fn limits() -> Limits {
    Limits {
        steps: u64::MAX,
        bytes: u64::MAX,
        objects: u64::MAX,
        file_bytes: 1 << 30,
        ..Limits::default()
    }
}

pub(crate) fn run(command: &Command) -> Result<()> {
    match command {
        Command::Build(args) => build(args),
    }
}

fn build(args: &BuildArgs) -> Result<()> {
    let limits = limits();
    let budget = Budget::new(limits);
    let fetcher = RemoteFetcher::new(Logins::default().servers());
    let directory = BuildDirectory::find(&args.dir, &fetcher, &budget)?;
    let charts = ChartDownloader::new(&fetcher);
    let inflate = HelmInflator {
        charts: &charts,
        defaults: ChartDefaults {
            kube_version: args.helm_kube_version.clone(),
            api_versions: args.helm_api_versions.clone(),
            debug: args.helm_debug,
        },
        local: directory.is_local.then_some(directory.tree.as_ref()),
        unrestricted: matches!(args.load_restrictor, LoadRestrictor::None),
    };
    let options = Options {
        load_restriction: match args.load_restrictor {
            LoadRestrictor::None if directory.is_local => LoadRestriction::None,
            LoadRestrictor::RootOnly | LoadRestrictor::None => LoadRestriction::RootOnly,
        },
        order: match args.reorder {
            Reorder::Legacy => SortOrder::Legacy,
            Reorder::None => SortOrder::Accumulated,
        },
        managed_by_label: args.enable_managedby_label,
        fetch: Some(&fetcher),
        helm: args.enable_helm.then_some(&inflate),
        ..Options::default()
    };
    // Entries may be URLs with passwords.
    let failed =
        |error: kustomize::Error| anyhow!(api::redact(&directory.absolute_paths(&error.to_string())));
    let (tree, dir) = (directory.tree.as_ref(), &directory.dir);
    if let Some(files) = args.output.as_ref().filter(|output| output.is_dir()) {
        let built = kustomize::build(tree, dir, &options, &budget).map_err(failed)?;
        warn(&built.warnings);
        return write_files(files, &built);
    }
    // Printed one by one: the YAML of an object needs far less memory than the object.
    let mut texts: Vec<Box<str>> = Vec::new();
    let print = |built: Built| {
        let separator = if texts.is_empty() { "" } else { "---\n" };
        texts.push((separator.to_owned() + &yaml::print::goyaml(&built.object)).into());
    };
    let warnings = kustomize::build_each(tree, dir, &options, &budget, print).map_err(failed)?;
    warn(&warnings);
    match &args.output {
        Some(file) => write_file(file, &texts).with_context(|| format!("write {}", file.display())),
        None => print_all(&texts),
    }
}

fn warn(warnings: &[Warning]) {
    for warning in warnings {
        let _ = writeln!(std::io::stderr(), "{}", api::redact(warning.text.trim_end()));
    }
}

fn write_file(file: &Path, texts: &[Box<str>]) -> std::io::Result<()> {
    write_texts(BufWriter::new(File::create(file)?), texts)
}

fn write_files(dir: &Path, built: &Build) -> Result<()> {
    for (name, text) in built.files() {
        ensure!(
            !name.contains('/'),
            "{name:?} is not a valid file name: rename the object, or write all objects to one file"
        );
        let file = dir.join(name);
        fs::write(&file, text).with_context(|| format!("write {}", file.display()))?;
    }
    Ok(())
}
