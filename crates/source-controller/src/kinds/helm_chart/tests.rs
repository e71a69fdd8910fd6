//! Tests of the pure parts, in tables.

use api::{
    Class, Fault, LocalObjectReference,
    source::{AccessFrom, HelmChartSourceReference, OCIRepositoryVerification, OIDCIdentityMatch},
};

use super::*;
use crate::kinds::tests::{Field, check_schema, field};

fn chart(change: impl FnOnce(&mut HelmChartSpec)) -> HelmChartSpec {
    let mut spec = HelmChartSpec {
        chart: "shop".to_owned(),
        interval: api::GoDuration::from_secs(60),
        source_ref: HelmChartSourceReference {
            kind: "HelmRepository".to_owned(),
            name: "charts".to_owned(),
            ..HelmChartSourceReference::default()
        },
        ..HelmChartSpec::default()
    };
    change(&mut spec);
    spec
}

fn verified(change: impl FnOnce(&mut OCIRepositoryVerification)) -> Option<OCIRepositoryVerification> {
    let mut verify = OCIRepositoryVerification {
        provider: "cosign".to_owned(),
        ..OCIRepositoryVerification::default()
    };
    change(&mut verify);
    Some(verify)
}

fn named() -> Option<LocalObjectReference> {
    Some(LocalObjectReference { name: "s".to_owned() })
}

/// Every property of the schema, with a value, and true if it is obeyed.
const FIELDS: &[Field<HelmChartSpec>] = &[
    field("chart", |spec| spec.chart = "other".to_owned(), true),
    field("version", |spec| spec.version = "1.x".to_owned(), true),
    field(
        "sourceRef.apiVersion",
        |spec| spec.source_ref.api_version = Some("source.toolkit.fluxcd.io/v1".to_owned()),
        true,
    ),
    field(
        "sourceRef.kind",
        |spec| spec.source_ref.kind = "Bucket".to_owned(),
        true,
    ),
    field(
        "sourceRef.name",
        |spec| spec.source_ref.name = "x".to_owned(),
        true,
    ),
    field(
        "interval",
        |spec| spec.interval = api::GoDuration::from_secs(5),
        true,
    ),
    field(
        "reconcileStrategy",
        |spec| spec.reconcile_strategy = Some("Revision".to_owned()),
        true,
    ),
    field(
        "valuesFiles",
        |spec| spec.values_files = vec!["a".to_owned()],
        true,
    ),
    field("valuesFile", |spec| spec.values_file = Some("a".to_owned()), true),
    field(
        "ignoreMissingValuesFiles",
        |spec| spec.ignore_missing_values_files = true,
        true,
    ),
    field("suspend", |spec| spec.suspend = true, true),
    field(
        "verify.provider",
        |spec| spec.verify = verified(|verify| verify.provider = "notation".to_owned()),
        true,
    ),
    field(
        "verify.secretRef.name",
        |spec| spec.verify = verified(|verify| verify.secret_ref = named()),
        true,
    ),
    field(
        "verify.matchOIDCIdentity[].issuer",
        |spec| {
            spec.verify = verified(|verify| verify.match_oidc_identity = vec![OIDCIdentityMatch::default()]);
        },
        true,
    ),
    field(
        "verify.matchOIDCIdentity[].subject",
        |spec| {
            spec.verify = verified(|verify| verify.match_oidc_identity = vec![OIDCIdentityMatch::default()]);
        },
        true,
    ),
    field(
        "verify.trustedRootSecretRef.name",
        |spec| spec.verify = verified(|verify| verify.trusted_root_secret_ref = named()),
        true,
    ),
    field(
        "accessFrom.namespaceSelectors[].matchLabels",
        |spec| spec.access_from = Some(AccessFrom::default()),
        false,
    ),
];

#[test]
fn every_property_of_the_schema_is_obeyed_or_refused() {
    check_schema::<HelmChart, _>(FIELDS, |set| spec::validate(&chart(set)));
}

#[test]
fn list_of_the_charts_own_values_counts_as_none() {
    for (files, last, expected) in [
        (vec!["values.yaml"], None, vec![]),
        (vec!["values.yaml", "a.yaml"], None, vec!["values.yaml", "a.yaml"]),
        (vec!["a.yaml"], Some("b.yaml"), vec!["a.yaml", "b.yaml"]),
        (vec![], Some(""), vec![]),
    ] {
        let spec = chart(|spec| {
            spec.values_files = files.into_iter().map(str::to_owned).collect();
            spec.values_file = last.map(str::to_owned);
        });
        assert_eq!(spec.merged_files(), expected);
    }
}

#[test]
fn summary_has_the_words_of_the_original() {
    let mut chart = ResolvedChart {
        name: "shop".to_owned(),
        version: "1.2.3".to_owned(),
        source_revision: None,
        source: None,
        packaged: false,
        values_files: Vec::new(),
        ignores_missing: false,
        location: ChartLocation::Unknown,
    };
    assert_eq!(chart.summary(), "pulled 'shop' chart with version '1.2.3'");
    chart.packaged = true;
    chart.values_files = vec!["a.yaml".to_owned(), "b.yaml".to_owned()];
    let expected = "packaged 'shop' chart with version '1.2.3' and merged values files [a.yaml b.yaml]";
    assert_eq!(chart.summary(), expected);
}

#[test]
fn failures_stall_if_only_a_change_helps() {
    for (reason, stalls, expected) in [
        (Reason::InvalidChartReference, true, &[types::FETCH_FAILED][..]),
        (Reason::ChartPullError, false, &[types::FETCH_FAILED]),
        (Reason::ValuesFilesError, true, &[types::BUILD_FAILED]),
        (Reason::MetadataPatchError, true, &[types::BUILD_FAILED]),
        (Reason::DependencyBuildError, false, &[types::BUILD_FAILED]),
        (Reason::ChartPackageError, false, &[types::BUILD_FAILED]),
        (
            Reason::ChartVerificationError,
            false,
            &[types::BUILD_FAILED, types::SOURCE_VERIFIED],
        ),
    ] {
        let fault = failure::build(reason, "no");
        assert_eq!(fault.class == Class::Stall, stalls, "{fault}");
        assert!(fault.message.ends_with(": no"), "{fault}");
        assert_eq!(failure::conditions(reason), expected, "{reason}");
    }
    let refused = Fault::retry(Reason::AuthenticationFailed, "no");
    let same = failure::reworded(Reason::ChartPullError, "x: ", refused.clone());
    assert_eq!(same, refused);
    let unread = Fault::retry(Reason::ReadOperationFailed, "no");
    let pulled = failure::reworded(Reason::ChartPullError, "x: ", unread);
    assert_eq!(
        (pulled.reason, pulled.message.as_str()),
        (Reason::ChartPullError, "chart pull error: x: no")
    );
}
