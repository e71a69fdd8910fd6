//! The rules of kstatus over random histories of objects, for the status builder of each kind.

use api::{
    conditions::{KindRules, Subject},
    source::{
        Bucket, BucketSpec, GitRepository, GitRepositorySpec, GitRepositoryVerification, HelmChart,
        HelmChartSpec, HelmRepository, HelmRepositorySpec, OCIRepository, OCIRepositorySpec,
        OCIRepositoryVerification,
    },
};
use artifact::{Digest, pack::Packed};
use jiff::Timestamp;
use testkit::fuzz::{self, Random};

use super::*;
use crate::kinds::{Buckets, GitRepositories, HelmCharts, HelmRepositories, OciRepositories};

const REASONS: &[Reason] = &[
    Reason::URLInvalid,
    Reason::InvalidSpec,
    Reason::UnsupportedField,
    Reason::AuthenticationFailed,
    Reason::GitOperationFailed,
    Reason::OCIArtifactPullFailed,
    Reason::InvalidChartReference,
    Reason::ChartPackageError,
    Reason::ChartVerificationError,
    Reason::BucketOperationFailed,
    Reason::SourceIgnoreError,
    Reason::OCIArtifactLayerOperationFailed,
    Reason::ReadOperationFailed,
    Reason::VerificationError,
    Reason::StorageOperationFailed,
    Reason::ArchiveOperationFailed,
    Reason::Timeout,
    Reason::InternalError,
];

fn stored() -> Stored {
    let hex = "a".repeat(64);
    Stored {
        path: "kind/ns/name/file.tar.gz".to_owned(),
        packed: Packed {
            digest: Digest::parse(&format!("sha256:{hex}")).unwrap(),
            sha256: hex,
            sha1: "b".repeat(40),
            size: 42,
            hashes: Vec::new(),
        },
    }
}

/// Returns the status after one random pass over the object, and true if the object is suspended.
fn pass<K: SourceKind>(random: &mut Random, object: &K::Object, second: i64) -> Option<(K::Status, bool)> {
    let style = *random.pick(&[Style::Rfc5, Style::Legacy]);
    let report = Report::<K> {
        object,
        style,
        now: Time(Timestamp::from_second(second).unwrap()),
    };
    let past = K::past(object).artifact;
    let status = match random.below(4) {
        0 => report.progressing(),
        1 => {
            let status = report.suspended()?;
            return Some((status, true));
        }
        2 => {
            let artifact = report.artifact(stored(), &format!("main@sha1:{}", random.below(3)));
            let verification = K::verifies(object).then(|| Verification {
                message: random.flag().then(|| "verified".to_owned()),
                fingerprint: None,
            });
            let success = Success {
                artifact,
                url: "http://h/latest.tar.gz".to_owned(),
                ready: (Reason::Succeeded, "stored".to_owned()),
                event: (None, "stored".to_owned()),
                event_metadata: BTreeMap::new(),
                verification,
                left_out: None,
            };
            report.ready(success, &StoredArtifact::None).status
        }
        _ => {
            let fault = match random.below(3) {
                0 => Fault::stall(*random.pick(REASONS), "no"),
                1 => Fault::retry(*random.pick(REASONS), "no"),
                _ => Fault {
                    class: Class::Bug,
                    ..Fault::retry(Reason::InternalError, "no")
                },
            };
            let failed = FailedPass {
                fault,
                artifact: past.filter(|_| random.flag()),
                outdated: (random.flag()).then(|| (Reason::NewRevision, "main@sha1:9".to_owned())),
            };
            report.failed(&failed).status
        }
    };
    Some((status, false))
}

fn check<K: SourceKind>(object: &K::Object, suspended: bool) {
    let status = K::past(object);
    let subject = Subject {
        generation: object.meta().generation.unwrap(),
        observed_generation: status.observed_generation,
        conditions: &status.conditions,
        kind: KindRules::of(group::SOURCE),
        suspended,
    };
    assert_eq!(conditions::check(&subject), [], "{status:?}");
    let holds = |name: &str| conditions::is_true(&status.conditions, name);
    if holds(types::READY) && !holds(types::RECONCILING) {
        assert!(status.artifact.is_some(), "ready without an artifact: {status:?}");
        let unverified = conditions::is_false(&status.conditions, types::SOURCE_VERIFIED);
        assert!(!unverified, "ready without verification: {status:?}");
    }
    if holds(types::ARTIFACT_IN_STORAGE) {
        assert!(
            status.artifact.is_some(),
            "no artifact is in the storage: {status:?}"
        );
    }
    let verified = conditions::get(&status.conditions, types::SOURCE_VERIFIED);
    assert!(
        verified.is_none() || K::verifies(object) || !holds(types::READY),
        "{status:?}"
    );
}

/// Walks through a random history of an object: new generations, requests and passes.
fn walk<K: SourceKind>(random: &mut Random, mut object: K::Object) {
    object.meta_mut().generation = Some(1);
    let steps = i64::try_from(random.below(12)).unwrap();
    for second in 0..steps {
        let mut suspended = false;
        match random.below(4) {
            0 => {
                let generation = object.meta().generation.unwrap_or_default();
                object.meta_mut().generation = Some(generation + 1);
                if random.flag() {
                    continue;
                }
                // The first write of a long pass over a new generation.
                let report = Report::<K> {
                    object: &object,
                    style: Style::Rfc5,
                    now: Time(Timestamp::from_second(second).unwrap()),
                };
                *object.status_mut() = Some(report.progressing());
            }
            1 => {
                let annotations = object.annotations_mut();
                annotations.insert(annotation::RECONCILE_REQUESTED_AT.to_owned(), second.to_string());
                continue;
            }
            _ => {
                let Some((status, is_suspended)) = pass::<K>(random, &object, second) else {
                    continue;
                };
                suspended = is_suspended;
                *object.status_mut() = Some(status);
            }
        }
        if !K::past(&object).conditions.is_empty() {
            check::<K>(&object, suspended);
        }
    }
}

#[test]
fn object_that_is_suspended_in_its_first_pass_is_not_ready() {
    let mut object = GitRepository::new("name", GitRepositorySpec::default());
    object.metadata.generation = Some(1);
    let report = |object: &GitRepository| {
        let now = Time(Timestamp::from_second(1).unwrap());
        let report = Report::<GitRepositories> {
            object,
            style: Style::Rfc5,
            now,
        };
        (report.progressing(), report.suspended())
    };
    object.status = Some(report(&object).0);
    object.metadata.generation = Some(2);
    object.spec.suspend = true;
    object.status = report(&object).1;
    check::<GitRepositories>(&object, true);
    let status = object.status.clone().unwrap();
    let ready = conditions::get(&status.conditions, types::READY).unwrap();
    assert_eq!(
        (ready.status, ready.reason.as_str(), status.conditions.len()),
        (ConditionStatus::False, "Suspended", 1)
    );
    assert_eq!(report(&object).1, None, "it stays as it is");
    object.spec.suspend = false;
    object.status = Some(report(&object).0);
    check::<GitRepositories>(&object, false);
}

#[test]
fn fuzz_statuses_of_each_kind_keep_the_rules_of_kstatus() {
    fuzz::run("statuses", |random| {
        let verified = random.flag();
        let git = GitRepositorySpec {
            verify: verified.then(GitRepositoryVerification::default),
            ..GitRepositorySpec::default()
        };
        walk::<GitRepositories>(random, GitRepository::new("name", git));
        let oci = OCIRepositorySpec {
            verify: verified.then(OCIRepositoryVerification::default),
            ..OCIRepositorySpec::default()
        };
        walk::<OciRepositories>(random, OCIRepository::new("name", oci));
        walk::<Buckets>(random, Bucket::new("name", BucketSpec::default()));
        let helm = HelmRepositorySpec::default();
        walk::<HelmRepositories>(random, HelmRepository::new("name", helm));
        let chart = HelmChartSpec {
            verify: verified.then(OCIRepositoryVerification::default),
            ..HelmChartSpec::default()
        };
        walk::<HelmCharts>(random, HelmChart::new("name", chart));
    });
}
