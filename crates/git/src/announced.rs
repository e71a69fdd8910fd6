//! Remembers the capabilities that HTTP servers announced, so that a later session lists refs with its first request.
//!
//! With protocol 2, a client asks for the capabilities of a server (`info/refs`) before it lists refs, and they hardly ever change. Nothing
//! else is in the answer: the server checks the credentials of the list. A list that fails is repeated with both requests.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;

use crate::wire::lock;

/// Maximum number of repositories whose announcement is kept.
const MAX_KEPT: usize = 4096;
/// Maximum size of an announcement that is kept, in bytes. That of Git has some 200.
const MAX_BYTES: usize = 1024;
/// Time after which a server is asked again.
const AGE: Duration = Duration::from_secs(3600);

/// A repository, and the HTTP client that leads to it: certificates and proxy.
type Key = (u64, String);

/// The announcements of all repositories. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Announcements(Arc<Mutex<HashMap<Key, (Instant, Bytes)>>>);

impl Announcements {
    /// Returns what is known of the repository with this URL, to be used by one session.
    pub(crate) fn of(&self, client: u64, url: &str) -> Announcement {
        Announcement {
            all: self.clone(),
            key: (client, url.to_owned()),
            received: Mutex::default(),
            is_repeated: AtomicBool::new(false),
        }
    }

    fn get(&self, key: &Key, now: Instant) -> Option<Bytes> {
        let (until, body) = lock(&self.0).get(key).cloned()?;
        (until > now).then_some(body)
    }

    fn remember(&self, key: Key, body: Bytes, now: Instant) {
        let mut all = lock(&self.0);
        if all.len() >= MAX_KEPT {
            all.retain(|_, (until, _)| *until > now);
        }
        if all.len() >= MAX_KEPT
            && let Some(other) = all.keys().next().cloned()
        {
            all.remove(&other);
        }
        all.insert(key, (now + AGE, body));
    }
}

/// The announcement of a repository in one session.
#[derive(Debug)]
pub(crate) struct Announcement {
    all: Announcements,
    key: Key,
    /// The answer as far as it was received; `None` if it can't be repeated.
    received: Mutex<Option<Vec<u8>>>,
    is_repeated: AtomicBool,
}

impl Announcement {
    /// Returns the answer of an earlier session.
    pub(crate) fn repeated(&self) -> Option<Bytes> {
        let body = self.all.get(&self.key, Instant::now())?;
        self.is_repeated.store(true, Ordering::Relaxed);
        Some(body)
    }

    /// Begins to record an answer.
    pub(crate) fn begin(&self) {
        *lock(&self.received) = Some(Vec::new());
    }

    /// Records a part of the answer.
    pub(crate) fn receive(&self, bytes: &[u8]) {
        let mut received = lock(&self.received);
        match received.as_mut() {
            Some(all) if all.len() + bytes.len() <= MAX_BYTES => all.extend_from_slice(bytes),
            _ => *received = None,
        }
    }

    /// Forgets what was recorded: the server is another one, or of an older protocol.
    pub(crate) fn discard(&self) {
        *lock(&self.received) = None;
    }

    /// Remembers the recorded answer, with which refs were listed.
    pub(crate) fn remember(&self) {
        if let Some(body) = lock(&self.received).take() {
            self.all.remember(self.key.clone(), body.into(), Instant::now());
        }
    }

    /// Forgets the answer of an earlier session. Returns true if this session used it.
    pub(crate) fn forget(&self) -> bool {
        lock(&self.all.0).remove(&self.key);
        self.is_repeated.swap(false, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcements_are_bounded_in_size_number_and_age() {
        let all = Announcements::default();
        let announcement = all.of(1, "https://example.com/a");
        announcement.begin();
        announcement.receive(b"version 2");
        announcement.remember();
        assert_eq!(announcement.repeated().as_deref(), Some(&b"version 2"[..]));
        assert!(
            all.of(2, "https://example.com/a").repeated().is_none(),
            "another proxy"
        );
        assert!(announcement.forget() && announcement.repeated().is_none());
        announcement.begin();
        announcement.receive(&[0; MAX_BYTES]);
        announcement.receive(&[0]);
        announcement.remember();
        assert!(announcement.repeated().is_none() && !announcement.forget());

        let now = Instant::now();
        for number in 0..=MAX_KEPT {
            all.remember((0, number.to_string()), Bytes::new(), now);
        }
        assert_eq!(lock(&all.0).len(), MAX_KEPT);
        let last = (0, MAX_KEPT.to_string());
        assert!(all.get(&last, now).is_some() && all.get(&last, now + AGE).is_none());
        all.remember((3, String::new()), Bytes::new(), now + AGE);
        assert_eq!(lock(&all.0).len(), 1, "the old ones are gone");
    }
}
