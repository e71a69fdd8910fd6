//! `weir oci`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use clap::{Args, Subcommand, ValueEnum};
use git::Checkout;
use net::AddressPolicy;
use oci::{Artifact, Client, Digest, Limits, Reference, Registry, Wanted};
use results::GitInfo;
use tokio::runtime::Runtime;
use tree::TreePath;

use crate::{
    archive,
    deferred::Deferred,
    flags::{TerminalFlags, duration, path::existing_dir},
    logins::{Logins, RegistryLoginFlags},
    output,
    session::{commit_info, project_dir},
    usage::boolean_flag,
};

/// Annotation with the Git commit of the pushed project, which projects that include it read.
const GIT_INFO: &str = "io.kluctl.image.git_info";

/// Subcommands of `weir oci`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Push a project to an OCI registry
    Push(Deferred<PushArgs>),
}

const EXAMPLES: &str = "Examples:
  # Push the project in the current directory
  weir oci push --url oci://ghcr.io/org/project:v1

  # Print its digest
  weir oci push --url oci://ghcr.io/org/project:v1 --output json";

/// Push a project to an OCI registry
///
/// Packs the project directory without .git and the files that .gitignore excludes, and pushes it as an OCI artifact, which other
/// projects can include with `oci: {url: ...}`. The same files of the same commit always have the same digest.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct PushArgs {
    /// URL of the artifact, such as oci://ghcr.io/org/project:v1; the default tag is latest
    #[arg(long, value_name = "URL")]
    url: String,
    /// Project directory; defaults to the current directory
    #[arg(long, value_name = "DIR", value_parser = existing_dir)]
    project_dir: Option<PathBuf>,
    /// Add an annotation to the artifact. Can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    annotation: Vec<String>,
    /// Print URL, repository, tag and digest of the artifact in this format, instead of messages
    #[arg(long, value_name = "FORMAT")]
    output: Option<PushOutput>,
    /// Timeout for the whole command
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    logins: RegistryLoginFlags,
    #[command(flatten)]
    terminal: TerminalFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PushOutput {
    Json,
    Yaml,
}

pub(crate) fn run(command: &Command) -> Result<()> {
    match command {
        Command::Push(args) => push(args),
    }
}

fn push(args: &PushArgs) -> Result<()> {
    let terminal = args.terminal.terminal();
    ensure!(
        args.url.starts_with("oci://"),
        "URL must be in format 'oci://<domain>/<org>/<repo>'"
    );
    let reference = Reference::parse(&args.url)?;
    let Wanted::Tag(tag) = reference.wanted() else {
        bail!("{}: an artifact is pushed to a tag, not to a digest", args.url);
    };
    let dir = project_dir(args.project_dir.as_deref())?;
    let checkout = Checkout::around(&dir)?;
    let annotations = annotations(&args.annotation, &dir, checkout.as_ref())?;
    let logins = Logins::registries(&args.logins)?;
    let name = format!("{}/{}", reference.host(), reference.repository());
    let step = match args.output {
        None => Some(terminal.start(format!("Pushing artifact to {name}:{tag}"))),
        Some(_) => None,
    };
    // Blocks while it asks a registry on a loopback address for plain HTTP.
    let access = logins.access(&args.url)?;
    let work = async {
        let files = dir.clone();
        let limit = usize::try_from(Limits::default().archive_bytes)?;
        let packed = tokio::task::spawn_blocking(move || archive::pack(&files, limit)).await??;
        if let Some(warning) = packed.warning {
            terminal.warning(&warning);
        }
        let client = Client::new(access, Limits::default(), AddressPolicy::command_line())?;
        let artifact = Artifact::new(packed.tarball.into(), annotations)?;
        let pushed = Registry::new(&client, reference.clone()).push(&artifact).await;
        pushed.map_err(|error| anyhow!(logins.flags.explain_oci(&args.url, &error)))
    };
    let digest = timed(args.timeout, work).context("pushing artifact failed")?;
    if let Some(step) = step {
        step.done();
        terminal.success(&format!("Artifact successfully pushed to {name}@{digest}"));
    }
    match args.output {
        Some(format) => output::print(&described(format, &name, &tag, &digest)?),
        None => Ok(()),
    }
}

fn timed<T>(timeout: Duration, work: impl Future<Output = Result<T>>) -> Result<T> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = Runtime::new().context("start the async runtime")?;
    let ended = runtime.block_on(async { tokio::time::timeout(timeout, work).await });
    // Packing may still be running.
    runtime.shutdown_background();
    ended.map_err(|_| anyhow!("context deadline exceeded: it took longer than --timeout {timeout:?}"))?
}

/// Returns the annotations of flags, and the project's commit. Flags take precedence over it, except for
/// the annotation that including projects read.
fn annotations(
    flags: &[String],
    dir: &Path,
    checkout: Option<&Checkout>,
) -> Result<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    let info = checkout.map(|checkout| of_checkout(checkout, dir)).transpose()?;
    if let Some((info, checkout)) = info.as_ref().zip(checkout) {
        let of_commit = [
            ("org.opencontainers.image.created", checkout.committed.as_deref()),
            ("org.opencontainers.image.revision", checkout.commit.as_deref()),
            (
                "org.opencontainers.image.source",
                Some(info.url.as_str()).filter(|url| !url.is_empty()),
            ),
        ];
        let known = of_commit
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?.to_owned())));
        all.extend(known);
    }
    for annotation in flags {
        let (key, value) = annotation
            .split_once('=')
            .with_context(|| format!("invalid annotation {annotation}, must be in the format key=value"))?;
        all.insert(key.to_owned(), value.to_owned());
    }
    if let Some(info) = info {
        all.insert(GIT_INFO.to_owned(), yaml::print::json(&info.to_value()));
    }
    Ok(all)
}

fn of_checkout(checkout: &Checkout, dir: &Path) -> Result<GitInfo> {
    Ok(commit_info(checkout, &path_in(&checkout.root, dir)?))
}

/// Returns the path of a project in its checkout.
fn path_in(root: &Path, dir: &Path) -> Result<TreePath> {
    let inside = dir.strip_prefix(root.canonicalize()?);
    let inside = inside.with_context(|| format!("{} is not inside of {}", dir.display(), root.display()))?;
    Ok(TreePath::parse(&inside.to_string_lossy())?)
}

fn described(format: PushOutput, name: &str, tag: &str, digest: &Digest) -> Result<String> {
    let fields = [
        ("url", format!("oci://{name}@{digest}")),
        ("repository", name.to_owned()),
        ("tag", tag.to_owned()),
        ("digest", digest.to_string()),
    ];
    let fields = yaml::Map::from_iter(fields.map(|(key, value)| (key.to_owned(), yaml::Value::from(value))));
    let fields = yaml::Value::Map(fields);
    Ok(match format {
        PushOutput::Json => serde_json::to_string_pretty(&fields)? + "\n",
        PushOutput::Yaml => yaml::print::goyaml(&fields),
    })
}
