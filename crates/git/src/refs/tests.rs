use super::*;

fn hash(n: u8) -> String {
    format!("{n:02x}").repeat(20)
}

fn listed(name: &str, n: u8) -> Advertised {
    Advertised {
        name: name.to_owned(),
        object: hash(n),
        peeled: None,
        target: None,
    }
}

fn annotated(name: &str, tag: u8, commit: u8) -> Advertised {
    Advertised {
        name: name.to_owned(),
        object: hash(tag),
        peeled: Some(hash(commit)),
        target: None,
    }
}

fn refs() -> Vec<Advertised> {
    vec![
        listed("HEAD", 1),
        listed("refs/heads/master", 1),
        listed("refs/heads/main", 2),
        listed("refs/heads/feature/x", 3),
        listed("refs/pull/420/head", 4),
        listed("refs/tags/non-semver-tag", 10),
        annotated("refs/tags/v0.1.0", 111, 11),
        listed("refs/tags/0.2.0", 12),
        listed("refs/tags/v0.2.1", 13),
        listed("refs/tags/v1.0.0-alpha", 14),
        listed("refs/tags/v1.1.0", 15),
        listed("refs/tags/v2.0.0", 16),
    ]
}

fn selector(fields: &[(&str, &str)]) -> Selector {
    let mut selector = Selector::default();
    for (field, value) in fields {
        let value = Some((*value).to_owned());
        match *field {
            "branch" => selector.branch = value,
            "tag" => selector.tag = value,
            "semver" => selector.semver = value,
            "name" => selector.name = value,
            _ => selector.commit = value,
        }
    }
    selector
}

fn revision(fields: &[(&str, &str)]) -> Result<String, Error> {
    select(&selector(fields).reference()?, &refs()).map(|resolved| resolved.revision())
}

#[test]
fn each_kind_of_reference_is_selected_with_its_revision() {
    let commit = hash(9);
    let cases: &[(&[(&str, &str)], String)] = &[
        (&[], format!("master@sha1:{}", hash(1))),
        (&[("branch", "")], format!("master@sha1:{}", hash(1))),
        (&[("branch", "main")], format!("main@sha1:{}", hash(2))),
        (&[("branch", "feature/x")], format!("feature/x@sha1:{}", hash(3))),
        (&[("tag", "v0.2.1")], format!("v0.2.1@sha1:{}", hash(13))),
        (&[("tag", "v0.1.0")], format!("v0.1.0@sha1:{}", hash(11))),
        (
            &[("name", "refs/heads/main")],
            format!("refs/heads/main@sha1:{}", hash(2)),
        ),
        (
            &[("name", "refs/pull/420/head")],
            format!("refs/pull/420/head@sha1:{}", hash(4)),
        ),
        (
            &[("name", "refs/tags/v0.1.0^{}")],
            format!("refs/tags/v0.1.0^{{}}@sha1:{}", hash(11)),
        ),
        (&[("name", "HEAD")], format!("HEAD@sha1:{}", hash(1))),
        (&[("commit", &commit)], format!("sha1:{commit}")),
        (
            &[("commit", &commit), ("branch", "main")],
            format!("main@sha1:{commit}"),
        ),
        (&[("semver", "*")], format!("v2.0.0@sha1:{}", hash(16))),
        (&[("semver", "<v0.2.1")], format!("0.2.0@sha1:{}", hash(12))),
        (
            &[("semver", ">=1.0.0-0 <1.1.0-0")],
            format!("v1.0.0-alpha@sha1:{}", hash(14)),
        ),
        // The first of commit, name, tag, semver, branch counts.
        (
            &[("branch", "main"), ("semver", "*")],
            format!("v2.0.0@sha1:{}", hash(16)),
        ),
        (
            &[("semver", "*"), ("tag", "v0.2.1")],
            format!("v0.2.1@sha1:{}", hash(13)),
        ),
        (
            &[("tag", "v0.2.1"), ("name", "refs/heads/main")],
            format!("refs/heads/main@sha1:{}", hash(2)),
        ),
        (
            &[("name", "refs/heads/main"), ("commit", &commit)],
            format!("sha1:{commit}"),
        ),
    ];
    for (fields, expected) in cases {
        assert_eq!(revision(fields).as_ref(), Ok(expected), "{fields:?}");
    }
}

#[test]
fn legacy_revisions_keep_their_old_form() {
    let resolved = |name: Option<&str>| Resolved {
        name: name.map(str::to_owned),
        commit: hash(1),
        want: hash(1),
    };
    assert_eq!(
        resolved(Some("main")).legacy_revision(),
        format!("main/{}", hash(1))
    );
    assert_eq!(resolved(None).legacy_revision(), format!("HEAD/{}", hash(1)));
}

#[test]
fn an_annotated_tag_is_asked_for_by_its_own_hash() {
    let resolved = select(&Reference::Tag("v0.1.0".to_owned()), &refs()).unwrap();
    assert_eq!((resolved.want, resolved.commit), (hash(111), hash(11)));
}

#[test]
fn missing_references_are_named() {
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[("branch", "nope")], "branch 'nope' not found"),
        (&[("tag", "v9")], "tag 'v9' not found"),
        (&[("name", "refs/heads/nope")], "ref 'refs/heads/nope' not found"),
        (&[("semver", ">9")], "no match found for semver: >9"),
    ];
    for (fields, expected) in cases {
        let message = revision(fields).unwrap_err().to_string();
        assert!(message.starts_with(expected), "{message}");
    }
}

#[test]
fn invalid_references_are_refused() {
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[("commit", "abc")], "40 hexadecimal digits"),
        (
            &[("commit", "zz00000000000000000000000000000000000000")],
            "40 hexadecimal digits",
        ),
        (
            &[("name", "/refs/heads/main")],
            "cannot begin or end with a slash",
        ),
        (
            &[("name", "refs/heads/main/")],
            "cannot begin or end with a slash",
        ),
        (&[("branch", "a..b")], "is invalid"),
        (&[("branch", "a\nb")], "is invalid"),
        (&[("tag", "a b")], "is invalid"),
        (&[("semver", "not a range")], "semver parse error"),
    ];
    for (fields, expected) in cases {
        let error = selector(fields).reference().unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn versions_by_date_are_versions_and_plain_dates_are_none() {
    let tags = ["20240101", "v2025.02.03", "2025.1.9", "1.2"];
    let refs: Vec<_> = (1..)
        .zip(tags)
        .map(|(number, tag)| listed(&format!("refs/tags/{tag}"), number))
        .collect();
    let range = Range::parse(">=1.0.0").unwrap();
    let found = select(&Reference::Semver(range), &refs).unwrap();
    assert_eq!(found.revision(), format!("v2025.02.03@sha1:{}", hash(2)));
}

#[test]
fn equal_versions_are_decided_whatever_their_order() {
    let range = Range::parse("1.0.0").unwrap();
    let mut refs = vec![listed("refs/tags/1.0.0+a", 1), listed("refs/tags/1.0.0+b", 2)];
    let first = select(&Reference::Semver(range.clone()), &refs).unwrap();
    refs.reverse();
    assert_eq!(first, select(&Reference::Semver(range), &refs).unwrap());
}

#[test]
fn a_hint_names_a_few_of_the_same_kind() {
    let branch = Reference::Branch("x".to_owned());
    assert_eq!(
        describe(&branch, &refs()),
        ": its branches are master, main, feature/x"
    );
    let tag = Reference::Tag("x".to_owned());
    let tags = describe(&tag, &refs());
    assert_eq!(
        tags,
        ": its tags are non-semver-tag, v0.1.0, 0.2.0, v0.2.1, v1.0.0-alpha, ..."
    );
    assert_eq!(
        describe(&tag, &[listed("refs/heads/main", 1)]),
        ": it has no tags"
    );
}

#[test]
fn search_among_many_tags_is_polled_by_its_steps_and_ends_with_the_poll() {
    let listed = |patch: usize| Advertised {
        name: format!("refs/tags/1.0.{patch}"),
        object: "a".repeat(40),
        peeled: None,
        target: None,
    };
    let refs: Vec<Advertised> = (0..20_000).map(listed).collect();
    let reference = Reference::Semver(Range::parse(&"!=1.0.19999 ".repeat(100)).unwrap());
    let mut polls = 0_u64;
    let found = select_polling(
        &reference,
        &refs,
        |_| false,
        || {
            polls += 1;
            Ok(())
        },
    );
    assert_eq!(found.unwrap().name.as_deref(), Some("1.0.19998"));
    assert!(polls >= 20_000 * 100 / STEPS, "{polls}");
    let mut left = 3;
    let ended = select_polling(
        &reference,
        &refs,
        |_| false,
        || {
            left -= 1;
            match left {
                0 => Err(Error::Cancelled {
                    url: "https://h.io".to_owned(),
                }),
                _ => Ok(()),
            }
        },
    );
    assert!(matches!(ended, Err(Error::Cancelled { .. })));
}
