//! Revisions of sources: `main@sha1:<hash>`, or `main/<hash>` in releases before 0.36. Readers treat both alike.

use std::borrow::Cow;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Style {
    /// `main@sha1:<hash>`, or `sha1:<hash>` without a name.
    #[default]
    Rfc5,
    /// `main/<hash>`, or `HEAD/<hash>` without a name.
    Legacy,
}

/// Formats the revision of a commit; `name` is the branch, tag or reference that it was found by.
#[must_use]
pub fn write(style: Style, name: Option<&str>, commit: &str) -> String {
    let name = name.filter(|name| !name.is_empty());
    match (style, name) {
        (Style::Rfc5, Some(name)) => format!("{name}@{}:{commit}", algorithm(commit)),
        (Style::Rfc5, None) => format!("{}:{commit}", algorithm(commit)),
        (Style::Legacy, name) => format!("{}/{commit}", name.unwrap_or("HEAD")),
    }
}

#[must_use]
pub fn normalise(revision: &str) -> Cow<'_, str> {
    if revision.is_empty() || revision.contains(':') {
        return Cow::Borrowed(revision);
    }
    let (name, commit) = match revision.rsplit_once('/') {
        Some(("HEAD", commit)) => (None, commit),
        Some((name, commit)) => (Some(name), commit),
        None => (None, revision),
    };
    Cow::Owned(write(Style::Rfc5, name, commit))
}

/// Returns true if two revisions are the same, in whatever format.
#[must_use]
pub fn same(a: &str, b: &str) -> bool {
    normalise(a) == normalise(b)
}

/// Returns the hash in a revision; the whole string if there is nothing else.
#[must_use]
pub fn commit(revision: &str) -> &str {
    match revision.rsplit_once(':') {
        Some((_, hash)) => hash,
        None => revision.rsplit_once('/').map_or(revision, |(_, hash)| hash),
    }
}

#[must_use]
pub fn name(revision: &str) -> Option<&str> {
    let name = match revision.rsplit_once('@') {
        Some((name, digest)) if digest.contains(':') => name,
        _ if revision.contains(':') => return None,
        _ => revision.rsplit_once('/')?.0,
    };
    (name != "HEAD" && !name.is_empty()).then_some(name)
}

fn algorithm(commit: &str) -> &'static str {
    if commit.len() == 64 { "sha256" } else { "sha1" }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHA: &str = "5394cb7f48332b2de7c17dd8b8384bbc84b7e738";

    #[test]
    fn revisions_of_both_styles_are_read_and_written() {
        let cases = [
            (Some("main"), format!("main@sha1:{SHA}"), format!("main/{SHA}")),
            (Some("v1.0"), format!("v1.0@sha1:{SHA}"), format!("v1.0/{SHA}")),
            (
                Some("refs/heads/main"),
                format!("refs/heads/main@sha1:{SHA}"),
                format!("refs/heads/main/{SHA}"),
            ),
            (None, format!("sha1:{SHA}"), format!("HEAD/{SHA}")),
            (
                Some("user@feature"),
                format!("user@feature@sha1:{SHA}"),
                format!("user@feature/{SHA}"),
            ),
        ];
        for (pointer, rfc5, legacy) in cases {
            assert_eq!(write(Style::Rfc5, pointer, SHA), rfc5);
            assert_eq!(write(Style::Legacy, pointer, SHA), legacy);
            assert_eq!(normalise(&legacy), rfc5);
            assert_eq!(normalise(&rfc5), rfc5);
            assert!(same(&rfc5, &legacy));
            for text in [&rfc5, &legacy] {
                assert_eq!((name(text), commit(text)), (pointer, SHA), "{text}");
            }
        }
    }

    #[test]
    fn unusual_revisions_are_normalised() {
        assert_eq!(normalise(""), "");
        assert_eq!(normalise(SHA), format!("sha1:{SHA}"));
        assert_eq!(
            normalise(&format!("feature/branch/{SHA}")),
            format!("feature/branch@sha1:{SHA}")
        );
        assert_eq!(write(Style::Rfc5, Some(""), SHA), format!("sha1:{SHA}"));
        assert_eq!(
            write(Style::Rfc5, None, &"a".repeat(64)),
            format!("sha256:{}", "a".repeat(64))
        );
        assert!(!same(&format!("main/{SHA}"), &format!("dev/{SHA}")));
        assert_eq!((name(SHA), commit(SHA)), (None, SHA));
    }
}
