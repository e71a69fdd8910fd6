//! Remembers the capabilities that HTTP servers announced, so that a later session lists refs with its first request.
//!
//! With protocol 2, a client asks for the capabilities (`info/refs`) before it lists refs. They hardly ever change, and belong
//! to the server: a repository is listed with the capabilities of another one. They contain no secrets: the server checks
//! credentials when refs are listed. A list that fails is repeated with both requests; the repository is then asked for its own
//! capabilities from then on.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use parking_lot::Mutex;
use url::Url;

const MAX_ENTRIES: usize = 4096;
/// Maximum size of an announcement in bytes; Git's has about 200.
const MAX_BYTES: usize = 1024;
const AGE: Duration = Duration::from_secs(3600);

/// URL of a repository or server, and the number of the HTTP client (certificates and proxy).
type Key = (u64, String);

#[derive(Debug, Clone, Default)]
pub(crate) struct Announcements(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    servers: HashMap<Key, (Instant, Bytes)>,
    /// Repositories that differ from their server: their announcement, `None` if it must not be repeated.
    repositories: HashMap<Key, (Instant, Option<Bytes>)>,
}

impl Announcements {
    /// Returns the announcement of a repository, for one session.
    pub(crate) fn of(&self, client: u64, url: &Url) -> Announcement {
        Announcement {
            all: self.clone(),
            repository: (client, url.as_str().to_owned()),
            server: (client, url.origin().ascii_serialization()),
            received: Mutex::default(),
            is_repeated: AtomicBool::new(false),
        }
    }
}

impl Known {
    fn get(&self, repository: &Key, server: &Key, now: Instant) -> Option<Bytes> {
        if let Some((until, own)) = self.repositories.get(repository)
            && *until > now
        {
            return own.clone();
        }
        let (until, body) = self.servers.get(server)?;
        (*until > now).then(|| body.clone())
    }

    fn remember(&mut self, repository: Key, server: Key, body: Bytes, now: Instant) {
        let known = self.servers.get(&server).filter(|(until, _)| *until > now);
        match known {
            Some((_, of_server)) if *of_server != body => {
                insert(&mut self.repositories, repository, Some(body), now);
            }
            Some(_) => {
                self.repositories.remove(&repository);
            }
            None => {
                self.repositories.remove(&repository);
                insert(&mut self.servers, server, body, now);
            }
        }
    }

    fn forget(&mut self, repository: &Key, now: Instant) {
        insert(&mut self.repositories, repository.clone(), None, now);
    }
}

fn insert<T>(all: &mut HashMap<Key, (Instant, T)>, key: Key, value: T, now: Instant) {
    if all.len() >= MAX_ENTRIES {
        all.retain(|_, (until, _)| *until > now);
    }
    if all.len() >= MAX_ENTRIES
        && let Some(other) = all.keys().next().cloned()
    {
        all.remove(&other);
    }
    all.insert(key, (now + AGE, value));
}

#[derive(Debug)]
pub(crate) struct Announcement {
    all: Announcements,
    repository: Key,
    server: Key,
    /// The answer received so far; `None` if it can't be repeated.
    received: Mutex<Option<Vec<u8>>>,
    is_repeated: AtomicBool,
}

impl Announcement {
    pub(crate) fn repeated(&self) -> Option<Bytes> {
        let body = self
            .all
            .0
            .lock()
            .get(&self.repository, &self.server, Instant::now())?;
        self.is_repeated.store(true, Ordering::Relaxed);
        Some(body)
    }

    pub(crate) fn start(&self) {
        *self.received.lock() = Some(Vec::new());
    }

    pub(crate) fn receive(&self, bytes: &[u8]) {
        let mut received = self.received.lock();
        match received.as_mut() {
            Some(all) if all.len() + bytes.len() <= MAX_BYTES => all.extend_from_slice(bytes),
            _ => *received = None,
        }
    }

    /// Discards the recorded part: the server is another one, or has an older protocol.
    pub(crate) fn discard(&self) {
        *self.received.lock() = None;
    }

    pub(crate) fn remember(&self) {
        if let Some(body) = self.received.lock().take() {
            let (repository, server) = (self.repository.clone(), self.server.clone());
            self.all
                .0
                .lock()
                .remember(repository, server, body.into(), Instant::now());
        }
    }

    /// Drops the answer of an earlier session. Returns true if this session used it.
    pub(crate) fn forget(&self) -> bool {
        self.all.0.lock().forget(&self.repository, Instant::now());
        self.is_repeated.swap(false, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(all: &Announcements, client: u64, url: &str) -> Announcement {
        all.of(client, &Url::parse(url).unwrap())
    }

    fn answer(announcement: &Announcement, body: &[u8]) {
        announcement.start();
        announcement.receive(body);
        announcement.remember();
    }

    #[test]
    fn announcement_is_repeated_for_all_repositories_of_the_server() {
        let all = Announcements::default();
        answer(&of(&all, 1, "https://example.com/a"), b"version 2");
        let known = |client, url: &str| of(&all, client, url).repeated();
        for url in ["https://example.com/a", "https://example.com:443/team/b"] {
            assert_eq!(known(1, url).as_deref(), Some(&b"version 2"[..]), "{url}");
        }
        for url in [
            "http://example.com/a",
            "https://example.com:8443/a",
            "https://example.org/a",
        ] {
            assert!(known(1, url).is_none(), "{url}");
        }
        assert!(known(2, "https://example.com/a").is_none(), "another proxy");
    }

    #[test]
    fn repository_that_differs_from_its_server_has_its_own_announcement() {
        let all = Announcements::default();
        let other = of(&all, 1, "https://example.com/b");
        answer(&of(&all, 1, "https://example.com/a"), b"version 2");
        assert!(other.repeated().is_some());
        assert!(other.forget(), "it was used");
        assert!(!other.forget() && other.repeated().is_none());
        answer(&other, b"version 2\nless");
        let known = |url: &str| of(&all, 1, url).repeated();
        assert_eq!(
            known("https://example.com/b").as_deref(),
            Some(&b"version 2\nless"[..])
        );
        assert_eq!(known("https://example.com/a").as_deref(), Some(&b"version 2"[..]));
        answer(&other, b"version 2");
        assert!(
            all.0.lock().repositories.is_empty(),
            "it is like its server again"
        );
    }

    #[test]
    fn announcements_are_bounded_in_size_number_and_age() {
        let all = Announcements::default();
        let announcement = of(&all, 1, "https://example.com/a");
        announcement.start();
        announcement.receive(&[0; MAX_BYTES]);
        announcement.receive(&[0]);
        announcement.remember();
        assert!(announcement.repeated().is_none() && !announcement.forget());

        let (mut known, now) = (Known::default(), Instant::now());
        let key = |number: usize| (0, number.to_string());
        for number in 0..=MAX_ENTRIES {
            known.forget(&key(number), now);
            known.remember(key(number), key(number), Bytes::new(), now);
            known.forget(&key(number), now);
        }
        assert_eq!(
            (known.servers.len(), known.repositories.len()),
            (MAX_ENTRIES, MAX_ENTRIES)
        );
        let last = key(MAX_ENTRIES);
        assert!(known.get(&last, &last, now).is_none(), "it is asked for");
        assert!(known.get(&(9, String::new()), &last, now).is_some());
        assert!(known.get(&(9, String::new()), &last, now + AGE).is_none());
        known.remember((3, String::new()), (3, String::new()), Bytes::new(), now + AGE);
        assert_eq!(known.servers.len(), 1, "the old ones are gone");
    }
}
