//! Validation of a HelmChart: invalid and unsupported fields are refused, by name. Pure.

use std::sync::LazyLock;

use api::{Fault, Reason, source::HelmChartSpec};
use go::regexp::Regexp;

use super::failure;
use crate::source_kind::{check_interval, given};

/// Names of charts in repositories, as in the original.
static NAME: LazyLock<Option<Regexp>> = LazyLock::new(|| Regexp::compile(r"^([-a-z0-9]+/?\.?)+$").ok());
const NAME_BYTES: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    HelmRepository,
    GitRepository,
    Bucket,
}

pub(super) fn origin(spec: &HelmChartSpec) -> Result<Origin, Fault> {
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

pub(super) fn validate(spec: &HelmChartSpec) -> Result<(), Fault> {
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
        return Err(failure::build(Reason::InvalidChartReference, &why));
    }
    match origin {
        Origin::HelmRepository => name(&spec.chart),
        Origin::GitRepository | Origin::Bucket => path(&spec.chart),
    }
}

fn name(chart: &str) -> Result<(), Fault> {
    let is_name = NAME.as_ref().is_some_and(|pattern| pattern.is_match(chart));
    let refused = |why: &str| Err(failure::build(Reason::InvalidChartReference, why));
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
        "" => Err(failure::build(
            Reason::InvalidChartReference,
            "no path set for local chart reference",
        )),
        _ if chart.starts_with('/') => Err(failure::build(
            Reason::InvalidChartReference,
            "local chart reference path is expected to be relative",
        )),
        _ => Ok(()),
    }
}

/// Returns the build metadata that is appended to the version of a chart: the revision of a source other than a repository, if the object
/// asks for it, with digits that tell apart artifacts of that revision, and the generation of the object, if there are values to merge.
pub(super) fn build_metadata(
    spec: &HelmChartSpec,
    (revision, digest): (Option<&str>, Option<&str>),
    generation: Option<i64>,
) -> Option<String> {
    let follows = spec.reconcile_strategy.as_deref() == Some("Revision");
    let revision = revision.filter(|_| follows).map(short);
    let generation = (!spec.merged_files().is_empty()).then(|| generation.unwrap_or_default().to_string());
    let digest = digest.filter(|_| revision.is_some()).map(str::to_owned);
    let parts: Vec<String> = revision.into_iter().chain(digest).chain(generation).collect();
    (!parts.is_empty()).then(|| parts.join("."))
}

/// Returns the first twelve digits of the hash of a revision: the value of a label has 63 characters.
fn short(revision: &str) -> String {
    let hash = revision.rsplit([':', '/']).next().unwrap_or(revision);
    hash.chars().take(12).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_revision_and_generation() {
        let spec = |strategy: &str, files: &[&str]| HelmChartSpec {
            reconcile_strategy: Some(strategy.to_owned()),
            values_files: files.iter().map(|file| (*file).to_owned()).collect(),
            ..HelmChartSpec::default()
        };
        let revision = Some("main@sha1:0123456789abcdef0123456789abcdef01234567");
        for (spec, revision, expected) in [
            (spec("ChartVersion", &[]), revision, None),
            (spec("Revision", &[]), revision, Some("0123456789ab")),
            (spec("Revision", &["a.yaml"]), revision, Some("0123456789ab.7")),
            (spec("ChartVersion", &["a.yaml"]), revision, Some("7")),
            (spec("Revision", &["values.yaml"]), None, None),
            (
                spec("Revision", &[]),
                Some("sha256:fedcba9876543210"),
                Some("fedcba987654"),
            ),
            (spec("Revision", &[]), Some("main/abc"), Some("abc")),
        ] {
            let found = build_metadata(&spec, (revision, None), Some(7));
            assert_eq!(found.as_deref(), expected, "{spec:?}");
        }
        for (strategy, expected) in [
            ("Revision", Some("0123456789ab.dd.7")),
            ("ChartVersion", Some("7")),
        ] {
            let found = build_metadata(&spec(strategy, &["a.yaml"]), (revision, Some("dd")), Some(7));
            assert_eq!(found.as_deref(), expected);
        }
    }

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
