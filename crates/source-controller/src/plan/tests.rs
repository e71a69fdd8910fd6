use super::*;

fn good(revision: &str) -> StoredArtifact {
    let artifact = Artifact {
        revision: revision.to_owned(),
        ..Artifact::default()
    };
    StoredArtifact::Good {
        artifact,
        file: "1.tar.gz".to_owned(),
    }
}

#[test]
fn lost_artifact_is_restored_and_a_good_one_tidied() {
    let corrupt = StoredArtifact::Corrupt {
        path: "p".to_owned(),
        wanted: "a".to_owned(),
        found: "b".to_owned(),
    };
    let (unknown, known) = (
        SharedCopy::default(),
        SharedCopy {
            is_served: true,
            is_uploaded: true,
            is_tidy: true,
        },
    );
    let tidying = |needed| {
        StoragePlan::Tidy(Tidying {
            serve: needed,
            upload: needed,
            tidy_shared: needed,
        })
    };
    for (stored, shared, expected) in [
        (StoredArtifact::None, None, StoragePlan::Nothing),
        (StoredArtifact::None, Some(unknown), StoragePlan::Nothing),
        (StoredArtifact::Missing, None, StoragePlan::Nothing),
        (StoredArtifact::Missing, Some(unknown), StoragePlan::Restore),
        (corrupt.clone(), None, StoragePlan::RemoveCorrupt),
        (corrupt, Some(unknown), StoragePlan::Restore),
        (good("main@sha1:1"), None, tidying(false)),
        (good("main@sha1:1"), Some(unknown), tidying(true)),
        (good("main@sha1:1"), Some(known), tidying(false)),
    ] {
        assert_eq!(storage(&stored, shared), expected, "{stored:?} {shared:?}");
    }
    let served = SharedCopy {
        is_served: true,
        ..unknown
    };
    let expected = Tidying {
        serve: false,
        upload: true,
        tidy_shared: true,
    };
    assert_eq!(storage(&good("1"), Some(served)), StoragePlan::Tidy(expected));
}

#[test]
fn plan_builds_on_changes_of_revision_rules_or_storage() {
    let corrupt = || StoredArtifact::Corrupt {
        path: "p".to_owned(),
        wanted: "a".to_owned(),
        found: "b".to_owned(),
    };
    for (stored, revision, ignore, observed, expected) in [
        (
            StoredArtifact::None,
            "main@sha1:1",
            None,
            None,
            Plan::Build(Cause::First),
        ),
        (
            StoredArtifact::Missing,
            "main@sha1:1",
            None,
            None,
            Plan::Build(Cause::Missing),
        ),
        (corrupt(), "main@sha1:1", None, None, Plan::Build(Cause::Corrupt)),
        (good("main@sha1:1"), "main@sha1:1", None, None, Plan::Keep),
        (
            good("main@sha1:1"),
            "main@sha1:1",
            Some("*.md"),
            Some("*.md"),
            Plan::Keep,
        ),
        // Both forms of a revision mean the same.
        (good("main/1"), "main@sha1:1", None, None, Plan::Keep),
        (good("main@sha1:1"), "main/1", None, None, Plan::Keep),
        (good("HEAD/1"), "sha1:1", None, None, Plan::Keep),
        (
            good("main@sha1:1"),
            "main@sha1:2",
            None,
            None,
            Plan::Build(Cause::NewRevision),
        ),
        (
            good("main@sha1:1"),
            "dev@sha1:1",
            None,
            None,
            Plan::Build(Cause::NewRevision),
        ),
        (
            good("main@sha1:1"),
            "main@sha1:1",
            Some("*.md"),
            None,
            Plan::Build(Cause::NewIgnoreRules),
        ),
        (
            good("main@sha1:1"),
            "main@sha1:1",
            None,
            Some("*.md"),
            Plan::Build(Cause::NewIgnoreRules),
        ),
        (
            good("main@sha1:1"),
            "main@sha1:1",
            Some("*.md"),
            Some("*.txt"),
            Plan::Build(Cause::NewIgnoreRules),
        ),
        (
            good("main@sha1:1"),
            "main@sha1:2",
            Some("*.md"),
            None,
            Plan::Build(Cause::NewRevision),
        ),
    ] {
        let wanted = Wanted {
            revision,
            ignore,
            observed_ignore: observed,
            config_changed: false,
            is_verified: true,
            keys_changed: false,
        };
        assert_eq!(plan(&stored, &wanted), expected, "{stored:?} {wanted:?}");
        for (is_verified, keys_changed) in [(true, false), (false, false), (true, true)] {
            let wanted = Wanted {
                is_verified,
                keys_changed,
                ..wanted
            };
            let decision = decide(&stored, &wanted);
            let is_good = is_verified && !keys_changed && expected == Plan::Keep;
            assert_eq!(
                (decision.plan, decision.verify),
                (expected, !is_good),
                "{wanted:?}"
            );
        }
        let wanted = Wanted {
            config_changed: true,
            ..wanted
        };
        let changed = match expected {
            Plan::Keep => Plan::Build(Cause::NewConfiguration),
            build => build,
        };
        assert_eq!(plan(&stored, &wanted), changed, "{stored:?} {wanted:?}");
    }
}
