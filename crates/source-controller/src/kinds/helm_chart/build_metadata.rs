//! Build metadata of the versions of packaged charts. Pure.

use api::source::HelmChartSpec;

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
}
