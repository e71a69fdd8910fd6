//! `weir kustomize`.

use std::{
    fs::{self, File},
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, anyhow, ensure};
use clap::{Args, Subcommand, ValueEnum};
use kustomize::{Build, Built, LoadRestriction, Options, Order, Warning};
use tree::{Budget, Limits};

use crate::{
    charts::Charts,
    fetch::Fetcher,
    inflate::{Defaults, Inflate},
    later::Later,
    output::{print_all, write_texts},
    place::Place,
    usage::{Refused, boolean},
};

/// Flags that kustomize has and this program hasn't, and why. None is accepted and then ignored.
pub(crate) const REFUSED: Refused = &[
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
        "no programs or containers are run, only the built-in generators and transformers",
    ),
    (&["--stack-trace"], "there are no stack traces to print"),
];

/// What can be done with kustomizations.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print the objects of a kustomization
    Build(Later<BuildArgs>),
}

/// Builds the objects of the kustomization in a directory, and prints them as YAML.
///
/// The output is that of `kustomize build`, version 5.8.1. Repositories and files on other machines are fetched
/// over http and https. No program is run.
#[derive(Debug, Args)]
#[command(mut_args = boolean)]
pub(crate) struct BuildArgs {
    /// The directory with a kustomization.yaml, or the address of a repository
    #[arg(default_value = ".")]
    dir: PathBuf,
    /// Write to this file, or one file for each object into this directory if there is one
    #[arg(short, long, value_name = "FILE|DIR")]
    output: Option<PathBuf>,
    /// Which files a kustomization may name
    #[arg(long, value_name = "WHICH", default_value = "LoadRestrictionsRootOnly")]
    load_restrictor: LoadRestrictor,
    /// In which order the objects come out, if the kustomization has no sortOptions
    #[arg(long, value_name = "ORDER", default_value = "legacy")]
    reorder: Reorder,
    /// Label every object with app.kubernetes.io/managed-by
    #[arg(long)]
    enable_managedby_label: bool,
    /// Inflate the charts of helmCharts; those that are not in the chart home are pulled
    #[arg(long)]
    enable_helm: bool,
    /// The version of Kubernetes that charts see, if their entry doesn't say it
    #[arg(long, value_name = "VERSION", requires = "enable_helm")]
    helm_kube_version: Option<String>,
    /// What charts see of the API server, if their entry doesn't say it: group/version, or group/version/Kind
    #[arg(long, value_name = "VERSION", requires = "enable_helm")]
    helm_api_versions: Vec<String>,
    /// Tell which charts and values are used
    #[arg(long, requires = "enable_helm")]
    helm_debug: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LoadRestrictor {
    /// Those in and below its own directory
    #[value(name = "LoadRestrictionsRootOnly")]
    RootOnly,
    /// All
    #[value(name = "LoadRestrictionsNone")]
    None,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Reorder {
    /// By kind: namespaces first, webhooks last
    Legacy,
    /// As the kustomization names them
    None,
}

/// Who builds at a terminal builds what is theirs: only what would hang or eat all memory is bounded.
fn limits() -> Limits {
    Limits {
        steps: u64::MAX,
        bytes: u64::MAX,
        objects: u64::MAX,
        file_bytes: 1 << 30,
        ..Limits::default()
    }
}

/// Does a command.
pub(crate) fn run(command: &Command) -> Result<()> {
    match command {
        Command::Build(args) => build(args),
    }
}

fn build(args: &BuildArgs) -> Result<()> {
    let limits = limits();
    let budget = Budget::new(limits);
    let fetcher = Fetcher::default();
    let place = Place::find(&args.dir, &fetcher, &budget)?;
    let charts = Charts::new(&fetcher);
    let inflate = Inflate {
        charts: &charts,
        defaults: Defaults {
            kube_version: args.helm_kube_version.clone(),
            api_versions: args.helm_api_versions.clone(),
            debug: args.helm_debug,
        },
        ours: place.is_ours.then_some(place.tree.as_ref()),
        anywhere: matches!(args.load_restrictor, LoadRestrictor::None),
    };
    let options = Options {
        load_restriction: match args.load_restrictor {
            LoadRestrictor::None if place.is_ours => LoadRestriction::None,
            LoadRestrictor::RootOnly | LoadRestrictor::None => LoadRestriction::RootOnly,
        },
        order: match args.reorder {
            Reorder::Legacy => Order::Legacy,
            Reorder::None => Order::Accumulated,
        },
        managed_by_label: args.enable_managedby_label,
        fetch: Some(&fetcher),
        helm: args.enable_helm.then_some(&inflate),
        ..Options::default()
    };
    // Entries may be addresses with passwords.
    let failed = |error: kustomize::Error| anyhow!(api::redact(&place.absolute(&error.to_string())));
    let (tree, dir) = (place.tree.as_ref(), &place.dir);
    if let Some(files) = args.output.as_ref().filter(|output| output.is_dir()) {
        let built = kustomize::build(tree, dir, &options, &budget).map_err(failed)?;
        warn(&built.warnings);
        return write_files(files, &built);
    }
    // Printed one by one: the text of an object needs far less memory than the object, and takes its place.
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

/// Prints what else is to be said.
fn warn(warnings: &[Warning]) {
    for warning in warnings {
        let _ = writeln!(std::io::stderr(), "{}", api::redact(warning.text.trim_end()));
    }
}

/// Writes texts into one file.
fn write_file(file: &Path, texts: &[Box<str>]) -> std::io::Result<()> {
    write_texts(BufWriter::new(File::create(file)?), texts)
}

/// Writes one file for each object.
fn write_files(dir: &Path, built: &Build) -> Result<()> {
    for (name, text) in built.files() {
        ensure!(
            !name.contains('/'),
            "{name:?} can't be the name of a file: rename the object, or print all objects into one file"
        );
        let file = dir.join(name);
        fs::write(&file, text).with_context(|| format!("write {}", file.display()))?;
    }
    Ok(())
}
