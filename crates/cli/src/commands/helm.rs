//! `weir helm`.

pub(crate) mod chart;
mod chart_source;
mod files;
mod unsupported;

use std::{io::Write as _, path::PathBuf};

use anyhow::{Result, anyhow, bail};
use clap::{Args, Subcommand};
use helm::{HelmVersion, Options, values::Sources};
use remote::RemoteFetcher;
use tree::{Budget, Limits};

use crate::{
    deferred::Deferred,
    logins::Logins,
    output::print,
    usage::{self, boolean_flag, split_list},
};

use chart_source::ChartSourceFlags;
pub(crate) use unsupported::UNSUPPORTED_FLAGS;

/// Subcommands of `weir helm`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Render the templates of a chart, and print the manifests
    Template(Deferred<TemplateArgs>),
}

/// Flags for the values of a release.
#[derive(Debug, Args)]
#[command(next_help_heading = "Values")]
struct ValueFlags {
    /// Read values from a YAML file, an http or https URL, or stdin (-). Can be repeated
    #[arg(short = 'f', long, value_name = "FILE")]
    values: Vec<String>,
    /// Set values on the command line: key1=val1,key2.inner=val2. Can be repeated
    #[arg(long, value_name = "KEY=VALUE", allow_hyphen_values = true)]
    set: Vec<String>,
    /// Set string values: key1=val1,key2=val2. Can be repeated
    #[arg(long, value_name = "KEY=VALUE", allow_hyphen_values = true)]
    set_string: Vec<String>,
    /// Set JSON values: key1={"a":1}. Can be repeated
    #[arg(long, value_name = "KEY=JSON", allow_hyphen_values = true)]
    set_json: Vec<String>,
    /// Set values from files: key1=path1,key2=path2. Can be repeated
    #[arg(long, value_name = "KEY=PATH", allow_hyphen_values = true)]
    set_file: Vec<String>,
    /// Set a literal string value, without interpreting commas and escapes. Can be repeated
    #[arg(long, value_name = "KEY=STRING", allow_hyphen_values = true)]
    set_literal: Vec<String>,
    /// Disable JSON Schema validation of the values
    #[arg(long)]
    skip_schema_validation: bool,
}

const EXAMPLES: &str = "Examples:
  # Render a chart in a directory
  weir helm template shop charts/shop -f values.yaml --set replicas=2

  # Render a chart of a registry
  weir helm template podinfo oci://ghcr.io/stefanprodan/charts/podinfo --version 6.5.0";

/// Render the templates of a chart, and print the manifests
///
/// The output is the same as of `helm template` 4.3.1, or 3.19.4 with `--helm-version 3`. CHART is a local chart directory or archive (.tgz), the URL of an archive, a chart
/// in an OCI registry (oci://HOST/PATH), or the name of a chart in the Helm repository given by --repo. Rendering is done in
/// process and without a cluster: `lookup` returns an empty result.
#[derive(Args)]
#[command(
    mut_args = boolean_flag,
    args_override_self = true,
    override_usage = "weir helm template [OPTIONS] [NAME] <CHART>",
    after_help = EXAMPLES
)]
pub(crate) struct TemplateArgs {
    /// Release name; defaults to release-name
    name: Option<String>,
    /// Chart directory, archive, URL or name
    chart: Option<String>,

    #[command(flatten)]
    values: ValueFlags,

    /// Namespace of the release
    #[arg(
        short,
        long,
        value_name = "NAME",
        default_value = "default",
        help_heading = "Release and capabilities"
    )]
    namespace: String,
    /// Template for the release name
    #[arg(long, value_name = "TEMPLATE", help_heading = "Release and capabilities")]
    name_template: Option<String>,
    /// Use the release name release-name and omit NAME
    #[arg(short, long, help_heading = "Release and capabilities")]
    generate_name: bool,
    /// Set .Release.IsUpgrade instead of .Release.IsInstall
    #[arg(long, help_heading = "Release and capabilities")]
    is_upgrade: bool,
    /// Version of Helm whose output is printed: 3 or 4
    #[arg(
        long,
        value_name = "VERSION",
        default_value = "4",
        help_heading = "Release and capabilities"
    )]
    helm_version: HelmVersion,
    /// Kubernetes version for .Capabilities.KubeVersion [default: v1.37.0, with --helm-version 3 v1.20.0]
    #[arg(long, value_name = "VERSION", help_heading = "Release and capabilities")]
    kube_version: Option<String>,
    /// Additional API versions for .Capabilities.APIVersions: group/version or group/version/Kind. Can be repeated
    #[arg(
        short,
        long,
        value_name = "VERSION",
        help_heading = "Release and capabilities"
    )]
    api_versions: Vec<String>,

    /// Include the CRDs of the chart
    #[arg(long, help_heading = "Output")]
    include_crds: bool,
    /// Leave out hooks
    #[arg(long, help_heading = "Output")]
    no_hooks: bool,
    /// Leave out test hooks
    #[arg(long, help_heading = "Output")]
    skip_tests: bool,
    /// Show only manifests rendered from this template, for example templates/service.yaml; may be a glob. Can be repeated
    #[arg(short, long, value_name = "PATH", help_heading = "Output")]
    show_only: Vec<String>,
    /// Write the manifests to files in this directory, one per template
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    output_dir: Option<PathBuf>,
    /// Add the release name to the path of --output-dir
    #[arg(long, help_heading = "Output")]
    release_name: bool,
    /// Print the rendered templates even if they are not valid YAML
    #[arg(long, help_heading = "Output")]
    debug: bool,

    // Flags of `helm template` without effect on its output.
    #[arg(long, hide = true)]
    skip_crds: bool,
    #[arg(long, hide = true)]
    create_namespace: bool,
    #[arg(long, hide = true)]
    hide_notes: bool,
    // Flags that have a supported value, the default.
    #[arg(long, hide = true)]
    validate: bool,
    #[arg(long, hide = true)]
    verify: bool,
    #[arg(
        long,
        hide = true,
        num_args = 0..=1,
        require_equals = true,
        default_value = "client",
        default_missing_value = "client"
    )]
    dry_run: String,

    #[command(flatten)]
    remote: ChartSourceFlags,
}

/// Refuses flags whose value asks for something that is not supported.
fn refuse_unsupported(args: &TemplateArgs) -> Result<()> {
    let on_server = !matches!(args.dry_run.as_str(), "" | "client" | "true");
    let given = [
        ("--validate", args.validate),
        ("--verify", args.verify),
        ("--dry-run", on_server),
    ];
    let refused = given.into_iter().filter(|(_, refused)| *refused);
    match refused
        .map(|(flag, _)| usage::refusal(flag, UNSUPPORTED_FLAGS))
        .next()
    {
        Some(refusal) => Err(anyhow!(refusal.unwrap_or_default())),
        None => Ok(()),
    }
}

pub(crate) fn run(command: &Command) -> Result<()> {
    match command {
        Command::Template(args) => template(args),
    }
}

fn template(args: &TemplateArgs) -> Result<()> {
    refuse_unsupported(args)?;
    let limits = Limits::default();
    let budget = Budget::new(limits.clone());
    let moment = engine::moment()?;
    let (name, chart) = name_and_chart(args)?;
    let fetcher = RemoteFetcher::new(Logins::default().servers());
    let read = |path: &str| files::read(path, &fetcher, &limits).map_err(Into::into);
    let namespace = non_empty(Some(&args.namespace)).unwrap_or("default");
    let options = Options {
        name_template: non_empty(args.name_template.as_ref()).map(str::to_owned),
        namespace: namespace.to_owned(),
        values: sources(args, &fetcher, &limits)?,
        is_upgrade: args.is_upgrade,
        include_crds: args.include_crds,
        no_hooks: args.no_hooks,
        skip_tests: args.skip_tests,
        skip_schema_validation: args.values.skip_schema_validation,
        show_only: args.show_only.clone(),
        helm_version: args.helm_version,
        kube_version: non_empty(args.kube_version.as_ref()).map(str::to_owned),
        api_versions: split_list(&args.api_versions)?,
        read_file: Some(&read),
        ..Options::new(name, &moment)
    };
    let chart = chart::find(chart, &args.remote, &fetcher, &limits)?;
    let rendered = helm::template(chart.tree.as_ref(), &chart.path, &options, &budget);
    chart::warn_about_skipped_links(chart.tree.as_ref());
    let rendered = match rendered {
        Err(helm::Error::NoManifest { message, output }) if args.debug => {
            print(output.as_str())?;
            bail!(message);
        }
        Err(error @ helm::Error::NoManifest { .. }) => {
            bail!("{error}\n\nUse --debug flag to render out invalid YAML")
        }
        done => done?,
    };
    for warning in &rendered.warnings {
        let _ = writeln!(std::io::stderr(), "{warning}");
    }
    match args.output_dir.as_ref().filter(|dir| !dir.as_os_str().is_empty()) {
        None => print(rendered.to_yaml()),
        Some(_) if !args.show_only.is_empty() => {
            bail!("--show-only and --output-dir are mutually exclusive")
        }
        Some(dir) if args.release_name => files::write(&dir.join(&rendered.name), &rendered, &options),
        Some(dir) => files::write(dir, &rendered, &options),
    }
}

/// Returns the release name and the chart from one or two arguments.
fn name_and_chart(args: &TemplateArgs) -> Result<(&str, &str)> {
    match (&args.name, &args.chart) {
        (None, _) => bail!("missing argument CHART: weir helm template [NAME] <CHART>"),
        (Some(chart), None) => Ok(("release-name", chart)),
        (Some(_), Some(_)) if args.generate_name => {
            bail!("cannot set --generate-name and also specify a name")
        }
        (Some(_), Some(_)) if non_empty(args.name_template.as_ref()).is_some() => {
            bail!("cannot set --name-template and also specify a name")
        }
        (Some(name), Some(chart)) => Ok((name, chart)),
    }
}

/// Returns the value of a flag; an empty one counts as not given.
fn non_empty(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}

fn sources(args: &TemplateArgs, fetcher: &RemoteFetcher, limits: &Limits) -> Result<Sources> {
    let file = |name: String| {
        let text = files::read(&name, fetcher, limits)?;
        Ok((api::redact(&name), text))
    };
    Ok(Sources {
        files: split_list(&args.values.values)?
            .into_iter()
            .map(file)
            .collect::<Result<_>>()?,
        json: args.values.set_json.clone(),
        set: args.values.set.clone(),
        string: args.values.set_string.clone(),
        file: args.values.set_file.clone(),
        literal: args.values.set_literal.clone(),
    })
}
