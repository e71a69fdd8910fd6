//! `weir debug`: status, history, variables, arguments and values of one object.

mod kluctl;
mod values;

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use fleet::kind;
use yaml::Value;

use super::{
    super::{Flux, FluxFlags, served},
    read,
};
use crate::{deferred::Deferred, output, usage::boolean_flag};
use values::References;

const DOCUMENTATION: &str = "https://fluxcd.io/flux/components";

/// Subcommands of `weir debug`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Print the status, history or variables of a Kustomization
    #[command(visible_alias = "ks")]
    Kustomization(Deferred<KustomizationArgs>),
    /// Print the status, history or values of a HelmRelease
    #[command(visible_alias = "hr")]
    Helmrelease(Deferred<ReleaseArgs>),
    /// Print the status, history or arguments of a KluctlDeployment
    #[command(visible_alias = "kd")]
    Kluctldeployment(Deferred<DeploymentArgs>),
}

const KUSTOMIZATION_EXAMPLES: &str = "Examples:
  # The variables that are substituted
  weir debug kustomization podinfo --show-vars > vars.env

  # The status
  weir debug kustomization podinfo -n apps --show-status";

const RELEASE_EXAMPLES: &str = "Examples:
  # The values that the release is made with
  weir debug helmrelease podinfo --show-values > values.yaml

  # The history of releases
  weir debug helmrelease podinfo -n apps --show-history";

const DEPLOYMENT_EXAMPLES: &str = "Examples:
  # The target and arguments of the spec and of the last deployment
  weir debug kluctldeployment shop --show-args

  # The results in the status
  weir debug kluctldeployment shop -n apps --show-history";

/// Print the status, history or variables of a Kustomization
///
/// One of the flags is to be given. WARNING: --show-vars prints values of Secrets that spec.postBuild.substituteFrom refers to.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = KUSTOMIZATION_EXAMPLES)]
pub(crate) struct KustomizationArgs {
    /// Name of the Kustomization
    #[arg(value_name = "NAME")]
    name: String,
    /// Print the status
    #[arg(long, help_heading = "Output")]
    show_status: bool,
    /// Print the variables that are substituted, as NAME=VALUE
    #[arg(long, help_heading = "Output")]
    show_vars: bool,
    /// Print the history of reconciliations
    #[arg(long, help_heading = "Output")]
    show_history: bool,
    #[command(flatten)]
    flux: FluxFlags,
}

/// Print the status, history or values of a HelmRelease
///
/// One of the flags is to be given. WARNING: --show-values prints values of Secrets that spec.valuesFrom refers to.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = RELEASE_EXAMPLES)]
pub(crate) struct ReleaseArgs {
    /// Name of the HelmRelease
    #[arg(value_name = "NAME")]
    name: String,
    /// Print the status
    #[arg(long, help_heading = "Output")]
    show_status: bool,
    /// Print the values of the release, composed of references and inline values
    #[arg(long, help_heading = "Output")]
    show_values: bool,
    /// Print the history of releases
    #[arg(long, help_heading = "Output")]
    show_history: bool,
    #[command(flatten)]
    flux: FluxFlags,
}

/// Print the status, history or arguments of a KluctlDeployment
///
/// One of the flags is to be given. Of two KluctlDeployments with the name, the one of gitops.kluctl.io is taken.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = DEPLOYMENT_EXAMPLES)]
#[allow(clippy::struct_excessive_bools, reason = "they are flags")]
pub(crate) struct DeploymentArgs {
    /// Name of the KluctlDeployment
    #[arg(value_name = "NAME")]
    name: String,
    /// Print the status
    #[arg(long, help_heading = "Output")]
    show_status: bool,
    /// Print target, arguments and images of the spec and of the last deployment
    #[arg(long, help_heading = "Output")]
    show_args: bool,
    /// Print the results of the last commands
    #[arg(long, help_heading = "Output")]
    show_history: bool,
    /// Print the values of arguments whose names have words such as password, token or key, too
    #[arg(long, help_heading = "Output")]
    show_secrets: bool,
    #[command(flatten)]
    flux: FluxFlags,
}

pub(crate) fn run(command: &Command) -> Result<()> {
    match command {
        Command::Kustomization(args) => kustomization(args),
        Command::Helmrelease(args) => release(args),
        Command::Kluctldeployment(args) => deployment(args),
    }
}

/// The part of an object that a flag asks for.
#[derive(Debug, Clone, Copy)]
enum Part {
    Status,
    /// The values that it is deployed with.
    Values,
    History,
}

/// Returns the part that is asked for. Fails, in the words of the original, unless exactly one flag is given.
fn only(is_status: bool, (flag, is_values): (&str, bool), is_history: bool) -> Result<Part> {
    match (is_status, is_values, is_history) {
        (true, false, false) => Ok(Part::Status),
        (false, true, false) => Ok(Part::Values),
        (false, false, true) => Ok(Part::History),
        _ => bail!("exactly one of --show-status, {flag}, or --show-history must be set"),
    }
}

fn deployment(args: &DeploymentArgs) -> Result<()> {
    let part = only(
        args.show_status,
        ("--show-args", args.show_args),
        args.show_history,
    )?;
    let flux = Flux::open(&args.flux)?;
    let object = flux.block_on(find_deployment(&flux, &args.name))?;
    let printed = match part {
        Part::Status => object.get("status").cloned().unwrap_or_default(),
        Part::Values => kluctl::arguments(&object, args.show_secrets),
        Part::History => kluctl::history(&object),
    };
    output::print(&yaml::print::goyaml(&printed))
}

/// Reads the KluctlDeployment of either group.
async fn find_deployment(flux: &Flux, name: &str) -> Result<Value> {
    let kinds = [&kind::GITOPS_KLUCTL_DEPLOYMENT, &kind::FLUX_KLUCTL_DEPLOYMENT];
    let snapshot = flux.cluster.snapshot().await?;
    for kind in kinds.into_iter().filter(|kind| served(&snapshot, kind).is_some()) {
        if let Some(object) = read::find(flux, kind, &flux.namespace, name).await? {
            return Ok(object);
        }
    }
    bail!(
        "KluctlDeployment \"{name}\" not found in namespace \"{}\"",
        flux.namespace
    )
}

fn kustomization(args: &KustomizationArgs) -> Result<()> {
    let part = only(
        args.show_status,
        ("--show-vars", args.show_vars),
        args.show_history,
    )?;
    let flux = Flux::open(&args.flux)?;
    let object = flux.block_on(read::get(
        &flux,
        &kind::KUSTOMIZATION,
        &flux.namespace,
        &args.name,
    ))?;
    let page = "kustomize/kustomizations";
    let text = match part {
        Part::Status => status(&object, &format!("{page}/#kustomization-status")),
        Part::Values => variables(&flux.block_on(vars(&flux, &object))?),
        Part::History => history(&object, &format!("{page}/#history")),
    };
    output::print(&text)
}

fn release(args: &ReleaseArgs) -> Result<()> {
    let part = only(
        args.show_status,
        ("--show-values", args.show_values),
        args.show_history,
    )?;
    let flux = Flux::open(&args.flux)?;
    let object = flux.block_on(read::get(&flux, &kind::HELM_RELEASE, &flux.namespace, &args.name))?;
    let page = "helm/helmreleases";
    let text = match part {
        Part::Status => status(&object, &format!("{page}/#helmrelease-status")),
        Part::Values => yaml::print::goyaml(&flux.block_on(values::merged(&flux, &object))?),
        Part::History => history(&object, &format!("{page}/#history")),
    };
    output::print(&text)
}

fn status(object: &Value, page: &str) -> String {
    let status = object.get("status").cloned().unwrap_or_default();
    let text = yaml::print::goyaml(&status);
    format!("# Status documentation: {DOCUMENTATION}/{page}\n{text}")
}

fn history(object: &Value, page: &str) -> String {
    let history = object.pointer(&["status", "history"]).cloned();
    let text = yaml::print::goyaml(&history.unwrap_or(Value::Seq(Vec::new())));
    format!("# History documentation: {DOCUMENTATION}/{page}\n{text}")
}

/// Returns the variables of a Kustomization: later references override earlier ones, and inline ones override all.
async fn vars(flux: &Flux, object: &Value) -> Result<BTreeMap<String, String>> {
    let post_build = object.pointer(&["spec", "postBuild"]);
    let post_build = post_build.context("no post build substitutions found")?;
    let mut vars = BTreeMap::new();
    let mut references = References::new(flux);
    let listed = post_build.get("substituteFrom").and_then(Value::as_seq);
    for reference in listed.unwrap_or_default() {
        let (kind, name) = (read::text(reference, &["kind"]), read::text(reference, &["name"]));
        let is_optional = reference
            .get("optional")
            .and_then(Value::as_bool)
            .unwrap_or_default();
        match references.data(kind, name).await? {
            Some(data) => vars.extend(data.into_iter().map(|(key, value)| (key, one_line(&value)))),
            None if is_optional => {}
            None => bail!("substitute from '{kind}/{name}' error: it does not exist"),
        }
    }
    let inline = post_build.get("substitute").and_then(Value::as_map);
    for (key, value) in inline.into_iter().flat_map(|map| map.iter()) {
        vars.insert(key.to_owned(), one_line(value.as_str().unwrap_or_default()));
    }
    Ok(vars)
}

/// Removes line breaks, as the controller does.
fn one_line(value: &str) -> String {
    value.replace('\n', "")
}

fn variables(vars: &BTreeMap<String, String>) -> String {
    vars.iter()
        .map(|(name, value)| format!("{name}={value}\n"))
        .collect()
}
