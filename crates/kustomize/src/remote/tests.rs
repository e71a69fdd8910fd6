use super::*;

fn parsed(entry: &str) -> (String, String, Option<String>) {
    let found = parse(entry).unwrap_or_else(|error| panic!("{entry}: {error}"));
    (found.url, found.path, found.reference)
}

#[test]
fn repository_addresses_are_parsed() {
    for (entry, url, path, reference) in [
        // GitHub, in all of its forms.
        ("github.com/o/r", "https://github.com/o/r", "", None),
        ("GitHub.com:o/r/d/e", "https://github.com/o/r", "d/e", None),
        (
            "http://github.com/o/r.git/d",
            "https://github.com/o/r.git",
            "d",
            None,
        ),
        (
            "hTTps://github.com/o/r?ref=v1",
            "https://github.com/o/r",
            "",
            Some("v1"),
        ),
        ("git@github.com:o/r/d", "git@github.com:o/r", "d", None),
        ("git@github.com/o/r.git//d", "git@github.com:o/r.git", "d", None),
        ("org-1@github.com/o/r", "org-1@github.com:o/r", "", None),
        ("ssh://git@github.com/o/r//d", "git@github.com:o/r", "d", None),
        ("ssh://github.com/o/r", "github.com:o/r", "", None),
        ("git::git@github.com:o/r", "git@github.com:o/r", "", None),
        ("https://user@github.com/o/r", "user@github.com:o/r", "", None),
        // Others.
        (
            "https://example.com/o/r/d?ref=a/b",
            "https://example.com/o/r",
            "d",
            Some("a/b"),
        ),
        (
            "git::https://example.com/o/r",
            "https://example.com/o/r",
            "",
            None,
        ),
        ("GIT::http://example.com/o/r", "http://example.com/o/r", "", None),
        (
            "https://example.com/a/b/c.git/d/e",
            "https://example.com/a/b/c.git",
            "d/e",
            None,
        ),
        (
            "https://example.com/a/b/c//d//e",
            "https://example.com/a/b/c",
            "d//e",
            None,
        ),
        (
            "https://example.com/a/r///d",
            "https://example.com/a/r",
            "d",
            None,
        ),
        (
            "https://example.com/c/p/_git/r/d/e",
            "https://example.com/c/p/_git/r",
            "d/e",
            None,
        ),
        (
            "https://example.com/c/_git/r?version=v2",
            "https://example.com/c/_git/r",
            "",
            Some("v2"),
        ),
        (
            "https://u:p@example.com/o/r/d",
            "https://u:p@example.com/o/r",
            "d",
            None,
        ),
        (
            "ssh://git.example.com:7999/o/r",
            "ssh://git.example.com:7999/o/r",
            "",
            None,
        ),
        (
            "git@example.com:a/b/c.git?ref=x",
            "git@example.com:a/b/c.git",
            "",
            Some("x"),
        ),
        ("git@example.com/a/b.git//d", "git@example.com/a/b.git", "d", None),
        ("git@example.com/a:b/c/d", "git@example.com/a:b/c", "d", None),
        ("https://example.com/o/r/", "https://example.com/o/r", "", None),
        ("https://example.com/o/", "https://example.com/o/", "", None),
        // Files.
        ("file:///a/b/c?ref=x", "file:///a/b/c", "", Some("x")),
        ("file://a/b/c//d", "file://a/b/c", "d", None),
        ("file:///a/r.git/d", "file:///a/r.git", "d", None),
        ("FILE://me@a/b", "file://me@a/b", "", None),
        // Directories that come back into the repository.
        (
            "https://example.com/o/r//a/../b",
            "https://example.com/o/r",
            "a/../b",
            None,
        ),
        (
            "https://example.com/o/r////..",
            "https://example.com/o/r",
            "/..",
            None,
        ),
    ] {
        let expected = (url.to_owned(), path.to_owned(), reference.map(str::to_owned));
        assert_eq!(parsed(entry), expected, "{entry}");
    }
}

#[test]
fn paths_and_incomplete_addresses_are_refused() {
    for (entry, expected) in [
        ("/abs/path", NoRepository::Absolute),
        ("../up", NoRepository::Scheme),
        ("dir/file.yaml", NoRepository::Scheme),
        ("src/github.com/o/r", NoRepository::Scheme),
        ("github.com!o/r.git//d", NoRepository::Scheme),
        ("gh:o/r", NoRepository::Scheme),
        ("ftp://example.com/o/r", NoRepository::Scheme),
        ("git::x", NoRepository::Scheme),
        ("", NoRepository::Scheme),
        ("1user@example.com:o/r", NoRepository::Scheme),
        ("https://", NoRepository::Host),
        ("https://?ref=x", NoRepository::Host),
        ("https://example.com", NoRepository::Path),
        ("https://example.com?ref=a/b", NoRepository::Path),
        ("https://github.com/one.yaml", NoRepository::Path),
        ("https://example.com///x", NoRepository::Path),
        ("file:////a//b", NoRepository::Path),
        ("file://", NoRepository::Path),
        ("git@ssh://github.com/o/r.git//d", NoRepository::Path),
        ("https://github.com/o/r.git//d/../../up", NoRepository::Exits),
        ("https://example.com/o/r/..", NoRepository::Exits),
    ] {
        assert_eq!(parse(entry), Err(expected), "{entry}");
    }
}

#[test]
fn query_parameters_set_the_fetch_options() {
    for (query, reference, submodules, timeout) in [
        ("", None, true, 27),
        ("ref=a&version=b", Some("a"), true, 27),
        ("version=b&ref=", Some("b"), true, 27),
        ("ref=one&ref=two", Some("one"), true, 27),
        ("ref=a%2Fb+c", Some("a/b c"), true, 27),
        ("submodules=false", None, false, 27),
        ("submodules=0&timeout=61", None, false, 61),
        ("submodules=no", None, true, 27),
        ("timeout=1m30s", None, true, 90),
        ("timeout=1.5h", None, true, 5400),
        ("timeout=100ms", None, true, 1),
        ("timeout=0", None, true, 27),
        ("timeout=-5", None, true, 27),
        ("timeout=5x", None, true, 27),
        ("timeout=.", None, true, 27),
        ("timeout=99999999999h", None, true, 27),
        // One malformed parameter invalidates all.
        ("ref=a&timeout=%zz", None, true, 27),
        ("ref=a;b", None, true, 27),
    ] {
        let found = parse(&format!("https://example.com/o/r?{query}")).unwrap();
        let expected = (reference.map(str::to_owned), submodules, timeout);
        let found = (found.reference, found.submodules, found.timeout_seconds);
        assert_eq!(found, expected, "{query}");
    }
}

#[test]
fn redacted_addresses_have_no_secrets() {
    for (entry, expected) in [
        (
            "https://user:pass@example.com/o/r?ref=x&token=y",
            "https://example.com/o/r",
        ),
        (
            "git::https://token@example.com/o/r",
            "git::https://example.com/o/r",
        ),
        ("https://a@b@example.com", "https://example.com"),
        ("git@example.com:o/r", "git@example.com:o/r"),
        ("git::git@example.com:o/r", "git::git@example.com:o/r"),
        ("token@github.com/o/r", "github.com/o/r"),
        ("../dir@1/x", "../dir@1/x"),
        ("dir", "dir"),
    ] {
        assert_eq!(redact_address(entry), expected, "{entry}");
    }
}

#[test]
fn recorded_origins_have_no_secrets() {
    for (entry, expected) in [
        (
            "https://user:pass@example.com/o/r?ref=x",
            "https://example.com/o/r",
        ),
        ("https://example.com/o/r", "https://example.com/o/r"),
        ("ssh://me@example.com/o/r", "ssh://me@example.com/o/r"),
        ("me@example.com:o/r", "me@example.com:o/r"),
    ] {
        assert_eq!(parse(entry).unwrap().clone_spec(), expected, "{entry}");
    }
}
