//! The commits of the repositories that a render fetched.

use std::{collections::BTreeMap, sync::Arc};

use kluctl::{GitReference, SourceAddress};
use parking_lot::Mutex;

const MAX_REFERENCES: usize = 100;
/// Maximum length of a recorded URL or reference in bytes; longer ones are not recorded.
const MAX_TEXT: usize = 512;

/// Collects the commits of Git repositories that renders fetch. Clones share the collection.
#[derive(Debug, Clone, Default)]
pub struct PinnedSources(Arc<Mutex<BTreeMap<(String, String), String>>>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedSource {
    pub url: String,
    /// Reference as the project names it: `HEAD`, a branch, a tag or a commit.
    pub reference: String,
    pub commit: String,
}

impl PinnedSources {
    /// Returns the commits, sorted by URL and reference; at most 100.
    #[must_use]
    pub fn list(&self) -> Vec<PinnedSource> {
        let pinned = self.0.lock();
        let sources = pinned.iter().map(|((url, reference), commit)| PinnedSource {
            url: url.clone(),
            reference: reference.clone(),
            commit: commit.clone(),
        });
        sources.collect()
    }

    pub(crate) fn record(&self, address: &SourceAddress, commit: Option<&str>) {
        let (SourceAddress::Git { url, reference }, Some(commit)) = (address, commit) else {
            return;
        };
        let reference = match reference {
            GitReference::Head => "HEAD",
            GitReference::Branch(name) | GitReference::Tag(name) | GitReference::Name(name) => name,
            GitReference::Commit(id) => id,
        };
        let url = api::redact(url);
        let mut pinned = self.0.lock();
        if pinned.len() < MAX_REFERENCES && url.len() <= MAX_TEXT && reference.len() <= MAX_TEXT {
            pinned.insert((url, reference.to_owned()), commit.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_sources_are_bounded_and_have_no_credentials() {
        let pinned = PinnedSources::default();
        let git = |url: &str, reference| SourceAddress::Git {
            url: url.to_owned(),
            reference,
        };
        pinned.record(&git("https://me:s3cret@h.io/a", GitReference::Head), Some("1"));
        pinned.record(&git("https://h.io/a", GitReference::Tag("v1".to_owned())), None);
        pinned.record(
            &git(&format!("https://h.io/{}", "a".repeat(600)), GitReference::Head),
            Some("1"),
        );
        let found = pinned.list();
        assert_eq!(found.len(), 1);
        assert!(!format!("{found:?}").contains("s3cret"));
        for i in 0..500 {
            pinned.record(
                &git("https://h.io/b", GitReference::Branch(i.to_string())),
                Some("2"),
            );
        }
        assert_eq!(pinned.list().len(), 100);
    }
}
