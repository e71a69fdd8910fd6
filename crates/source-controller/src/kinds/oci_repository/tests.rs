use api::source::{OCILayerSelector, OCIRepositoryRef, OCIRepositorySpec, OCIRepositoryVerification};
use oci::cosign::Signer;
use runtime::secret::SecretData;

use super::*;
use crate::kinds::tests::{Field, check_schema, field};

type Change = fn(&mut OCIRepositorySpec);

fn spec_with(change: impl FnOnce(&mut OCIRepositorySpec)) -> OCIRepositorySpec {
    let mut spec = OCIRepositorySpec {
        url: "oci://h/org/app".into(),
        interval: api::GoDuration::from_secs(60),
        ..OCIRepositorySpec::default()
    };
    change(&mut spec);
    spec
}

fn named(name: &str) -> Option<api::LocalObjectReference> {
    Some(api::LocalObjectReference {
        name: name.to_owned(),
    })
}

fn keyed() -> OCIRepositoryVerification {
    OCIRepositoryVerification {
        provider: "cosign".to_owned(),
        secret_ref: named("keys"),
        ..OCIRepositoryVerification::default()
    }
}

fn keyless() -> OCIRepositoryVerification {
    OCIRepositoryVerification {
        secret_ref: None,
        ..keyed()
    }
}

fn reference(change: impl FnOnce(&mut OCIRepositoryRef)) -> Option<OCIRepositoryRef> {
    let mut reference = OCIRepositoryRef::default();
    change(&mut reference);
    Some(reference)
}

/// Every field of the spec, a valid value, and true if it is obeyed.
const FIELDS: &[Field<OCIRepositorySpec>] = &[
    field("url", |spec| spec.url = "oci://h:5000/a".into(), true),
    field(
        "ref.digest",
        |spec| spec.reference = reference(|to| to.digest = Some(format!("sha256:{}", "a".repeat(64)))),
        true,
    ),
    field(
        "ref.semver",
        |spec| spec.reference = reference(|to| to.semver = Some(">=1.0".to_owned())),
        true,
    ),
    field(
        "ref.semverFilter",
        |spec| spec.reference = reference(|to| to.semver_filter = Some(".*-rc".to_owned())),
        true,
    ),
    field(
        "ref.tag",
        |spec| spec.reference = reference(|to| to.tag = Some("v1".to_owned())),
        true,
    ),
    field(
        "layerSelector.mediaType",
        |spec| {
            spec.layer_selector = Some(OCILayerSelector {
                media_type: Some("a/b".to_owned()),
                operation: None,
            });
        },
        true,
    ),
    field(
        "layerSelector.operation",
        |spec| {
            spec.layer_selector = Some(OCILayerSelector {
                media_type: None,
                operation: Some("copy".to_owned()),
            });
        },
        true,
    ),
    field("provider", |spec| spec.provider = Some("aws".to_owned()), true),
    field("secretRef.name", |spec| spec.secret_ref = named("s"), true),
    field(
        "verify.provider",
        |spec| {
            spec.verify = Some(OCIRepositoryVerification {
                provider: "notation".to_owned(),
                ..keyed()
            });
        },
        true,
    ),
    field("verify.secretRef.name", |spec| spec.verify = Some(keyed()), true),
    field(
        "verify.matchOIDCIdentity[].issuer",
        |spec| {
            spec.verify = Some(OCIRepositoryVerification {
                match_oidc_identity: vec![api::source::OIDCIdentityMatch::default()],
                ..keyless()
            });
        },
        true,
    ),
    field(
        "verify.matchOIDCIdentity[].subject",
        |spec| {
            spec.verify = Some(OCIRepositoryVerification {
                match_oidc_identity: vec![api::source::OIDCIdentityMatch::default()],
                ..keyed()
            });
        },
        false,
    ),
    field(
        "verify.trustedRootSecretRef.name",
        |spec| {
            spec.verify = Some(OCIRepositoryVerification {
                trusted_root_secret_ref: named("s"),
                ..keyless()
            });
        },
        true,
    ),
    field(
        "serviceAccountName",
        |spec| spec.service_account_name = Some("a".to_owned()),
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
    field("insecure", |spec| spec.insecure = true, true),
    field("suspend", |spec| spec.suspend = true, true),
];

#[test]
fn every_property_of_the_schema_is_obeyed_or_refused() {
    check_schema::<OCIRepository, _>(FIELDS, |set| spec::validate(&spec_with(set)));
}

#[test]
fn urls_and_references_that_cannot_work_stall() {
    let cases: &[(Change, Reason, &str)] = &[
        (
            |spec| spec.url = "h/a".into(),
            Reason::URLInvalid,
            "URL validation failed for 'h/a': URL must be in format 'oci://<domain>/<org>/<repo>'",
        ),
        (
            |spec| spec.url = "oci://h:5000/a:v1".into(),
            Reason::URLInvalid,
            "URL validation failed for 'oci://h:5000/a:v1': URL must not contain a tag; remove ':v1'",
        ),
        (
            |spec| spec.url = "oci://h/a@sha256:0".into(),
            Reason::URLInvalid,
            "must not contain a digest",
        ),
        (
            |spec| spec.url = "oci://h".into(),
            Reason::URLInvalid,
            "no repository",
        ),
        (
            |spec| spec.interval = api::GoDuration::ZERO,
            Reason::InvalidSpec,
            "spec.interval: it must be more than nothing",
        ),
        (
            |spec| spec.interval = api::GoDuration::from_secs(-60),
            Reason::InvalidSpec,
            "spec.interval: it must be more than nothing",
        ),
        (
            |spec| spec.reference = reference(|to| to.digest = Some("sha256:12".to_owned())),
            Reason::InvalidSpec,
            "spec.ref.digest: 'sha256:12' is not a digest",
        ),
        (
            |spec| spec.reference = reference(|to| to.semver = Some("nonsense".to_owned())),
            Reason::InvalidSpec,
            "semver 'nonsense' parse error: improper constraint",
        ),
        (
            |spec| {
                spec.reference = reference(|to| {
                    to.semver = Some("*".to_owned());
                    to.semver_filter = Some("(".to_owned());
                });
            },
            Reason::InvalidSpec,
            "spec.ref.semverFilter: error parsing regexp: missing closing )",
        ),
    ];
    for (change, reason, expected) in cases {
        let fault = spec::validate(&spec_with(change)).unwrap_err();
        assert_eq!(
            (fault.reason, fault.class),
            (*reason, api::Class::Stall),
            "{fault}"
        );
        assert!(fault.message.contains(expected), "{fault}");
    }
}

#[test]
fn digest_precedes_semver_which_precedes_tag() {
    let digest = format!("sha256:{}", "a".repeat(64));
    let mut given = OCIRepositoryRef {
        digest: Some(digest.clone()),
        semver: Some("*".to_owned()),
        semver_filter: None,
        tag: Some("t".to_owned()),
    };
    let selected = |given: &OCIRepositoryRef| {
        spec::selector(&spec_with(|spec| spec.reference = Some(given.clone()))).unwrap()
    };
    let expected = Digest::parse(&digest).unwrap();
    assert!(matches!(selected(&given), Selector::Digest(digest) if digest == expected));
    given.digest = Some(String::new());
    assert!(matches!(selected(&given), Selector::Semver(_)));
    given.semver = None;
    assert!(matches!(selected(&given), Selector::Tag(tag) if tag == "t"));
    given.tag = None;
    assert!(matches!(selected(&given), Selector::Tag(tag) if tag == "latest"));
}

/// Chooses the newest of the tags by a spec.
fn newest(spec: &OCIRepositorySpec, tags: Vec<String>) -> Result<String, String> {
    match spec::selector(spec).unwrap() {
        Selector::Semver(range) => range.newest(tags),
        other => panic!("{other:?}"),
    }
}

fn spec_of_range(range: &str, filter: Option<&str>) -> OCIRepositorySpec {
    spec_with(|spec| {
        spec.reference = Some(OCIRepositoryRef {
            semver: Some(range.to_owned()),
            semver_filter: filter.map(str::to_owned),
            ..OCIRepositoryRef::default()
        });
    })
}

#[test]
fn newest_tag_fits_range_and_filter() {
    let tags = [
        "latest",
        "1.0.0",
        "v1.2.0",
        "1.10.0",
        "2.0.0-rc.1",
        "1.11.0-debug",
        "sha256-aa.sig",
        "20240101",
        "9.1",
    ];
    for (range, filter, expected) in [
        (">=1.0.0", None, Ok("1.10.0")),
        ("~1.2", None, Ok("v1.2.0")),
        (">=1.0.0-0", None, Ok("2.0.0-rc.1")),
        (">=1.0.0-0", Some("-debug$"), Ok("1.11.0-debug")),
        ("*", Some("^v"), Ok("v1.2.0")),
        ("*", Some("^x"), Err("no match found for semver: *")),
        (">=3", None, Err("no match found for semver: >=3")),
    ] {
        let spec = spec_of_range(range, filter);
        assert_eq!(
            newest(&spec, tags.map(str::to_owned).to_vec()),
            expected.map(str::to_owned).map_err(str::to_owned),
            "{range} {filter:?}"
        );
    }
}

#[test]
fn filters_that_search_too_long_are_refused() {
    // As many tags as a registry may list, of the maximum length.
    let tags: Vec<_> = (0..100_000)
        .map(|number| format!("1.0.{number}-{}", "a".repeat(115)))
        .collect();
    let slow = spec_of_range("*", Some("(?:a?){900}(?:a?){900}b"));
    let refused = newest(&slow, tags.clone()).unwrap_err();
    assert!(
        refused.contains("semverFilter takes too long in 100000 tags"),
        "{refused}"
    );
    let usual = spec_of_range("*", Some("^1\\.[0-9]+\\.[0-9]+-a+$"));
    assert_eq!(
        newest(&usual, tags),
        Err("no match found for semver: *".to_owned())
    );
}

#[test]
fn identities_are_bounded_in_memory_and_in_time() {
    let identities = |count: usize, subject: &str| {
        let identity = api::source::OIDCIdentityMatch {
            issuer: "^https://accounts[.]example[.]com$".to_owned(),
            subject: subject.to_owned(),
        };
        let mut verify = keyless();
        verify.match_oidc_identity = vec![identity; count];
        let spec = spec_with(|spec| spec.verify = Some(verify));
        // They are compiled on another thread than the checks.
        assert!(spec::validate(&spec).is_ok());
        spec::identities(&spec)
    };
    let signer = |subject: String| Signer {
        issuer: "https://accounts.example.com".to_owned(),
        subject,
    };
    let usual = identities(100, "@example[.]com$").unwrap();
    let search = usual.search();
    for number in 0..50 {
        assert!(search.matches(&signer(format!("person-{number}@example.com"))));
        assert!(!search.matches(&signer(format!("person-{number}@example.org"))));
    }
    assert_eq!(search.problem(), None);

    let costly = identities(50, "(?:a?){900}(?:a?){900}b").unwrap();
    let search = costly.search();
    assert!(!search.matches(&signer("a".repeat(100_000))));
    assert!(search.problem().is_some());

    let fault = identities(100, r"\pL{20}").unwrap_err();
    assert_eq!(
        (fault.class, fault.reason),
        (api::Class::Stall, Reason::InvalidSpec)
    );
    assert!(
        fault.message.contains("too many or too large together"),
        "{fault}"
    );
    let fault = identities(1, "(").unwrap_err();
    assert!(
        fault
            .message
            .starts_with("spec.verify.matchOIDCIdentity[0].subject: error parsing regexp"),
        "{fault}"
    );
}

#[test]
fn underscores_are_plus_signs_in_tags_of_charts_only() {
    const CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
    let tags = [
        "1.4.0",
        "1.7.0_ref.1",
        "1.7.0_ref.2",
        "1.7.0_ref.10",
        "1.8.0_up57.0.3",
        "1.9.0-rc.1_b",
        "2.0.0_a_b",
    ];
    for (media_type, range, filter, expected) in [
        (CHART, ">=1.4.1", "", Some("1.8.0_up57.0.3")),
        (CHART, "1.7.x", "", Some("1.7.0_ref.10")),
        (CHART, "1.7.0", "_ref\\.[12]$", Some("1.7.0_ref.2")),
        (CHART, ">1.8.0-0", "", Some("1.9.0-rc.1_b")),
        (CHART, ">=2", "", None),
        (CHART, "*", "\\+", None),
        ("", "*", "", Some("1.4.0")),
        ("application/tar+gzip", "*", "", Some("1.4.0")),
        ("application/vnd.cncf.helm.config.v1+json", ">=1.4.1", "", None),
    ] {
        let spec = OCIRepositorySpec {
            layer_selector: Some(OCILayerSelector {
                media_type: Some(media_type.to_owned()),
                operation: None,
            }),
            ..spec_of_range(range, Some(filter))
        };
        let found = newest(&spec, tags.map(str::to_owned).to_vec());
        assert_eq!(found.ok().as_deref(), expected, "{media_type} {range} {filter}");
    }
}

#[test]
fn credentials_come_from_the_secret_before_the_service_account() {
    let config =
        |user: &str| format!(r#"{{"auths": {{"h": {{"username": "{user}", "password": "s3cret"}}}}}}"#);
    let secret = |user: &str| SecretData::of("ns/s", &[(".dockerconfigjson", config(user).as_bytes())]);
    let spec = spec_with(|_| {});
    let repository = spec::repository(&spec).unwrap();
    let user = |secrets: &SourceSecrets| {
        let access = credentials::access(&spec, &repository, secrets).unwrap();
        access.credentials.map(|found| match found {
            oci::Credentials::Basic { username, .. } => username,
            other => panic!("{other:?}"),
        })
    };
    let mut secrets: SourceSecrets = [(SecretRole::Credentials, secret("own"))].into_iter().collect();
    assert_eq!(user(&secrets).as_deref(), Some("own"));
    let account = crate::source_kind::ServiceAccountData {
        pull_secrets: vec![secret("account")],
        ..crate::source_kind::ServiceAccountData::default()
    };
    secrets.service_account = Some(account);
    assert_eq!(user(&secrets).as_deref(), Some("own"));
    let account = secrets.service_account.take();
    let mut alone = SourceSecrets::default();
    alone.service_account = account;
    assert_eq!(user(&alone).as_deref(), Some("account"));
    assert_eq!(user(&SourceSecrets::default()), None);
    let invalid = SecretData::of("ns/s", &[(".dockerconfigjson", b"s3cret")]);
    let invalid: SourceSecrets = [(SecretRole::Credentials, invalid)].into_iter().collect();
    let fault = credentials::access(&spec, &repository, &invalid).unwrap_err();
    assert_eq!(
        fault.message,
        "failed to get credential: secret 'ns/s': invalid config.json: line 1, column 1"
    );
}

#[test]
fn certificates_of_a_helm_repository_are_used_beside_a_secret_without_a_login() {
    let spec = spec_with(|spec| spec.insecure = true);
    let repository = spec::repository(&spec).unwrap();
    let of = |roles: &[(SecretRole, &str, &str)]| {
        let secret = |key: &str, value: &str| SecretData::of("ns/s", &[(key, value.as_bytes())]);
        let secrets: SourceSecrets = roles
            .iter()
            .map(|(role, key, value)| (*role, secret(key, value)))
            .collect();
        credentials::access_of_charts(&spec, &repository, &secrets).unwrap()
    };
    let ca = (SecretRole::Certificates, "ca.crt", "pem");
    let access = of(&[(SecretRole::Credentials, "note", "no login"), ca]);
    assert!(access.credentials.is_none() && access.ca.is_some(), "{access:?}");
    for access in [of(&[]), of(&[(SecretRole::Credentials, "note", "no login")])] {
        assert!(!access.insecure_skip_verify, "{access:?}");
    }
}

#[test]
fn certificates_and_keys_are_named_when_they_are_missing() {
    let spec = spec_with(|spec| spec.verify = Some(keyed()));
    let repository = spec::repository(&spec).unwrap();
    let with = |role, pairs: &[(&str, &[u8])]| -> SourceSecrets {
        [(role, SecretData::of("ns/s", pairs))].into_iter().collect()
    };
    let access = |pairs: &[(&str, &[u8])]| {
        credentials::access(&spec, &repository, &with(SecretRole::Certificates, pairs))
    };
    for key in ["", "tls.crt", "cacert"] {
        let fault = access(&[(key, b"x")]).unwrap_err();
        assert_eq!(
            fault.message,
            "failed to generate transport for 'oci://h/org/app': secret 'ns/s' must contain either 'ca.crt' or both 'tls.crt' and \
             'tls.key'"
        );
    }
    let both = access(&[("caFile", b"old"), ("ca.crt", b"new")]).unwrap();
    assert_eq!(both.ca.as_deref(), Some(&b"new"[..]));
    let keys = |pairs: &[(&str, &[u8])]| {
        let found = verification::trusted(&spec, &with(SecretRole::TrustedKeys, pairs));
        found.map(drop).map_err(|fault| (fault.reason, fault.message))
    };
    let prefix = "failed to verify the signature using provider 'cosign': secret 'ns/s': ";
    assert_eq!(
        keys(&[("key", b"x")]),
        Err((
            Reason::VerificationError,
            format!("{prefix}no public keys found (keys of the secret with .pub suffix)")
        ))
    );
    let (_, message) = keys(&[("a.pub", b"s3cret")]).unwrap_err();
    assert!(
        message.starts_with(&format!("{prefix}a.pub: ")) && !message.contains("s3cret"),
        "{message}"
    );
}

#[test]
fn policies_and_certificates_of_notation_are_read_or_named() {
    let notation = |change: fn(&mut OCIRepositoryVerification)| {
        let mut verify = keyed();
        verify.provider = "notation".to_owned();
        change(&mut verify);
        spec_with(|spec| spec.verify = Some(verify))
    };
    let fault = spec::validate(&notation(|verify| verify.secret_ref = None)).unwrap_err();
    assert_eq!(fault.reason, Reason::InvalidSpec);
    assert!(fault.message.contains("trustpolicy.json"), "{fault}");
    let identities: fn(&mut OCIRepositoryVerification) =
        |verify| verify.match_oidc_identity = vec![api::source::OIDCIdentityMatch::default()];
    for change in [identities, |verify| verify.trusted_root_secret_ref = named("s")] {
        let fault = spec::validate(&notation(change)).unwrap_err();
        assert_eq!(fault.reason, Reason::UnsupportedField, "{fault}");
    }
    let fault = spec::validate(&notation(|verify| verify.provider = "gpg".to_owned())).unwrap_err();
    assert!(fault.message.contains("spec.verify.provider"), "{fault}");
    let spec = notation(|_| {});
    let trusted = |pairs: &[(&str, &[u8])]| {
        let secret = SecretData::of("ns/s", pairs);
        let secrets: SourceSecrets = [(SecretRole::TrustedKeys, secret)].into_iter().collect();
        let found = verification::trusted(&spec, &secrets);
        found
            .map(|(_, fingerprint)| fingerprint)
            .map_err(|fault| fault.message)
    };
    let policy = br#"{"version": "1.0", "trustPolicies": [{"name": "a", "registryScopes": ["*"],
        "signatureVerification": {"level": "strict"}, "trustStores": ["ca:a"], "trustedIdentities": ["*"]}]}"#;
    let authority = testkit::Authority::new(&["h"]).unwrap().ca_pem;
    let certificate = authority.as_bytes();
    let one = trusted(&[("trustpolicy.json", policy), ("a.crt", certificate)]).unwrap();
    let same = trusted(&[("trustpolicy.json", policy), ("b.pem", certificate), ("x", b"y")]);
    assert_eq!(same.as_ref(), Ok(&one));
    let more = [
        ("trustpolicy.json", &policy[..]),
        ("a.crt", certificate),
        ("b.crt", certificate),
    ];
    assert_ne!(trusted(&more).unwrap(), one);
    let prefix = "failed to verify the signature using provider 'notation': ";
    for (pairs, expected) in [
        (
            &[("a.crt", certificate)][..],
            "'trustpolicy.json' not found in secret 'ns/s'",
        ),
        (
            &[("trustpolicy.json", policy)],
            "no certificates found in secret 'ns/s'",
        ),
        (
            &[("trustpolicy.json", b"{"), ("a.crt", certificate)],
            "error occurred while parsing trustpolicy.json of secret 'ns/s'",
        ),
        (
            &[("trustpolicy.json", policy), ("a.crt", b"s3cret")],
            "secret 'ns/s': a.crt: it must have certificates",
        ),
    ] {
        let message = trusted(pairs).unwrap_err();
        assert!(message.starts_with(&format!("{prefix}{expected}")), "{message}");
        assert!(!message.contains("s3cret"), "{message}");
    }
}
