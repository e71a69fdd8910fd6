//! `weir helm`.

pub(crate) mod chart;
mod files;
mod refused;
mod remote;

use std::{io::Write as _, path::PathBuf};

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use helm::{Options, values::Sources};
use tree::{Budget, Limits};

use crate::{
    fetch::Fetcher,
    later::Later,
    output::print,
    usage::{boolean, list},
};

pub(crate) use refused::REFUSED;
use remote::RemoteArgs;

/// What can be done with Helm charts.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Print the manifests of a chart
    Template(Later<TemplateArgs>),
}

/// Renders the templates of a chart, and prints the manifests as YAML.
///
/// The output is that of `helm template`, version 3.19.4. The chart is a directory or an archive (.tgz) on this machine, the URL
/// of an archive, one of a registry (oci://HOST/PATH), or the name of one in the Helm repository that --repo says. No cluster is
/// asked: `lookup` finds nothing. No program is run.
#[derive(Args)]
#[command(
    mut_args = boolean,
    args_override_self = true,
    override_usage = "weir helm template [OPTIONS] [NAME] <CHART>"
)]
pub(crate) struct TemplateArgs {
    /// The name of the release; the chart, if it is the only one
    name: Option<String>,
    /// The directory, the archive, or the address of the chart
    chart: Option<String>,

    /// Read values from this file, or from an http or https URL (- is stdin)
    #[arg(short = 'f', long, value_name = "FILE", help_heading = "Values")]
    values: Vec<String>,
    /// Set values: key1=val1,key2.inner=val2
    #[arg(
        long,
        value_name = "KEY=VALUE",
        allow_hyphen_values = true,
        help_heading = "Values"
    )]
    set: Vec<String>,
    /// Set values that are text, whatever they look like
    #[arg(
        long,
        value_name = "KEY=VALUE",
        allow_hyphen_values = true,
        help_heading = "Values"
    )]
    set_string: Vec<String>,
    /// Set values in JSON: key1={"a":1}
    #[arg(
        long,
        value_name = "KEY=JSON",
        allow_hyphen_values = true,
        help_heading = "Values"
    )]
    set_json: Vec<String>,
    /// Set values to the contents of files: key1=path1
    #[arg(
        long,
        value_name = "KEY=PATH",
        allow_hyphen_values = true,
        help_heading = "Values"
    )]
    set_file: Vec<String>,
    /// Set a value to the text as it stands, commas and all
    #[arg(
        long,
        value_name = "KEY=TEXT",
        allow_hyphen_values = true,
        help_heading = "Values"
    )]
    set_literal: Vec<String>,
    /// Don't check the values against the schema of the chart
    #[arg(long, help_heading = "Values")]
    skip_schema_validation: bool,

    /// The namespace of the release
    #[arg(
        short,
        long,
        value_name = "NAME",
        default_value = "default",
        help_heading = "What templates see"
    )]
    namespace: String,
    /// Make the name of the release from this template
    #[arg(long, value_name = "TEMPLATE", help_heading = "What templates see")]
    name_template: Option<String>,
    /// Leave out NAME; the release is called "release-name"
    #[arg(short, long, help_heading = "What templates see")]
    generate_name: bool,
    /// Tell templates that this is an upgrade instead of an installation
    #[arg(long, help_heading = "What templates see")]
    is_upgrade: bool,
    /// The version of Kubernetes that templates see [default: v1.20.0]
    #[arg(long, value_name = "VERSION", help_heading = "What templates see")]
    kube_version: Option<String>,
    /// What the API server serves besides what Helm takes for granted: group/version, or group/version/Kind
    #[arg(short, long, value_name = "VERSION", help_heading = "What templates see")]
    api_versions: Vec<String>,

    /// Print the files in crds, too
    #[arg(long, help_heading = "What is printed")]
    include_crds: bool,
    /// Leave out hooks
    #[arg(long, help_heading = "What is printed")]
    no_hooks: bool,
    /// Leave out hooks that test the release
    #[arg(long, help_heading = "What is printed")]
    skip_tests: bool,
    /// Print only what comes from this template, as templates/service.yaml; may be a pattern
    #[arg(short, long, value_name = "PATH", help_heading = "What is printed")]
    show_only: Vec<String>,
    /// Write one file for each template into this directory
    #[arg(long, value_name = "DIR", help_heading = "What is printed")]
    output_dir: Option<PathBuf>,
    /// Put the files into a directory with the name of the release
    #[arg(long, requires = "output_dir", help_heading = "What is printed")]
    release_name: bool,
    /// Print what templates gave even if it is no manifest
    #[arg(long, help_heading = "What is printed")]
    debug: bool,

    #[command(flatten)]
    remote: RemoteArgs,
}

/// Does a command.
pub(crate) fn run(command: &Command) -> Result<()> {
    match command {
        Command::Template(args) => template(args),
    }
}

fn template(args: &TemplateArgs) -> Result<()> {
    let limits = Limits::default();
    let budget = Budget::new(limits.clone());
    let moment = engine::moment()?;
    let (name, chart) = name_and_chart(args)?;
    let fetcher = Fetcher::default();
    let read = |path: &str| files::read(path, &fetcher, &limits);
    let namespace = given(Some(&args.namespace)).unwrap_or("default");
    let options = Options {
        name_template: given(args.name_template.as_ref()).map(str::to_owned),
        namespace: namespace.to_owned(),
        values: sources(args, &fetcher, &limits)?,
        is_upgrade: args.is_upgrade,
        include_crds: args.include_crds,
        no_hooks: args.no_hooks,
        skip_tests: args.skip_tests,
        skip_schema_validation: args.skip_schema_validation,
        show_only: args.show_only.clone(),
        kube_version: given(args.kube_version.as_ref()).map(str::to_owned),
        api_versions: list(&args.api_versions)?,
        read_file: Some(&read),
        ..Options::new(name, &moment)
    };
    let chart = chart::find(chart, &args.remote, &fetcher, &limits)?;
    let rendered = helm::template(chart.tree.as_ref(), &chart.path, &options, &budget);
    chart::say_left_out(chart.tree.as_ref());
    let rendered = match rendered {
        Err(helm::Error::NoManifest { words, texts }) if args.debug => {
            print(texts.as_str())?;
            bail!(words);
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
            bail!(
                "--show-only chooses what is printed, and --output-dir prints nothing: leave one of them out"
            )
        }
        Some(dir) if args.release_name => files::write(&dir.join(&rendered.name), &rendered, &options),
        Some(dir) => files::write(dir, &rendered, &options),
    }
}

/// The name of the release and the chart, of one or two arguments.
fn name_and_chart(args: &TemplateArgs) -> Result<(&str, &str)> {
    match (&args.name, &args.chart) {
        (None, _) => bail!("a chart is missing: weir helm template [NAME] <CHART>"),
        (Some(chart), None) => Ok(("release-name", chart)),
        (Some(_), Some(_)) if args.generate_name => {
            bail!("cannot set --generate-name and also specify a name")
        }
        (Some(_), Some(_)) if given(args.name_template.as_ref()).is_some() => {
            bail!("cannot set --name-template and also specify a name")
        }
        (Some(name), Some(chart)) => Ok((name, chart)),
    }
}

/// The text of a flag; an empty one is as good as none.
fn given(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}

fn sources(args: &TemplateArgs, fetcher: &Fetcher, limits: &Limits) -> Result<Sources> {
    let file = |name: String| {
        let text = files::read(&name, fetcher, limits).map_err(anyhow::Error::msg)?;
        Ok((api::redact(&name), text))
    };
    Ok(Sources {
        files: list(&args.values)?.into_iter().map(file).collect::<Result<_>>()?,
        json: args.set_json.clone(),
        set: args.set.clone(),
        string: args.set_string.clone(),
        file: args.set_file.clone(),
        literal: args.set_literal.clone(),
    })
}
