//! Tests of the pure parts, in tables.

use api::{
    Artifact, Class, LocalObjectReference, Reason, Secret,
    source::{AccessFrom, HelmRepository, HelmRepositorySpec},
};
use oci::Credentials;
use runtime::secret::SecretData;

use super::{HelmRepositories, credentials, human, spec};
use crate::{
    kinds::tests::{Field, check_schema, field},
    source_kind::{SecretRole, SourceObject as _, SourceSecrets, Words as _},
};

fn repository(change: impl FnOnce(&mut HelmRepositorySpec)) -> HelmRepositorySpec {
    let mut spec = HelmRepositorySpec {
        url: "https://charts.test/stable".into(),
        ..HelmRepositorySpec::default()
    };
    change(&mut spec);
    spec
}

fn named(name: &str) -> Option<LocalObjectReference> {
    Some(LocalObjectReference {
        name: name.to_owned(),
    })
}

/// Every property of the schema, with a value, and true if it is obeyed.
const FIELDS: &[Field<HelmRepositorySpec>] = &[
    field("url", |spec| spec.url = "http://other".into(), true),
    field("secretRef.name", |spec| spec.secret_ref = named("s"), true),
    field(
        "certSecretRef.name",
        |spec| spec.cert_secret_ref = named("s"),
        true,
    ),
    field("passCredentials", |spec| spec.pass_credentials = true, true),
    field(
        "interval",
        |spec| spec.interval = Some(api::GoDuration::from_secs(5)),
        true,
    ),
    field("insecure", |spec| spec.insecure = true, true),
    field(
        "timeout",
        |spec| spec.timeout = Some(api::GoDuration::from_secs(5)),
        true,
    ),
    field("suspend", |spec| spec.suspend = true, true),
    field(
        "accessFrom.namespaceSelectors[].matchLabels",
        |spec| spec.access_from = Some(AccessFrom::default()),
        false,
    ),
    field("type", |spec| spec.kind = Some("default".to_owned()), true),
    field("provider", |spec| spec.provider = Some("aws".to_owned()), true),
];

#[test]
fn every_property_of_the_schema_is_obeyed_or_refused() {
    check_schema::<HelmRepository, _>(FIELDS, |set| spec::validate(&repository(set)));
}

#[test]
fn invalid_urls_stall_without_their_credentials() {
    for (url, kind, expected) in [
        ("oci://ghcr.io/org", None, "needs spec.type: oci"),
        ("oci://ghcr.io/org", Some("default"), "needs spec.type: oci"),
        ("ftp://u:canary@host", None, "scheme 'ftp' is not supported"),
        ("https://", None, "empty host"),
        ("charts", None, "relative URL"),
    ] {
        let spec = repository(|spec| {
            spec.url = url.into();
            spec.kind = kind.map(str::to_owned);
        });
        let fault = spec::validate(&spec).unwrap_err();
        assert_eq!(
            (fault.reason, fault.class),
            (Reason::URLInvalid, Class::Stall),
            "{url}"
        );
        let message = &fault.message;
        assert!(message.starts_with("invalid Helm repository URL: "), "{message}");
        assert!(
            message.contains(expected) && !message.contains("canary"),
            "{message}"
        );
    }
    let static_one = HelmRepository::new("r", repository(|spec| spec.kind = Some("oci".to_owned())));
    assert!(HelmRepositories::is_static(&static_one));
}

#[test]
fn interval_defaults_to_a_minute() {
    assert_eq!(spec::interval(&repository(|_| {})).as_secs(), 60);
    let server = |url: &str| spec::server(&spec::url(&repository(|spec| spec.url = url.into())).unwrap());
    assert_eq!(server("https://charts.test/x"), "charts.test:443");
    assert_eq!(server("http://charts.test:8080"), "charts.test:8080");
}

fn secrets(credentials: &[(&str, &str)], certificates: Option<&[(&str, &str)]>) -> SourceSecrets {
    let data = |name: &str, pairs: &[(&str, &str)]| {
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(key, value)| (*key, value.as_bytes()))
            .collect();
        SecretData::of(name, &pairs)
    };
    let credentials = (SecretRole::Credentials, data("ns/s", credentials));
    let certificates = certificates.map(|pairs| (SecretRole::Certificates, data("ns/c", pairs)));
    [Some(credentials), certificates].into_iter().flatten().collect()
}

#[test]
fn credentials_and_certificates_come_from_their_secrets() {
    let spec = repository(|spec| spec.pass_credentials = true);
    let basic = [("username", "me"), ("password", "pw"), ("ca.crt", "old")];
    let access = credentials::access(&spec, &secrets(&basic, None)).unwrap();
    let expected = Credentials::Basic {
        username: "me".to_owned(),
        password: Secret::new("pw".to_owned()),
    };
    assert_eq!(access.credentials, Some(expected));
    assert!(access.pass_credentials && access.ca.as_deref() == Some(b"old"));
    // Their own Secret takes precedence; credentials of Docker contribute nothing.
    let access = credentials::access(&spec, &secrets(&basic, Some(&[("ca.crt", "new")]))).unwrap();
    assert_eq!(access.ca.as_deref(), Some(b"new".as_slice()));
    let access = credentials::access(&spec, &secrets(&[(".dockerconfigjson", "{}")], None)).unwrap();
    assert_eq!((access.credentials, access.ca), (None, None));
    let fault = credentials::access(&spec, &secrets(&[], Some(&[("tls.crt", "x")]))).unwrap_err();
    assert_eq!(fault.reason, Reason::AuthenticationFailed);
    assert!(
        fault
            .message
            .contains("secret 'ns/c' must contain either 'ca.crt' or both"),
        "{fault}"
    );
}

#[test]
fn event_has_the_size_of_the_index() {
    for (bytes, expected) in [
        (0, "0B"),
        (999, "999B"),
        (1000, "1kB"),
        (30_881, "30.88kB"),
        (1_048_576, "1.049MB"),
        (52_428_800, "52.43MB"),
        (999_999_999, "1000MB"),
    ] {
        assert_eq!(human(bytes), expected, "{bytes}");
    }
    let digest = oci::Digest::of(b"x");
    let index = super::HelmIndex {
        display_url: "https://charts.test".to_owned(),
        file: oci::IndexFile::new(digest, 1),
        fetched: None,
    };
    let message = |size| {
        let artifact = Artifact {
            size,
            ..Artifact::default()
        };
        HelmRepositories::event_message(&index, &artifact, None)
    };
    assert_eq!(
        message(Some(30_881)),
        "stored fetched index of size 30.88kB from 'https://charts.test'"
    );
    assert_eq!(
        message(None),
        "stored fetched index of unknown size from 'https://charts.test'"
    );
}
