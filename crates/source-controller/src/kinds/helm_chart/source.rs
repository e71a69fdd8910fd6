//! The artifact that a chart comes from. Its content may change at the same revision: includes and ignore rules are not part of it.

use std::collections::{BTreeMap, HashMap};

use api::Artifact;
use parking_lot::Mutex;

/// Metadata of a chart's artifact.
const REVISION: &str = "weir.io/source-revision";
const DIGEST: &str = "weir.io/source-digest";

const DIGITS: usize = 12;
const MAX_SEEN: usize = 10_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChartArtifact {
    revision: String,
    digest: String,
}

impl ChartArtifact {
    pub(super) fn new(artifact: &Artifact) -> Self {
        Self {
            revision: artifact.revision.clone(),
            digest: artifact.digest.clone().unwrap_or_default(),
        }
    }

    /// Returns the artifact that a stored chart was packaged from, if that was recorded.
    pub(super) fn of_stored(chart: &Artifact) -> Option<Self> {
        Some(Self {
            revision: chart.metadata.get(REVISION)?.clone(),
            digest: chart.metadata.get(DIGEST)?.clone(),
        })
    }

    pub(super) fn metadata(&self) -> BTreeMap<String, String> {
        let fields = [(REVISION, &self.revision), (DIGEST, &self.digest)];
        let fields = fields.map(|(key, value)| (key.to_owned(), value.clone()));
        BTreeMap::from(fields)
    }

    /// Returns the first digits of the digest, which distinguish the version of a chart, if the stored chart was packaged from other content
    /// of the same revision, or has these digits already.
    pub(super) fn digest_part(&self, stored: Option<&Artifact>, seen: Option<&Self>) -> Option<String> {
        let stored = stored?;
        let hex = self.digest.rsplit(':').next().unwrap_or_default();
        let part: String = hex.chars().take(DIGITS).collect();
        let is_other = |past: &Self| past.revision == self.revision && past.digest != self.digest;
        let is_named = !part.is_empty() && stored.revision.contains(&part);
        let is_changed = Self::of_stored(stored).as_ref().is_some_and(is_other) || seen.is_some_and(is_other);
        (is_named || is_changed).then_some(part)
    }
}

/// The artifacts in which the stored charts of objects were found to be up to date, by namespace and name. They save looking into them again.
#[derive(Debug, Default)]
pub(super) struct SeenArtifacts(Mutex<HashMap<(String, String), ChartArtifact>>);

impl SeenArtifacts {
    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<ChartArtifact> {
        self.0
            .lock()
            .get(&(namespace.to_owned(), name.to_owned()))
            .cloned()
    }

    pub(super) fn remember(&self, namespace: &str, name: &str, artifact: ChartArtifact) {
        let mut seen = self.0.lock();
        if seen.len() >= MAX_SEEN {
            seen.clear();
        }
        seen.insert((namespace.to_owned(), name.to_owned()), artifact);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(revision: &str, digest: &str) -> Artifact {
        Artifact {
            revision: revision.to_owned(),
            digest: Some(digest.to_owned()),
            ..Artifact::default()
        }
    }

    #[test]
    fn other_content_of_the_same_revision_has_its_own_version() {
        let of = |revision: &str, digest: &str| ChartArtifact::new(&artifact(revision, digest));
        let (first, second) = (
            of("main@sha1:1", "sha256:aa"),
            of("main@sha1:1", "sha256:bbbbbbbbbbbbbbbbb"),
        );
        let stored = |version: &str, from: Option<&ChartArtifact>| Artifact {
            metadata: from.map(ChartArtifact::metadata).unwrap_or_default(),
            ..artifact(version, "sha256:00")
        };
        let part = Some("bbbbbbbbbbbb".to_owned());
        let plain = stored("1.0.0+1", Some(&first));
        assert_eq!(ChartArtifact::of_stored(&plain).as_ref(), Some(&first));
        for (chart, seen, expected) in [
            (Some(plain), None, part.clone()),
            (
                Some(stored("1.0.0+1.bbbbbbbbbbbb", Some(&second))),
                None,
                part.clone(),
            ),
            (Some(stored("1.0.0+1", None)), Some(&first), part),
            (Some(stored("1.0.0+1", None)), Some(&second), None),
            (Some(stored("1.0.0+1", Some(&second))), None, None),
            (
                Some(stored("1.0.0+1", Some(&of("main@sha1:0", "sha256:aa")))),
                None,
                None,
            ),
            (Some(stored("1.0.0+1", None)), None, None),
            (None, Some(&first), None),
        ] {
            assert_eq!(second.digest_part(chart.as_ref(), seen), expected, "{chart:?}");
        }
    }
}
