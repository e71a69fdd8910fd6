//! `weir get`: tables of objects.

mod find;
mod print;
mod watch;

use anyhow::{Result, bail, ensure};
use clap::{Args, ValueEnum};
use cluster::Selection;
use fleet::{Columns, Family, Kind, StatusSelector, kind};
use futures::{StreamExt as _, stream};

use super::super::{ByKind, Flux, FluxFlags, KindCommand, served};
use crate::{
    output,
    usage::{boolean_flag, parse_bool},
};
pub(super) use find::decode;
use find::find;
use print::Tables;

/// Lists that are requested at a time.
const AT_A_TIME: usize = 6;

/// Flags of `weir get`.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true)]
pub(crate) struct GetArgs {
    /// Name of the object; without it, all objects of the kind are printed
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Print the objects of all namespaces
    #[arg(short = 'A', long, help_heading = "Selection")]
    all_namespaces: bool,
    /// Select objects by their labels, such as team=shop,stage!=test
    #[arg(short = 'l', long, value_name = "SELECTOR", help_heading = "Selection")]
    label_selector: Option<String>,
    /// Select objects by a condition of their status, such as ready=false or ready!=true
    #[arg(long, value_name = "TYPE=STATUS", help_heading = "Selection")]
    status_selector: Option<StatusSelector>,
    /// Select suspended objects, or those that are not suspended (=false)
    #[arg(long, value_name = "BOOL", help_heading = "Selection", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = parse_bool)]
    suspended: Option<bool>,
    /// Print changes as they happen, until Ctrl-C
    #[arg(short, long, help_heading = "Output")]
    watch: bool,
    /// Print no header
    #[arg(long, help_heading = "Output")]
    no_header: bool,
    /// Print the source of Kustomizations, HelmReleases and KluctlDeployments
    #[arg(long, help_heading = "Output")]
    show_source: bool,
    /// Format: whole objects, names as kubectl takes them, or a table with sources and ages
    #[arg(short, long, value_name = "FORMAT", help_heading = "Output")]
    output: Option<Format>,
    #[command(flatten)]
    flux: FluxFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Json,
    Yaml,
    Wide,
    Name,
}

/// `weir get`.
pub(crate) struct Get;

impl KindCommand for Get {
    type Args = GetArgs;
    const LISTS: bool = true;

    fn accepts(_kind: &Kind) -> bool {
        true
    }

    fn about(kind: &Kind) -> String {
        match kind.features.has_status {
            true => format!("Print {} and their state", super::plural(kind.kind)),
            false => format!("Print {}", super::plural(kind.kind)),
        }
    }

    fn about_all(family: Option<Family>) -> Option<String> {
        let about = match family {
            None => "Print the objects of all kinds",
            Some(Family::Source) => "Print all sources",
            Some(Family::Image) => "Print all objects of the image automation",
            Some(Family::Artifact) => "Print all objects that make artifacts of others",
        };
        Some(about.to_owned())
    }

    fn examples(words: &str) -> Option<String> {
        if words.ends_with("all") {
            return Some(format!(
                "Examples:
  # All objects of a namespace
  weir get {words} -n apps

  # Those of all namespaces that are not ready
  weir get {words} -A --status-selector ready=false"
            ));
        }
        Some(format!(
            "Examples:
  # All of a namespace, with ages and the notes on suspended ones
  weir get {words} -n apps -o wide

  # One of them as YAML
  weir get {words} podinfo -n apps -o yaml

  # Those of all namespaces that are not ready
  weir get {words} -A --status-selector ready=false"
        ))
    }
}

pub(crate) fn run(command: &ByKind<Get>) -> Result<()> {
    let args = &*command.args;
    if command.is_all {
        ensure!(!args.watch, "expected a single resource type, but found all");
        ensure!(args.name.is_none(), "all kinds are printed without a name");
    } else if args.show_source && command.kinds.iter().any(|kind| !Columns::has_source(kind)) {
        bail!("--show-source is for kustomizations, helmreleases and kluctldeployments");
    }
    match args.watch {
        true => {
            let flux = Flux::open_for(&args.flux, std::time::Duration::MAX)?;
            flux.block_on(watch::run(&flux, command))
        }
        false => {
            let flux = Flux::open(&args.flux)?;
            flux.block_on(print_once(&flux, command))
        }
    }
}

async fn print_once(flux: &Flux, command: &ByKind<Get>) -> Result<()> {
    let args = &*command.args;
    let snapshot = flux.cluster.snapshot().await?;
    let is_served = |kind: &&Kind| served(&snapshot, kind).is_some();
    let kinds: Vec<&'static Kind> = command.kinds.iter().copied().filter(is_served).collect();
    if let (Some(kind), [], false) = (command.kinds.first(), kinds.as_slice(), command.is_all) {
        flux.served(kind).await?;
    }
    let keeps_json = matches!(args.output, Some(Format::Json | Format::Yaml));
    let searches: Vec<_> = kinds
        .iter()
        .map(|kind| find(flux, kind, args, keeps_json))
        .collect();
    let all: Vec<_> = stream::iter(searches).buffered(AT_A_TIME).collect().await;
    let mut tables = Vec::new();
    let (mut listed, mut failures) = (0, 0);
    for (kind, search) in kinds.into_iter().zip(all) {
        match search {
            Ok(search) => {
                listed += search.listed;
                tables.push((kind, search.found));
            }
            Err(error) if command.is_all => {
                failures += 1;
                flux.failure(&output::error_chain(&error));
            }
            Err(error) => return Err(error),
        }
    }
    let is_empty = listed == 0 && !command.is_all;
    if is_empty && (args.name.is_some() || !keeps_json) {
        return nothing(flux, command);
    }
    print::all(args, command.is_all, tables)?;
    ensure!(failures == 0, "{failures} kinds could not be listed");
    Ok(())
}

/// Reports that there are no objects.
fn nothing(flux: &Flux, command: &ByKind<Get>) -> Result<()> {
    let args = &*command.args;
    let kind = command.kinds.first().map(|kind| kind.kind).unwrap_or_default();
    let namespace = match args.all_namespaces {
        true => "any".to_owned(),
        false => format!("\"{}\"", flux.namespace),
    };
    if let Some(name) = &args.name {
        bail!("{kind} object '{name}' not found in {namespace} namespace");
    }
    bail!("no {kind} objects found in {namespace} namespace")
}

impl GetArgs {
    fn selection(&self, flux: &Flux) -> Selection {
        Selection {
            namespace: (!self.all_namespaces).then(|| flux.namespace.clone()),
            labels: self.label_selector.clone().unwrap_or_default(),
            fields: match &self.name {
                Some(name) => format!("metadata.name={name}"),
                None => String::new(),
            },
        }
    }

    fn accepts(&self, kind: &Kind, object: &fleet::Object) -> bool {
        let is_suspended = object.spec.suspend || object.is_disabled();
        self.suspended.is_none_or(|wanted| wanted == is_suspended)
            && self
                .status_selector
                .as_ref()
                .is_none_or(|selector| selector.matches(kind, object))
    }

    fn columns(&self, is_all: bool, kind: &Kind) -> Columns {
        let is_wide = self.output == Some(Format::Wide);
        Columns {
            namespace: self.all_namespaces,
            group: *kind == kind::GITOPS_KLUCTL_DEPLOYMENT || *kind == kind::FLUX_KLUCTL_DEPLOYMENT,
            kind_prefix: is_all,
            source: self.show_source || is_wide,
            suspension: is_wide,
            age: is_wide,
        }
    }

    fn tables(&self, is_all: bool) -> Tables<'_> {
        Tables::new(self, is_all)
    }
}
