//! `weir version`: prints the versions of the program, the controllers and the cluster.

use anyhow::Result;
use clap::{Args, ValueEnum};
use objects::meta;
use yaml::{Map, Value};

use super::{found, found::Installation};
use crate::{
    commands::flux::{Flux, FluxFlags},
    output,
    terminal::Terminal,
    usage::boolean_flag,
};

/// Print the versions of weir, the controllers and Kubernetes
///
/// The versions of the controllers are the tags of their images. Without a kubeconfig, it prints the version of weir alone.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct VersionArgs {
    /// Print the version of weir alone; no cluster is needed
    #[arg(long)]
    client: bool,
    /// Output format; defaults to lines of name and version
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
    #[command(flatten)]
    flux: FluxFlags,
}

const EXAMPLES: &str = "\
Examples:
  weir version --client
  weir version -o json";

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Json,
    Yaml,
}

pub(crate) fn run(args: &VersionArgs) -> Result<()> {
    let mut versions = Map::new();
    versions.insert("weir", install::VERSION);
    let opened = (!args.client).then(|| Flux::open(&args.flux));
    match opened {
        None => {}
        Some(Ok(flux)) => flux.block_on(add_cluster(&flux, &mut versions))?,
        Some(Err(error)) => Terminal::new(false, false).warning(&format!("no cluster is asked: {error:#}")),
    }
    output::print(&print(versions, args.output))
}

async fn add_cluster(flux: &Flux, versions: &mut Map) -> Result<()> {
    versions.insert("kubernetes", flux.cluster.version().await?);
    if let Some(found) = Installation::find(&flux.cluster).await? {
        versions.insert("distribution", found.distribution());
    }
    for deployment in found::deployments(&flux.cluster, &flux.namespace).await? {
        let name = meta::text(&deployment, "name").unwrap_or_default();
        if let Some(image) = found::images(&deployment).first() {
            versions.insert(name, tag(image));
        }
    }
    Ok(())
}

/// Returns the tag of an image, or its digest if it has no tag.
fn tag(image: &str) -> &str {
    let (name, digest) = image.split_once('@').unwrap_or((image, ""));
    let last = name.rsplit('/').next().unwrap_or(name);
    match last.split_once(':') {
        Some((_, tag)) => tag,
        None if !digest.is_empty() => digest,
        None => "latest",
    }
}

fn print(versions: Map, format: Option<Format>) -> String {
    match format {
        Some(Format::Json) => format!("{}\n", yaml::print::json(&Value::Map(versions))),
        Some(Format::Yaml) => yaml::print::goyaml(&Value::Map(versions)),
        None => versions
            .iter()
            .filter_map(|(name, version)| Some(format!("{name}: {}\n", version.as_str()?)))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_is_a_digest_if_the_image_has_no_tag() {
        for (image, expected) in [
            ("weir/source-controller:v0.1.0", "v0.1.0"),
            ("registry:5000/weir/source-controller:v1@sha256:ab", "v1"),
            ("registry:5000/weir/source-controller@sha256:ab", "sha256:ab"),
            ("registry:5000/weir/source-controller", "latest"),
        ] {
            assert_eq!(tag(image), expected, "{image}");
        }
    }
}
