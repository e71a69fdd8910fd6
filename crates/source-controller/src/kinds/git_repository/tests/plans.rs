use api::Artifact;

use crate::kinds::git_repository::plan::{Held, Plan, Wanted, Why, plan};

fn good(revision: &str) -> Held {
    let artifact = Artifact {
        revision: revision.to_owned(),
        ..Artifact::default()
    };
    Held::Good {
        artifact,
        file: "1.tar.gz".to_owned(),
    }
}

#[test]
fn a_plan_follows_from_what_is_held_and_what_is_wanted() {
    let corrupt = || Held::Corrupt {
        wanted: "a".to_owned(),
        found: "b".to_owned(),
    };
    for (held, revision, ignore, observed, expected) in [
        (Held::Nothing, "main@sha1:1", None, None, Plan::Build(Why::First)),
        (
            Held::Missing,
            "main@sha1:1",
            None,
            None,
            Plan::Build(Why::Missing),
        ),
        (corrupt(), "main@sha1:1", None, None, Plan::Build(Why::Corrupt)),
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
            Plan::Build(Why::NewRevision),
        ),
        (
            good("main@sha1:1"),
            "dev@sha1:1",
            None,
            None,
            Plan::Build(Why::NewRevision),
        ),
        (
            good("main@sha1:1"),
            "main@sha1:1",
            Some("*.md"),
            None,
            Plan::Build(Why::NewRules),
        ),
        (
            good("main@sha1:1"),
            "main@sha1:1",
            None,
            Some("*.md"),
            Plan::Build(Why::NewRules),
        ),
        (
            good("main@sha1:1"),
            "main@sha1:1",
            Some("*.md"),
            Some("*.txt"),
            Plan::Build(Why::NewRules),
        ),
        (
            good("main@sha1:1"),
            "main@sha1:2",
            Some("*.md"),
            None,
            Plan::Build(Why::NewRevision),
        ),
    ] {
        let wanted = Wanted {
            revision,
            ignore,
            observed_ignore: observed,
        };
        assert_eq!(plan(&held, &wanted), expected, "{held:?} {wanted:?}");
    }
}
