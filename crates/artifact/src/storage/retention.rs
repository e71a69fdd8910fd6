//! Retention of superseded artifacts.

use std::time::{Duration, SystemTime};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredFile {
    pub(super) name: String,
    pub(super) modified: SystemTime,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Maximum age of a superseded artifact.
    pub ttl: Duration,
    /// Maximum number of artifacts, including the current one.
    pub records: usize,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(60),
            records: 2,
        }
    }
}

impl Retention {
    /// Returns the names to remove: expired ones, and then the oldest beyond the maximum number. The current one stays.
    pub(super) fn garbage(&self, mut files: Vec<StoredFile>, current: &str, now: SystemTime) -> Vec<String> {
        files.retain(|file| file.name != current);
        // Newest first; the name decides between equal times.
        files.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.name.cmp(&b.name)));
        let old = |file: &StoredFile| now.duration_since(file.modified).is_ok_and(|age| age > self.ttl);
        let others = self.records.max(1) - 1;
        let goes = files
            .iter()
            .enumerate()
            .filter(|(index, file)| *index >= others || old(file));
        goes.map(|(_, file)| file.name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retention_removes_old_and_excess_artifacts_but_not_the_current() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
        type Case<'a> = (&'a [(&'a str, u64)], &'a [&'a str]);
        let cases: &[Case<'_>] = &[
            (&[("cur", 0)], &[]),
            (&[("cur", 5), ("a", 10)], &[]),
            (&[("cur", 5), ("a", 61)], &["a"]),
            (&[("cur", 500), ("a", 10), ("b", 20), ("c", 30)], &["b", "c"]),
            (&[("cur", 5), ("b", 10), ("a", 10)], &["b"]),
            (&[("a", 10), ("b", 20)], &["b"]),
        ];
        for (files, expected) in cases {
            let files = files.iter().map(|(name, age)| StoredFile {
                name: (*name).to_owned(),
                modified: now - Duration::from_secs(*age),
            });
            let garbage = Retention::default().garbage(files.collect(), "cur", now);
            assert_eq!(garbage, *expected);
        }
    }

    #[test]
    fn no_number_of_records_removes_the_current() {
        let retention = Retention {
            ttl: Duration::ZERO,
            records: 0,
        };
        let file = StoredFile {
            name: "cur".to_owned(),
            modified: SystemTime::UNIX_EPOCH,
        };
        assert_eq!(
            retention.garbage(vec![file], "cur", SystemTime::now()),
            Vec::<String>::new()
        );
    }
}
