//! Validation of a HelmChart: invalid and unsupported fields are refused, by name. Pure.

use std::sync::LazyLock;

use api::{Fault, Reason, source::HelmChartSpec};
use go::regexp::Regexp;

use crate::fields::{check_interval, given};

/// Names of charts in repositories, as in the original.
static NAME: LazyLock<Option<Regexp>> = LazyLock::new(|| Regexp::compile(r"^([-a-z0-9]+/?\.?)+$").ok());
const NAME_BYTES: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    HelmRepository,
    GitRepository,
    Bucket,
}

pub fn origin(spec: &HelmChartSpec) -> Result<Origin, Fault> {
    match spec.source_ref.kind.as_str() {
        "HelmRepository" => Ok(Origin::HelmRepository),
        "GitRepository" => Ok(Origin::GitRepository),
        "Bucket" => Ok(Origin::Bucket),
        kind => {
            let message = format!("failed to get source: unsupported source kind '{kind}'");
            Err(Fault::stall(Reason::UnsupportedSourceKind, message))
        }
    }
}

pub fn validate(spec: &HelmChartSpec) -> Result<(), Fault> {
    if spec.access_from.is_some() {
        return Err(Fault::unsupported("spec.accessFrom", "access control"));
    }
    if let Some(other) =
        given(&spec.reconcile_strategy).filter(|name| !matches!(*name, "ChartVersion" | "Revision"))
    {
        return Err(Fault::unsupported(
            "spec.reconcileStrategy",
            &format!("'{other}'"),
        ));
    }
    let verify = spec.verify.as_ref();
    if let Some(verify) = verify.filter(|verify| !matches!(verify.provider.as_str(), "cosign" | "notation")) {
        let value = format!("'{}'", verify.provider);
        return Err(Fault::unsupported("spec.verify.provider", &value));
    }
    check_interval(spec.interval.as_duration())?;
    let origin = origin(spec)?;
    if verify.is_some() && origin != Origin::HelmRepository {
        let message = "spec.verify: only charts of a HelmRepository of the type oci can be verified";
        return Err(Fault::stall(Reason::InvalidSpec, message));
    }
    if spec.chart.len() > NAME_BYTES {
        let why = format!("the name has more than {NAME_BYTES} bytes");
        return Err(invalid_reference(&why));
    }
    match origin {
        Origin::HelmRepository => name(&spec.chart),
        Origin::GitRepository | Origin::Bucket => path(&spec.chart),
    }
}

#[must_use]
pub fn invalid_reference(why: &str) -> Fault {
    Fault::stall(
        Reason::InvalidChartReference,
        format!("invalid chart reference: {why}"),
    )
}

fn name(chart: &str) -> Result<(), Fault> {
    let is_name = NAME.as_ref().is_some_and(|pattern| pattern.is_match(chart));
    let refused = |why: &str| Err(invalid_reference(why));
    match chart {
        "" => refused("no name set for remote chart reference"),
        _ if is_name => Ok(()),
        _ => refused(&format!(
            "invalid chart name '{chart}': a valid name must be lower case letters and numbers and MAY be separated with dashes (-), \
             slashes (/) or periods (.)"
        )),
    }
}

fn path(chart: &str) -> Result<(), Fault> {
    match chart {
        "" => Err(invalid_reference("no path set for local chart reference")),
        _ if chart.starts_with('/') => Err(invalid_reference(
            "local chart reference path is expected to be relative",
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_names_and_paths_are_refused() {
        for (kind, chart, text) in [
            ("HelmRepository", "", "no name set"),
            ("HelmRepository", "Shop", "invalid chart name 'Shop'"),
            ("HelmRepository", "../x", "invalid chart name '../x'"),
            ("GitRepository", "", "no path set"),
            ("Bucket", "/charts/x", "is expected to be relative"),
            ("HelmRelease", "x", "unsupported source kind 'HelmRelease'"),
        ] {
            let spec = HelmChartSpec {
                chart: chart.to_owned(),
                interval: api::GoDuration::from_secs(60),
                source_ref: api::source::HelmChartSourceReference {
                    kind: kind.to_owned(),
                    ..Default::default()
                },
                ..HelmChartSpec::default()
            };
            let fault = validate(&spec).unwrap_err();
            assert_eq!(fault.class, api::Class::Stall, "{fault}");
            assert!(fault.message.contains(text), "{fault}");
        }
    }
}
