//! The files of the shared store that this process knows of. Pure.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use artifact::hashes::artifact_of;

/// Returns the name of the artifact that a file is, or has the hashes of.
pub(super) fn base(file: &str) -> &str {
    artifact_of(file).unwrap_or(file)
}

#[derive(Debug, Clone)]
struct Copy {
    since: Instant,
    /// Digest that it certainly has; `None` for a file of a listing.
    digest: Option<String>,
}

#[derive(Debug, Default)]
struct Files {
    /// True if all files of other processes are known.
    is_listed: bool,
    copies: HashMap<String, Copy>,
    /// File that the alias stands for; `None` if that is not known.
    alias: Option<String>,
}

/// The files of all objects in the shared store, by directory, and the paths of the local storage that may be served.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    objects: HashMap<String, Files>,
    served: HashSet<String>,
}

impl Ledger {
    pub(super) fn confirm(&mut self, dir: &str, file: &str, digest: &str, now: Instant) {
        let copy = Copy {
            since: now,
            digest: Some(digest.to_owned()),
        };
        let files = self.objects.entry(dir.to_owned()).or_default();
        files.copies.insert(file.to_owned(), copy);
    }

    /// Returns true if the shared store certainly has a file with this digest.
    pub(super) fn is_confirmed(&self, dir: &str, file: &str, digest: &str) -> bool {
        let copy = self.objects.get(dir).and_then(|files| files.copies.get(file));
        copy.is_some_and(|copy| copy.digest.as_deref() == Some(digest))
    }

    /// Returns true if the files of other processes are to be listed for an object.
    pub(super) fn is_unlisted(&self, dir: &str) -> bool {
        self.objects.get(dir).is_none_or(|files| !files.is_listed)
    }

    /// Notes all files that the shared store has for an object.
    pub(super) fn list(&mut self, dir: &str, names: Vec<String>, now: Instant) {
        self.objects.entry(dir.to_owned()).or_default().is_listed = true;
        self.note(dir, names, now);
    }

    /// Notes files that the shared store may have for an object.
    pub(super) fn note(&mut self, dir: &str, names: Vec<String>, now: Instant) {
        let files = self.objects.entry(dir.to_owned()).or_default();
        for name in names {
            let unknown = Copy {
                since: now,
                digest: None,
            };
            files.copies.entry(name).or_insert(unknown);
        }
    }

    /// Notes the file that the alias of an object stands for; `None` while that is not known.
    pub(super) fn point(&mut self, dir: &str, file: Option<&str>) {
        let files = self.objects.entry(dir.to_owned()).or_default();
        files.alias = file.map(str::to_owned);
    }

    pub(super) fn is_pointed(&self, dir: &str, file: &str) -> bool {
        let files = self.objects.get(dir);
        files.is_some_and(|files| files.alias.as_deref() == Some(file))
    }

    pub(super) fn has_others(&self, dir: &str, current: &str) -> bool {
        let files = self.objects.get(dir);
        files.is_some_and(|files| files.copies.keys().any(|file| base(file) != current))
    }

    /// Returns the files to remove: files that the local storage has not (any more), if this process wrote them, or if it has known them
    /// for the time `ttl` of superseded artifacts.
    pub(super) fn outdated(
        &self,
        dir: &str,
        current: &str,
        local: &[String],
        ttl: Duration,
        now: Instant,
    ) -> Vec<String> {
        let copies = self.objects.get(dir).into_iter().flat_map(|files| &files.copies);
        let goes = copies.filter(|(file, copy)| {
            let is_past = copy.digest.is_some() || now.duration_since(copy.since) > ttl;
            let artifact = base(file);
            artifact != current && !local.iter().any(|name| name == artifact) && is_past
        });
        goes.map(|(file, _)| file.clone()).collect()
    }

    pub(super) fn remove(&mut self, dir: &str, file: &str) {
        if let Some(files) = self.objects.get_mut(dir) {
            files.copies.remove(file);
        }
    }

    pub(super) fn forget(&mut self, dir: &str) {
        self.objects.remove(dir);
        self.served
            .retain(|path| path.strip_prefix(dir).is_none_or(|rest| !rest.starts_with('/')));
    }

    /// Notes that a path of the local storage has the content in the status.
    pub(super) fn serve(&mut self, path: String) {
        self.served.insert(path);
    }

    pub(super) fn is_served(&self, path: &str) -> bool {
        self.served.contains(path)
    }

    /// Forgets that paths of an object may be served, except for the local ones.
    pub(super) fn retain_served(&mut self, dir: &str, is_kept: impl Fn(&str) -> bool) {
        self.served.retain(|path| {
            let rest = path.strip_prefix(dir).and_then(|rest| rest.strip_prefix('/'));
            rest.is_none_or(&is_kept)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIR: &str = "gitrepository/ns/a";
    const TTL: Duration = Duration::from_secs(60);

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn superseded_files_go_with_the_local_ones() {
        let (mut ledger, now) = (Ledger::default(), Instant::now());
        assert!(!ledger.has_others(DIR, "2"));
        for file in ["1", "2"] {
            ledger.confirm(DIR, file, "d", now);
        }
        assert!(ledger.is_confirmed(DIR, "2", "d") && !ledger.is_confirmed(DIR, "2", "e"));
        assert!(ledger.has_others(DIR, "2"));
        let outdated = |ledger: &Ledger, local| ledger.outdated(DIR, "2", &names(local), TTL, now);
        assert_eq!(outdated(&ledger, &["1", "2"]), names(&[]));
        assert_eq!(outdated(&ledger, &["2"]), ["1"]);
        assert_eq!(outdated(&ledger, &[]), ["1"], "the current one stays");
        ledger.remove(DIR, "1");
        assert_eq!(outdated(&ledger, &[]), names(&[]));
    }

    #[test]
    fn files_of_an_earlier_process_stay_for_the_retention_time() {
        let (mut ledger, now) = (Ledger::default(), Instant::now());
        assert!(ledger.is_unlisted(DIR));
        ledger.confirm(DIR, "2", "d", now);
        assert!(ledger.is_unlisted(DIR));
        ledger.list(DIR, names(&["1", "2"]), now);
        assert!(!ledger.is_unlisted(DIR) && ledger.is_confirmed(DIR, "2", "d"));
        let outdated = |passed| ledger.outdated(DIR, "2", &names(&["2"]), TTL, now + passed);
        assert_eq!(outdated(TTL), names(&[]));
        assert_eq!(outdated(TTL + Duration::from_millis(1)), ["1"]);
    }

    #[test]
    fn file_that_was_perhaps_uploaded_goes_when_its_time_is_over() {
        let (mut ledger, now) = (Ledger::default(), Instant::now());
        ledger.confirm(DIR, "1", "d", now);
        ledger.note(DIR, names(&["1", "2"]), now);
        assert!(ledger.is_unlisted(DIR) && ledger.has_others(DIR, "1"));
        assert!(ledger.is_confirmed(DIR, "1", "d") && !ledger.is_confirmed(DIR, "2", "d"));
        let outdated = |passed| ledger.outdated(DIR, "1", &names(&["1"]), TTL, now + passed);
        assert_eq!(outdated(TTL), names(&[]));
        assert_eq!(outdated(TTL + Duration::from_millis(1)), ["2"]);
    }

    #[test]
    fn alias_stands_for_what_was_uploaded_last() {
        let mut ledger = Ledger::default();
        assert!(!ledger.is_pointed(DIR, "1"));
        ledger.point(DIR, Some("1"));
        assert!(ledger.is_pointed(DIR, "1") && !ledger.is_pointed(DIR, "2"));
        ledger.point(DIR, None);
        assert!(!ledger.is_pointed(DIR, "1"));
    }

    #[test]
    fn paths_of_one_object_are_forgotten() {
        let mut ledger = Ledger::default();
        let paths = [
            "gitrepository/ns/a/1",
            "gitrepository/ns/a/latest.tar.gz",
            "gitrepository/ns/ab/1",
        ];
        for path in paths {
            ledger.serve(path.to_owned());
        }
        ledger.retain_served(DIR, |file| file == "1");
        assert_eq!(paths.map(|path| ledger.is_served(path)), [true, false, true]);
        ledger.forget(DIR);
        assert_eq!(paths.map(|path| ledger.is_served(path)), [false, false, true]);
    }
}
