//! Repeats requests for lists of refs: if the answer is the same, byte for byte, no ref has moved.
//!
//! A session blocks a thread, and reads and selects refs. Repeating the same request and comparing a hash of the answer is
//! enough for a caller that only needs to know if a reference still means the same commit.

use std::sync::Arc;

use parking_lot::Mutex;
use reqwest::Response;
use ring::digest::{Context, SHA256};
use url::Url;

use crate::{Remote, request::Request};

const COMMAND: &[u8] = b"0014command=ls-refs";
/// Maximum size of a recorded request in bytes: a reference needs a few prefixes.
const MAX_REQUEST_BYTES: usize = 4 << 10;

#[derive(Debug, Clone)]
pub struct Listing(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    remote: Remote,
    url: Url,
    request: Request,
    answer: Answer,
}

#[derive(Debug, PartialEq, Eq)]
struct Answer {
    bytes: u64,
    hash: Vec<u8>,
}

#[derive(Clone)]
struct Received {
    bytes: u64,
    hash: Context,
}

impl Default for Received {
    fn default() -> Self {
        Self {
            bytes: 0,
            hash: Context::new(&SHA256),
        }
    }
}

impl Received {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.hash.update(bytes);
    }

    fn answer(&self) -> Answer {
        Answer {
            bytes: self.bytes,
            hash: self.hash.clone().finish().as_ref().to_vec(),
        }
    }
}

impl Listing {
    pub(crate) fn remote(&self) -> &Remote {
        &self.0.remote
    }

    pub(crate) fn request(&self) -> reqwest::Request {
        self.0.request.to(&self.0.url, &self.0.remote)
    }

    /// Returns true if a response has the same content. No more bytes are read than the first answer had.
    pub(crate) async fn is_answer(&self, mut response: Response) -> bool {
        if !response.status().is_success() {
            return false;
        }
        let mut received = Received::default();
        while let Ok(part) = response.chunk().await {
            match part {
                None => return received.answer() == self.0.answer,
                Some(bytes) => received.add(&bytes),
            }
            if received.bytes > self.0.answer.bytes {
                return false;
            }
        }
        false
    }
}

/// Records the list of refs of a session. Several lists are not recorded: the last one alone does not say which refs the
/// session found.
#[derive(Default)]
pub(crate) struct Recorder(Mutex<Recorded>);

struct RecordedList {
    url: Url,
    request: Request,
    received: Received,
}

#[derive(Default)]
enum Recorded {
    #[default]
    Nothing,
    One(Box<RecordedList>),
    Other,
}

impl Recorder {
    pub(crate) fn begin(&self, request: &Request, url: &Url) {
        if !request.body.starts_with(COMMAND) {
            return;
        }
        let mut recorded = self.0.lock();
        *recorded = match &*recorded {
            Recorded::Nothing if request.body.len() <= MAX_REQUEST_BYTES => {
                Recorded::One(Box::new(RecordedList {
                    url: url.clone(),
                    request: request.clone(),
                    received: Received::default(),
                }))
            }
            _ => Recorded::Other,
        };
    }

    pub(crate) fn receive(&self, bytes: &[u8]) {
        if let Recorded::One(list) = &mut *self.0.lock() {
            list.received.add(bytes);
        }
    }

    pub(crate) fn listing(&self, remote: &Remote) -> Option<Listing> {
        let recorded = self.0.lock();
        let Recorded::One(list) = &*recorded else {
            return None;
        };
        Some(Listing(Arc::new(Inner {
            remote: remote.clone(),
            url: list.url.clone(),
            request: list.request.clone(),
            answer: list.received.answer(),
        })))
    }
}
