//! Tests of the pure parts, in tables.

use api::{
    Class, LocalObjectReference, Reason,
    source::{AccessFrom, Bucket, BucketSpec, BucketSts},
};

use super::{Buckets, spec::validate};
use crate::kinds::tests::{Field, check_schema, field};
use crate::source_kind::{SecretRole, SourceObject as _};

pub(super) fn spec(change: impl FnOnce(&mut BucketSpec)) -> BucketSpec {
    let mut spec = BucketSpec {
        bucket_name: "shop".to_owned(),
        endpoint: "minio.test:9000".to_owned(),
        interval: api::GoDuration::from_secs(60),
        ..BucketSpec::default()
    };
    change(&mut spec);
    spec
}

pub(super) fn named(name: &str) -> Option<LocalObjectReference> {
    Some(LocalObjectReference {
        name: name.to_owned(),
    })
}

pub(super) fn ldap() -> Option<BucketSts> {
    Some(BucketSts {
        provider: "ldap".to_owned(),
        endpoint: "https://minio.test:9000".to_owned(),
        secret_ref: named("ldap"),
        cert_secret_ref: named("ldap-ca"),
    })
}

/// Every property of the schema, with a value, and true if it is obeyed.
const FIELDS: &[Field<BucketSpec>] = &[
    field("provider", |spec| spec.provider = Some("aws".to_owned()), true),
    field("bucketName", |spec| spec.bucket_name = "other".to_owned(), true),
    field("endpoint", |spec| spec.endpoint = "other".to_owned(), true),
    field("sts.provider", |spec| spec.sts = ldap(), true),
    field("sts.endpoint", |spec| spec.sts = ldap(), true),
    field("sts.secretRef.name", |spec| spec.sts = ldap(), true),
    field("sts.certSecretRef.name", |spec| spec.sts = ldap(), true),
    field("insecure", |spec| spec.insecure = true, true),
    field("region", |spec| spec.region = Some("eu-west-1".to_owned()), true),
    field("prefix", |spec| spec.prefix = Some("deploy/".to_owned()), true),
    field("secretRef.name", |spec| spec.secret_ref = named("s"), true),
    field(
        "serviceAccountName",
        |spec| {
            spec.provider = Some("aws".to_owned());
            spec.service_account_name = Some("sa".to_owned());
        },
        true,
    ),
    field(
        "certSecretRef.name",
        |spec| spec.cert_secret_ref = named("s"),
        true,
    ),
    field(
        "proxySecretRef.name",
        |spec| spec.proxy_secret_ref = named("s"),
        true,
    ),
    field(
        "interval",
        |spec| spec.interval = api::GoDuration::from_secs(1),
        true,
    ),
    field(
        "timeout",
        |spec| spec.timeout = Some(api::GoDuration::from_secs(1)),
        true,
    ),
    field("ignore", |spec| spec.ignore = Some("*.md".to_owned()), true),
    field("suspend", |spec| spec.suspend = true, true),
    field(
        "accessFrom.namespaceSelectors[].matchLabels",
        |spec| spec.access_from = Some(AccessFrom::default()),
        false,
    ),
];

#[test]
fn every_property_of_the_schema_is_obeyed_or_refused() {
    check_schema::<Bucket, _>(FIELDS, |set| validate(&spec(set)));
}

#[test]
fn specs_that_cannot_work_stall() {
    let sts = |provider: &str, endpoint: &str| {
        Some(BucketSts {
            provider: provider.to_owned(),
            endpoint: endpoint.to_owned(),
            ..BucketSts::default()
        })
    };
    let with_sts = |provider: &str, sts| {
        spec(|spec| {
            spec.provider = Some(provider.to_owned());
            spec.sts = sts;
        })
    };
    let named = |name: &str| spec(|spec| spec.bucket_name = name.to_owned());
    for (spec, reason, expected) in [
        (
            with_sts("generic", sts("aws", "https://sts.amazonaws.com")),
            Reason::InvalidSTSConfiguration,
            "STS provider 'aws' is not supported for 'generic' bucket provider",
        ),
        (
            with_sts("gcp", sts("ldap", "https://h")),
            Reason::InvalidSTSConfiguration,
            "STS provider 'ldap' is not supported for 'gcp' bucket provider",
        ),
        (
            with_sts("generic", sts("ldap", "something\u{7f}")),
            Reason::URLInvalid,
            "failed to parse STS endpoint 'something",
        ),
        (
            with_sts("generic", sts("ldap", "https://u:canary@h")),
            Reason::URLInvalid,
            "it must not have credentials",
        ),
        (
            with_sts("aws", sts("aws", "https://evil.test")),
            Reason::URLInvalid,
            "to token services of AWS only",
        ),
        (named(""), Reason::InvalidSpec, "spec.bucketName: "),
        (named(".."), Reason::InvalidSpec, "spec.bucketName: "),
        (named("a/b"), Reason::InvalidSpec, "spec.bucketName: "),
        (
            with_sts("oracle", None),
            Reason::UnsupportedField,
            "spec.provider: 'oracle'",
        ),
    ] {
        let fault = validate(&spec).unwrap_err();
        assert_eq!((fault.class, fault.reason), (Class::Stall, reason), "{fault}");
        assert!(
            fault.message.contains(expected) && !fault.message.contains("canary"),
            "{fault}"
        );
    }
}

#[test]
fn secrets_have_their_roles() {
    let spec = spec(|spec| {
        spec.secret_ref = named("a");
        spec.cert_secret_ref = named("b");
        spec.proxy_secret_ref = named("c");
        spec.sts = ldap();
    });
    let object = Bucket::new("shop", spec);
    assert_eq!(
        Buckets::secrets(&object),
        [
            (SecretRole::Credentials, "a"),
            (SecretRole::Certificates, "b"),
            (SecretRole::Proxy, "c"),
            (SecretRole::TokenService, "ldap"),
            (SecretRole::TokenServiceCertificates, "ldap-ca"),
        ]
    );
}
