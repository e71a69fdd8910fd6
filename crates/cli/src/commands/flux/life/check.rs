//! `weir check`: checks the cluster and the controllers.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use objects::meta;
use versions::Version;
use yaml::Value;

use super::{components::readiness, found, found::Installation};
use crate::{
    commands::flux::{Flux, FluxFlags},
    flags::duration,
    usage::{boolean_flag, split_list},
};

/// Check the cluster and the controllers
///
/// Checks the version of Kubernetes, the Deployments of the controllers and their definitions (CRDs). Fails if one of them isn't as it should be.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct CheckArgs {
    /// Check the version of Kubernetes alone, before an installation
    #[arg(long)]
    pre: bool,
    /// Controllers that have to be installed, comma-separated
    #[arg(long, value_name = "NAMES")]
    components: Vec<String>,
    /// Controllers that have to be installed besides --components, comma-separated
    #[arg(long, value_name = "NAMES")]
    components_extra: Vec<String>,
    /// Accepted for compatibility with flux; weir reads each Deployment once
    #[arg(long = "poll-interval", value_name = "DURATION", hide = true, value_parser = duration)]
    _poll_interval: Option<Duration>,
    #[command(flatten)]
    flux: FluxFlags,
}

const EXAMPLES: &str = "\
Examples:
  # Before the installation
  weir check --pre

  # Afterwards
  weir check

  # Fail if a controller is missing
  weir check --components=source-controller,kustomize-controller";

/// Lowest patch of each minor version of Kubernetes; newer minor versions are accepted.
const MINIMUMS: &[(u64, u64)] = &[(33, 0), (34, 0), (35, 2), (36, 1)];

pub(crate) fn run(args: &CheckArgs) -> Result<()> {
    let wanted = [split_list(&args.components)?, split_list(&args.components_extra)?].concat();
    let flux = Flux::open(&args.flux)?;
    let is_good = flux.block_on(async {
        flux.action("checking prerequisites");
        let mut is_good = kubernetes(&flux).await?;
        if args.pre {
            if is_good {
                flux.success("prerequisites checks passed");
            }
            return Ok::<bool, anyhow::Error>(is_good);
        }
        distribution(&flux).await?;
        flux.action("checking controllers");
        is_good &= controllers(&flux, &wanted).await?;
        flux.action("checking crds");
        is_good &= definitions(&flux).await?;
        if is_good {
            flux.success("all checks passed");
        }
        Ok(is_good)
    })?;
    if !is_good {
        bail!("some checks failed");
    }
    Ok(())
}

async fn kubernetes(flux: &Flux) -> Result<bool> {
    let text = flux.cluster.version().await?;
    let shown = text.trim_start_matches('v');
    let Ok(version) = Version::parse(&text) else {
        flux.failure(&format!("Kubernetes version {shown} can't be parsed"));
        return Ok(false);
    };
    let minimum = minimum(&version);
    let is_enough = is_enough(&version);
    match is_enough {
        true => flux.success(&format!("Kubernetes {shown} >={minimum}-0")),
        false => flux.failure(&format!(
            "Kubernetes version {shown} does not match >={minimum}-0"
        )),
    }
    Ok(is_enough)
}

/// Returns the lowest accepted version for a minor version.
fn minimum(version: &Version) -> String {
    let (minor, patch) = match MINIMUMS {
        [first, ..] if version.major == 1 => *MINIMUMS
            .iter()
            .find(|(minor, _)| *minor == version.minor)
            .unwrap_or(first),
        [first, ..] => *first,
        [] => (0, 0),
    };
    format!("1.{minor}.{patch}")
}

fn is_enough(version: &Version) -> bool {
    if version.major != 1 {
        return version.major > 1;
    }
    match MINIMUMS.iter().find(|(minor, _)| *minor == version.minor) {
        Some((_, patch)) => version.patch >= *patch,
        None => MINIMUMS.iter().all(|(minor, _)| version.minor > *minor),
    }
}

async fn distribution(flux: &Flux) -> Result<()> {
    flux.action("checking version in cluster");
    if let Some(found) = Installation::find(&flux.cluster).await? {
        flux.success(&format!("distribution: {}", found.distribution()));
        flux.success(&format!("bootstrapped: {}", found.is_bootstrapped));
    }
    Ok(())
}

/// Checks the Deployments that there are, and that the wanted ones are among them.
async fn controllers(flux: &Flux, wanted: &[String]) -> Result<bool> {
    let deployments = found::deployments(&flux.cluster, &flux.namespace).await?;
    if deployments.is_empty() {
        flux.failure(&format!(
            "no controllers found in the '{}' namespace: install them by weir install",
            flux.namespace
        ));
    }
    let mut is_good = !deployments.is_empty();
    for name in missing(wanted, &deployments) {
        is_good = false;
        flux.failure(&format!(
            "{name}: not installed in the '{}' namespace",
            flux.namespace
        ));
    }
    for deployment in &deployments {
        let (name, problem) = readiness(deployment);
        match problem {
            None => flux.success(&format!("{name}: deployment ready")),
            Some(message) => {
                is_good = false;
                flux.failure(&format!("{name}: {message}"));
            }
        }
        for image in found::images(deployment) {
            flux.action(image);
        }
    }
    Ok(is_good)
}

/// Returns the wanted controllers without a Deployment.
fn missing<'a>(wanted: &'a [String], deployments: &[Value]) -> Vec<&'a str> {
    let is_there = |name: &str| {
        let mut names = deployments.iter().filter_map(|one| meta::text(one, "name"));
        names.any(|own| own == name)
    };
    let wanted = wanted.iter().map(String::as_str);
    wanted.filter(|name| !is_there(name)).collect()
}

async fn definitions(flux: &Flux) -> Result<bool> {
    let definitions = found::definitions(&flux.cluster).await?;
    if definitions.is_empty() {
        flux.failure("no crds found with the label app.kubernetes.io/part-of=flux");
    }
    let mut is_good = !definitions.is_empty();
    for definition in &definitions {
        let name = meta::text(definition, "name").unwrap_or_default();
        let stored = definition
            .pointer(&["status", "storedVersions"])
            .and_then(Value::as_seq);
        match stored.and_then(|versions| versions.last()?.as_str()) {
            Some(version) => flux.success(&format!("{name}/{version}")),
            None => {
                is_good = false;
                flux.failure(&format!("no stored versions for {name}"));
            }
        }
    }
    Ok(is_good)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn wanted_controllers_need_a_deployment() {
        let deployments = [Value::from_json(
            json!({"metadata": {"name": "source-controller"}}),
        )];
        let wanted = ["source-controller", "helm-controller"].map(str::to_owned);
        assert_eq!(missing(&wanted, &deployments), ["helm-controller"]);
        assert!(missing(&[], &deployments).is_empty());
    }

    #[test]
    fn each_minor_version_has_a_lowest_patch() {
        for (text, expected) in [
            ("v1.32.9", (false, "1.33.0")),
            ("v1.33.0", (true, "1.33.0")),
            ("v1.35.1", (false, "1.35.2")),
            ("v1.35.4+k3s1", (true, "1.35.2")),
            ("v1.36.0-gke.7", (false, "1.36.1")),
            ("v1.36.1-gke.7", (true, "1.36.1")),
            ("v1.40.0", (true, "1.33.0")),
            ("v2.0.0", (true, "1.33.0")),
            ("v0.9.0", (false, "1.33.0")),
        ] {
            let version = Version::parse(text).unwrap();
            assert_eq!(
                (is_enough(&version), minimum(&version).as_str()),
                expected,
                "{text}"
            );
        }
    }
}
