use api::{
    LocalObjectReference, Reason,
    source::{
        AccessFrom, GitRepository, GitRepositoryInclude, GitRepositoryRef, GitRepositorySpec,
        GitRepositoryVerification,
    },
};

use super::object;
use crate::kinds::{
    git_repository::{spec::validate, verification::is_changed},
    tests::{Field, check_schema, field},
};

type Change = fn(&mut GitRepositorySpec);

fn named() -> Option<LocalObjectReference> {
    Some(LocalObjectReference { name: "s".to_owned() })
}

fn set_ref(spec: &mut GitRepositorySpec, set: impl FnOnce(&mut GitRepositoryRef, Option<String>, &str)) {
    let mut reference = GitRepositoryRef::default();
    set(&mut reference, Some("1.0.0".to_owned()), "refs/heads/main");
    spec.reference = Some(reference);
}

/// Every property of the schema, with a value, and true if it is obeyed.
const FIELDS: &[Field<GitRepositorySpec>] = &[
    field("url", |spec| spec.url = "ssh://git@git/other".into(), true),
    field("secretRef.name", |spec| spec.secret_ref = named(), true),
    field("provider", |spec| spec.provider = Some("azure".to_owned()), true),
    field(
        "serviceAccountName",
        |spec| {
            spec.provider = Some("azure".to_owned());
            spec.service_account_name = Some("sa".to_owned());
        },
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
    field(
        "ref.branch",
        |spec| set_ref(spec, |to, value, _| to.branch = value),
        true,
    ),
    field(
        "ref.tag",
        |spec| set_ref(spec, |to, value, _| to.tag = value),
        true,
    ),
    field(
        "ref.semver",
        |spec| set_ref(spec, |to, value, _| to.semver = value),
        true,
    ),
    field(
        "ref.name",
        |spec| set_ref(spec, |to, _, name| to.name = Some(name.to_owned())),
        true,
    ),
    field(
        "ref.commit",
        |spec| set_ref(spec, |to, _, _| to.commit = Some("a".repeat(40))),
        true,
    ),
    field(
        "verify.mode",
        |spec| {
            spec.verify = Some(GitRepositoryVerification {
                mode: Some("HEAD".to_owned()),
                secret_ref: named(),
            });
        },
        true,
    ),
    field(
        "verify.secretRef.name",
        |spec| {
            spec.verify = Some(GitRepositoryVerification {
                mode: None,
                secret_ref: named(),
            });
        },
        true,
    ),
    field(
        "proxySecretRef.name",
        |spec| spec.proxy_secret_ref = named(),
        true,
    ),
    field("ignore", |spec| spec.ignore = Some("*.md".to_owned()), true),
    field("suspend", |spec| spec.suspend = true, true),
    field("recurseSubmodules", |spec| spec.recurse_submodules = true, true),
    field(
        "include[].repository.name",
        |spec| spec.include = vec![GitRepositoryInclude::default()],
        true,
    ),
    field(
        "include[].fromPath",
        |spec| spec.include = vec![GitRepositoryInclude::default()],
        true,
    ),
    field(
        "include[].toPath",
        |spec| spec.include = vec![GitRepositoryInclude::default()],
        true,
    ),
    field(
        "sparseCheckout",
        |spec| spec.sparse_checkout = vec!["a".to_owned()],
        true,
    ),
    // Both values name libraries of old, and are the same.
    field(
        "gitImplementation",
        |spec| spec.git_implementation = Some("libgit2".to_owned()),
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
    check_schema::<GitRepository, _>(FIELDS, |set| validate(&object(set).spec));
}

#[test]
fn urls_and_references_that_cannot_work_stall() {
    let cases: &[(Change, Reason, &str)] = &[
        (
            |spec| spec.url = "git@git:r".into(),
            Reason::URLInvalid,
            "write it as http://, https:// or ssh://",
        ),
        (
            |spec| spec.url = "ssh://git@169.254.169.254/r".into(),
            Reason::URLInvalid,
            "link-local",
        ),
        (
            |spec| spec.url = "https://".into(),
            Reason::URLInvalid,
            "failed to parse url 'https://'",
        ),
        (
            |spec| spec.url = "http://169.254.169.254/".into(),
            Reason::URLInvalid,
            "link-local",
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
            |spec| set_ref(spec, |to, _, _| to.semver = Some("nonsense".into())),
            Reason::InvalidSpec,
            "improper constraint",
        ),
        (
            |spec| {
                spec.verify = Some(GitRepositoryVerification {
                    mode: Some("Tag".to_owned()),
                    secret_ref: named(),
                });
            },
            Reason::InvalidVerificationMode,
            "cannot verify tag object's signature if a tag reference is not specified",
        ),
        (
            |spec| spec.verify = Some(GitRepositoryVerification::default()),
            Reason::InvalidSpec,
            "spec.verify.secretRef",
        ),
        (
            |spec| spec.include = vec![GitRepositoryInclude::default(); 101],
            Reason::InvalidSpec,
            "spec.include: has 101 entries",
        ),
        (
            |spec| set_ref(spec, |to, _, _| to.commit = Some("abc".into())),
            Reason::InvalidSpec,
            "40 hexadecimal",
        ),
        (
            |spec| set_ref(spec, |to, _, _| to.branch = Some("a..b".into())),
            Reason::InvalidSpec,
            "spec.ref: ref",
        ),
    ];
    for (change, reason, expected) in cases {
        let fault = validate(&object(*change).spec).unwrap_err();
        assert_eq!(
            (fault.reason, fault.class),
            (*reason, api::Class::Stall),
            "{fault}"
        );
        assert!(fault.message.contains(expected), "{fault}");
    }
    let fault = validate(&object(|spec| spec.url = "https://u:canary@:x/".into()).spec).unwrap_err();
    assert!(!fault.message.contains("canary"), "{fault}");
}

#[test]
fn content_changes_with_every_field_that_the_artifact_depends_on() {
    let include = |from: Option<&str>, to: Option<&str>| GitRepositoryInclude {
        repository: LocalObjectReference { name: "s".to_owned() },
        from_path: from.map(str::to_owned),
        to_path: to.map(str::to_owned),
    };
    let sparse = |paths: &[&str]| -> Vec<String> { paths.iter().map(|path| (*path).to_owned()).collect() };
    let none = (false, vec![], sparse(&[]));
    let of = |spec: &(bool, Vec<GitRepositoryInclude>, Vec<String>),
              seen: &(bool, Vec<GitRepositoryInclude>, Vec<String>)| {
        let object = object(|to| {
            (to.recurse_submodules, to.include, to.sparse_checkout) = spec.clone();
        });
        let status = api::source::GitRepositoryStatus {
            observed_recurse_submodules: seen.0.then_some(true),
            observed_include: seen.1.clone(),
            observed_sparse_checkout: seen.2.clone(),
            ..Default::default()
        };
        is_changed(&object.spec, &status)
    };
    let differing = [
        (true, vec![], sparse(&[])),
        (false, vec![include(None, None)], sparse(&[])),
        (false, vec![include(Some("a"), None)], sparse(&[])),
        (false, vec![include(None, Some("a"))], sparse(&[])),
        (
            false,
            vec![include(None, None), include(None, Some("a"))],
            sparse(&[]),
        ),
        (
            false,
            vec![include(None, Some("a")), include(None, None)],
            sparse(&[]),
        ),
        (false, vec![], sparse(&["a/b"])),
        (false, vec![], sparse(&["A/b"])),
        (false, vec![], sparse(&["/a/b"])),
        (false, vec![], sparse(&["./a/b"])),
        (false, vec![], sparse(&["a/b", "c"])),
        (false, vec![], sparse(&["c", "a/b"])),
        none,
    ];
    for spec in &differing {
        for seen in &differing {
            assert_eq!(of(spec, seen), spec != seen, "{spec:?} {seen:?}");
        }
    }
}

#[test]
fn empty_values_are_as_good_as_absent() {
    let empty = object(|spec| {
        spec.provider = Some(String::new());
        spec.service_account_name = Some(String::new());
        spec.reference = Some(GitRepositoryRef {
            branch: Some(String::new()),
            ..GitRepositoryRef::default()
        });
    });
    validate(&empty.spec).unwrap();
    validate(&object(|spec| spec.provider = Some("generic".to_owned())).spec).unwrap();
}
